"""What a command says of its words, in cyclopts' terms, and which words can be read without it.

Loading cyclopts takes as long as loading the server. A module that is needed without it has annotations that nobody
evaluates (``from __future__ import annotations``) before cyclopts does, and finds ``Parameter`` here.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from cyclopts import Parameter as Parameter

Simple: TypeAlias = Mapping[str, type[int] | type[str]]
"""Options that are followed by a number or by any word: ``{"--port": int}``."""


def simple(words: Sequence[str], known: Simple) -> dict[str, int | str] | None:
    """What these words say if they are simple: each option known, given once and whole. None is for cyclopts to say.

    What has any second meaning, or none, is not simple.
    """
    said: dict[str, int | str] = {}
    for option, value in zip(words[::2], words[1::2], strict=False):
        name, kind = option.removeprefix("--").replace("-", "_"), known.get(option)
        if kind is None or name in said or not value or value.startswith("-"):
            return None
        if kind is int and not (value.isascii() and value.isdecimal()):
            return None
        said[name] = kind(value)
    return said if len(words) % 2 == 0 else None


def __getattr__(name: str) -> Any:
    """``Parameter``, when it is asked for. ``Any``: type checkers see the import above."""
    if name != "Parameter":
        raise AttributeError(name)
    from cyclopts import Parameter

    return Parameter
