"""Use cases: what the command line, the Python API and the server call. One verb, one function."""
