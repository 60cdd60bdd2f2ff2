"""System Context: one file per Context Component. A new one is a file here and a line in BUILT_IN."""
