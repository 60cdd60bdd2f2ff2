"""The full screen: a session on the whole terminal, by textual, which only this package imports."""
