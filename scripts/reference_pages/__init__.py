"""The reference pages that ``scripts/reference.py`` writes, one module for each kind of page."""
