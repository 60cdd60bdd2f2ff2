"""The HTTP server: thin routes over the use cases, in the words that official clients know."""
