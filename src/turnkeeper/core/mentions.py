"""Mentions: names after ``@`` in a text, such as ``@src/app.py`` or ``@explore``."""

import re
from typing import Final

# Not inside a word (an e-mail address) and not in code. A dot belongs to the name only at its beginning or before more
# of the name: otherwise it ends a sentence.
_MENTION: Final = re.compile(r"(?<![\w`])@(\.?[^\s`,.]*(?:\.[^\s`,.]+)*)")

CLOSING: Final = ")]}>:;!?\"'"
"""Punctuation that usually ends a sentence behind a name."""

_APART: Final = re.compile(r"(?<![^\s(\[{<\"'])@")
"""The mark of a name that may be a path: it does not stand in the middle of something else."""

LINES: Final = re.compile(r"L?([1-9]\d{0,8})(?:-L?([1-9]\d{0,8}))?")
"""Lines of a file, behind its name and a mark."""

_PATH: Final = re.compile(r"[\w.~/+-]*\w[\w.~/+-]*")

# Endings of file names. Others may be the last word of a decorator, as in ``@app.route``.
_ENDING: Final = re.compile(
    r".+\.(?:bash|c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html|ini|ipynb|java|jpe?g|jsx?|jsonc?|kt|lock|log|lua|md|mjs|pdf"
    r"|php|png|proto|pyi?|rb|rs|rst|sh|sql|svg|swift|tex|toml|tsx?|tsv|txt|vue|xml|ya?ml|zig|zsh)",
    re.IGNORECASE,
)


def mentions(text: str) -> tuple[str, ...]:
    """The mentioned names, each once, in order."""
    return tuple(dict.fromkeys(name for name in _MENTION.findall(text) if name.strip(".")))


def path_mentions(text: str) -> tuple[str, ...]:
    """The mentioned names that are clearly paths, without lines or symbol: with a slash, a leading dot or an ending."""
    apart = (found for found in _MENTION.finditer(text) if _APART.match(text, found.start()))
    files = (_file(found[1].rstrip(CLOSING)) for found in apart if found[1].strip("."))
    return tuple(dict.fromkeys(name for name in files if _is_path(name)))


def _file(name: str) -> str:
    """The name without the lines or the symbol behind it."""
    file, _, piece = name.rpartition(":")
    return file if LINES.fullmatch(piece) else name.partition("#")[0]


def _is_path(name: str) -> bool:
    is_marked = "/" in name or name.startswith(".") or _ENDING.fullmatch(name) is not None
    return is_marked and _PATH.fullmatch(name) is not None
