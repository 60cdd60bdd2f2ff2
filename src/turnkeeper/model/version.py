"""The version of this program, which new sessions record."""

__version__ = "0.1.0"
