"""The terminal: commands over the public API. Nothing here decides; it reads words and shows values."""
