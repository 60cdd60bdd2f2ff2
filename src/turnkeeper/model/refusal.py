"""Refusals: what we say no to, as exceptions of one small tree. The message says what to do.

    Refusal
    ├── NotFound     there is no such thing
    ├── Conflict     it clashes with what is there
    ├── Invalid      the input makes no sense
    ├── Forbidden    a rule says no
    └── Busy         not while it is running

Bugs are assertions; what goes wrong in a conversation is a Failure (model/failure.py).
"""


class Refusal(Exception):
    """Base of what a caller is refused."""


class NotFound(Refusal):
    """There is no such thing."""


class Conflict(Refusal):
    """It clashes with what is there."""


class Invalid(Refusal):
    """The input makes no sense."""


class Forbidden(Refusal):
    """A rule says no."""


class Busy(Refusal):
    """Not while it is running."""
