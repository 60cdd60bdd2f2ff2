"""Pure functions over text and bytes: parsing, matching, comparing. They do not depend on sessions."""
