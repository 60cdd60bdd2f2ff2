"""Frozen value types that all other packages use."""
