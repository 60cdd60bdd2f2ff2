"""Plugins: Python code of others that changes what sessions do, through a fixed table of hooks."""
