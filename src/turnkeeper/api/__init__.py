"""The Python interface to an open store. Every method is one use case."""

from turnkeeper.api.turnkeeper import Turnkeeper

__all__ = ["Turnkeeper"]
