"""Use cases of the command line, the Python API and the server: one function for each verb."""
