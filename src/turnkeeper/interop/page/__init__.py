"""A session as a page for people: safe HTML from JSON that may hold anything. No script, no remote loads."""
