"""Decisions: value in, value out; nothing here waits, reads or writes."""
