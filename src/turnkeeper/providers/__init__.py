"""Providers: one file a wire protocol. A new one is a file here and a line in PROVIDERS."""
