"""Mentions: names after ``@`` in a text, such as ``@src/app.py`` or ``@explore``."""

import re
from typing import Final

# Not inside a word (an e-mail address) and not in code. A dot belongs to the name only at its beginning or before more
# of the name: otherwise it ends a sentence. In quotes a name may have spaces; lines or a symbol may follow them.
_WORD: Final = r"[^\s`,.]*(?:\.[^\s`,.]+)*"
_MENTION: Final = re.compile(
    rf"(?<![\w`])@(?:\"(?P<quoted>[^\"`\n]+)\"(?P<piece>(?:[#:]{_WORD})?)|(?P<plain>\.?{_WORD}))"
)

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
    return tuple(dict.fromkeys(name for found in _MENTION.finditer(text) if (name := _name(found)).strip(".")))


def written(name: str, text: str) -> str:
    """The mention of a name as the text has it: perhaps with quotes, and without punctuation behind it."""
    for found in _MENTION.finditer(text):
        whole = _name(found)
        if found["quoted"] is not None and whole.rstrip(f"{CLOSING}(") == name.rstrip(f"{CLOSING}("):
            return found[0][: len(name) - len(whole)] if found["piece"] and whole != name else found[0]
    return f"@{name}"


def _name(found: re.Match[str]) -> str:
    return f"{found['quoted']}{found['piece']}" if found["quoted"] is not None else found["plain"]


def path_mentions(text: str) -> tuple[str, ...]:
    """The mentioned names that are clearly paths, without lines or symbol: with a slash, a leading dot or an ending."""
    apart = (found for found in _MENTION.finditer(text) if _APART.match(text, found.start()))
    names = ((_name(found), found["quoted"] is not None) for found in apart)
    files = ((_file(name.rstrip(CLOSING)), is_quoted) for name, is_quoted in names if name.strip("."))
    return tuple(dict.fromkeys(name for name, is_quoted in files if _is_path(name, is_quoted=is_quoted)))


def _file(name: str) -> str:
    """The name without the lines or the symbol behind it."""
    file, _, piece = name.rpartition(":")
    return file if LINES.fullmatch(piece) else name.partition("#")[0]


def _is_path(name: str, *, is_quoted: bool) -> bool:
    is_marked = "/" in name or name.startswith(".") or _ENDING.fullmatch(name) is not None
    return is_marked and (is_quoted or _PATH.fullmatch(name) is not None)
