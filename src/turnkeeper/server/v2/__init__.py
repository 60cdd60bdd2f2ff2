"""The second generation of the API: its events and messages, derived from the log."""
