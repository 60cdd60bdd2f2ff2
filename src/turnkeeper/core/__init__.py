"""Decisions as pure functions of values, without I/O and without waiting."""
