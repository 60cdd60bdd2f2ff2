"""Pure functions over text and bytes: parsing, matching, comparing. They know nothing of sessions."""
