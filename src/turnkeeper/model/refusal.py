"""Refusals: exceptions for requests that are refused. The message says what to do.

    Refusal
    ├── NotFound     the named thing does not exist
    ├── Conflict     the request conflicts with stored data
    │   └── Elsewhere    the session is for other hosts
    ├── Invalid      the input is not valid
    ├── Forbidden    a rule forbids it
    └── Busy         not while the session is running

Bugs are assertions; an error in a conversation is a Failure (model/failure.py).
"""


class Refusal(Exception):
    """Base of all refusals."""


class NotFound(Refusal):
    """The named thing does not exist."""


class Conflict(Refusal):
    """The request conflicts with stored data."""


class Elsewhere(Conflict):
    """The session is for other hosts: it has a label that this one does not have."""


class Invalid(Refusal):
    """The input is not valid."""


class Forbidden(Refusal):
    """A rule forbids it."""


class Busy(Refusal):
    """Not while the session is running."""
