"""The HTTP server: thin routes over the use cases, with the operations and shapes of opencode's API."""
