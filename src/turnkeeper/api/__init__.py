"""The Python interface: what a program does with an open store. Every method is one use case."""

from turnkeeper.api.turnkeeper import Turnkeeper

__all__ = ["Turnkeeper"]
