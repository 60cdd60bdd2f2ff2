"""The world outside: projects, directories and where files live."""
