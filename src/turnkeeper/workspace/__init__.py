"""The local machine: projects, files, configuration, processes and git."""
