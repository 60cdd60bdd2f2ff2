"""The second generation of the API: the same log, told and read in its words."""
