"""The imperative shell: coordinator, drain, turn, settle."""
