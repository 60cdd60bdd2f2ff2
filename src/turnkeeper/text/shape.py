"""Shape: the pattern of one kind of secrets, and the tests that tell a secret from code, prose and placeholders."""

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from turnkeeper.text.secret_names import is_placeholder

API_KEY, TOKEN, PASSWORD, PRIVATE_KEY, URL_LOGIN = "api-key", "token", "password", "private-key", "url-login"

OPEN: Final = r"\\*[\"'`]?"
"""An optional quote, also an escaped one, as in JSON within JSON."""
LINE_NUMBER: Final = r"\d{1,6}(?:[:|→]|\t)"
"""The number that a listing puts before a line: of grep, of our `read`, of `cat -n`, of Claude Code."""
WORD_BEGINS: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""A word begins here, also after an escaped line break."""

_NO_PASSWORD: Final = re.compile(
    r"[A-Za-z]+|[a-z][a-z_.:/-]*|[A-Z][A-Z_-]*|[\w.]*\.[a-z_]+|.*(?:\{.*\}|<.*>|\(.*\)).*", re.S
)
_GENERATED: Final = re.compile(r"(?=.*\d)(?=(?:.*[!@#$%^&*(=+)]){4})[\w!@#$%^&*(=+)-]{32,}")
"""Long passwords of generators, with brackets too. A pattern or a call has other signs as well."""
_CODE: Final = re.compile(r".*(?:[{}<>()|]|\$\w|%[sd]\b|::).*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[\w-]*_[\w-]*_?", re.S)
_LOWER_RUN: Final = re.compile("[a-z]+")
_TYPE_NAMES: Final = (
    "string strings optional required boolean integer number unicode bytes object array default missing invalid "
    "incorrect wrong expired unknown empty hidden masked encrypted hashed plaintext sensitive secret secrets "
    "password passwords passwd credentials token tokens value values input prompt field label username email "
    "login postgres and none null undefined true false self this await return lambda request response "
    "settings config options file stdin environ environment vault keychain secretstr varchar text char protected "
    "private public readonly final passwort kennwort reset change changed forgot forgotten confirm confirmation "
    "repeat again hash salt sha bcrypt argon scrypt pbkdf authentication authorization verify verified rotate "
    "rotated generated random unchanged"
)
_TYPES: Final = frozenset(_TYPE_NAMES.split())


class Found(NamedTuple):
    """A secret in a text: its start, its end and its kind."""

    start: int
    end: int
    kind: str


class Shape(NamedTuple):
    """The pattern of one kind of secrets. The group ``v`` is the secret, or else the whole match."""

    kind: str
    hints: tuple[str, ...]
    """A match begins with one of these, in lower case: finding them is much faster than a pattern."""
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = bool


def vendor(hint: str, pattern: str, kind: str = API_KEY) -> Shape:
    """Keys that begin with a fixed prefix."""
    return Shape(kind, (hint.lower(),), re.compile(rf"{WORD_BEGINS}{re.escape(hint)}{pattern}"))


def vendors(hints: str, pattern: str, kind: str = API_KEY) -> Shape:
    """Keys that begin with one of several prefixes."""
    return Shape(kind, tuple(hints.lower().split()), re.compile(rf"{WORD_BEGINS}{pattern}"))


def after(hints: str, pattern: str, kind: str = PASSWORD, is_secret: Callable[[str], bool] | None = None) -> Shape:
    """Values that follow one of the hints, which are separated by spaces (``~`` stands for a space in a hint)."""
    names = tuple(hint.replace("~", " ") for hint in hints.split(" "))
    return Shape(kind, names, re.compile(pattern, re.I), is_secret or is_random)


def entropy(text: str) -> float:
    """Bits for each character of a text, by how often its characters occur."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


def is_random(value: str) -> bool:
    """Whether a value looks random: digits among letters, or letters whose case changes too often for words."""
    if len(value) < 8 or is_placeholder(value) or entropy(value) < 2.5:
        return False
    if any(one.isdigit() for one in value):
        return any(one.isalpha() for one in value)
    words = _LOWER_RUN.findall(value)
    return len(words) >= 3 and sum(map(len, words)) / len(words) < 2.7 and any(map(str.isupper, value))


def is_password(value: str) -> bool:
    """Whether a quoted value under a secret name is a password, and not the name of a setting or a sentence."""
    if is_placeholder(value) or any(map(str.isspace, value)):
        return False
    if _GENERATED.fullmatch(value) is not None and is_random(value):
        return True
    return _NO_PASSWORD.fullmatch(value) is None or (value.isalpha() and len(value) >= 16 and is_random(value))


def is_value(value: str) -> bool:
    """Whether a value is not a placeholder."""
    return not is_placeholder(value)


def is_chosen(value: str) -> bool:
    """Whether a value is a password that a person may have chosen, and neither a type, a name nor an expression."""
    if len(value) < 4 or is_placeholder(value) or any(map(str.isspace, value)) or value.lower() in _TYPES:
        return False
    if any(map(str.isdigit, value)) and not re.fullmatch(r"\d{1,5}|[\d.]+|\d+[a-z]{1,2}", value):
        return not re.search(r"[{}<>()|]|^\$\w|%[sd]\b|::|^[A-Za-z_]+\d?\.[A-Za-z_][\w.]*$", value)
    return len(value) >= 6 and _CODE.fullmatch(value) is None


def is_word(value: str) -> bool:
    """Whether a chosen password is a word, and might be a name in a program."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z_-]*", value) is not None
