"""The version of this program, which sessions remember as their maker's."""

__version__ = "0.1.0"
