"""Tools: one file each. A new one is a file here and a line in BUILT_IN."""
