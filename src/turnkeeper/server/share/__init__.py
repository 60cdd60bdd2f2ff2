"""Shared sessions on a server: the page of a link, and the live view behind it."""
