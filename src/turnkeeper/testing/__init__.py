"""The public test kit, for example for authors of engines. Only the engine contract needs pytest."""
