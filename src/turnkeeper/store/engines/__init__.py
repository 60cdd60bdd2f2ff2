"""The storage engines, one file each. A new engine is a file here and a line in ENGINES."""
