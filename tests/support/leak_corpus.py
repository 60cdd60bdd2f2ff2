"""A corpus of leaks: sessions with seeded secrets of many kinds at many kinds of places, in the format of an export.

It was written without a look at what the redactor searches for. Each leak says which texts must not be left of it.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from leak_kinds import CLOUDS, VENDORS
from leak_places import PLACES, TITLE, Placed
from leak_settings import ADDRESSES, COMMANDS, FILES, KEYS

HALF_CHARS_MIN: Final = 10
"""A half of a secret with so many characters must not be left either."""
LEAKS_A_SESSION: Final = 100

KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "env file": ("it printed «{env}» once", "the value «{env}» is old", "echo «{env}»"),
    "environment": ("I saw «{variable}» there", "curl https://example.org/«{variable}»/x"),
    "home path": ("open «{home}»/notes.txt", "cd «{home}»/src && ls", 'File "«{home}»/a.py", line 3'),
    "user name": ("drwxr-xr-x 2 «{user}» staff 64 Nov 17 09:12 src", "Author: «{user}»", "«{user}»@example:~$ ls"),
    "host name": ("Linux «{host}» 6.1.0 #1 SMP", "user@«{host}»:~$ ls"),
    "other home": ("/Users/«{l9}»/src/a.py", "/home/«{l9}»/.ssh/config", "C:\\Users\\«{l9}»\\code"),
    "git user": ("Author: Ada <«{email}»>", "git config user.email «{email}»", "Signed-off-by: Ada <«{email}»>"),
}
KINDS: Final = {**CLOUDS, **VENDORS, **KEYS, **FILES, **ADDRESSES, **COMMANDS, **KNOWN}

_WORD_LIST: Final = (
    "harbour lantern copper meadow thistle anchor saffron pebble walnut ember glacier violet hammer marble orchid "
    "falcon timber canyon velvet monsoon pepper quartz ribbon summit turnip wagon yonder zephyr bramble cobalt "
    "drizzle fennel"
)
_WORDS: Final = tuple(_WORD_LIST.split())
_ALPHABETS: Final = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase,
    "q": string.ascii_lowercase + "234567",
    "d": string.digits,
    "h": "0123456789abcdef",
    "x": string.ascii_letters + string.digits + "-_",
    "c": string.ascii_letters + string.digits + "./",
}
_SLOT: Final = re.compile(r"\{([abulqdhxc])(\d+)\}|\{([a-z]+)\}")
_SECRET: Final = re.compile("«(.*?)»", re.DOTALL)


class Facts(NamedTuple):
    """What the machine knows: values of ``.env`` files, of the environment, and names."""

    directory: str
    env: Sequence[str]
    variable: str
    home: str
    user: str
    host: str
    email: str


class Leak(NamedTuple):
    """A secret of a kind at a place, and the texts of which none may be left."""

    kind: str
    place: str
    gone: Sequence[str]


class LeakySession(NamedTuple):
    """A session to import, its tasks, and its leaks."""

    json: dict[str, Any]
    todos: Sequence[str]
    leaks: Sequence[Leak]


def drawn_text(random: Random, template: str, facts: Facts) -> tuple[str, Sequence[str]]:
    """A text after a template, and the secrets in it."""
    filled = _SLOT.sub(partial(_slot, random, facts), template)
    return _SECRET.sub(r"\1", filled), _SECRET.findall(filled)


def leaky_sessions(seed: int, count: int, facts: Facts) -> Iterator[LeakySession]:
    """Sessions with so many leaks in all. Every kind and every place occurs, and pairs of them at random."""
    random = Random(seed)
    kinds, places = _decks(random, list(KINDS)), _decks(random, [name for name in PLACES if name != TITLE])
    for nth in range(0, count, LEAKS_A_SESSION):
        session_id = f"ses_leaks{nth:06}"
        title = "Tides"
        leaks, todos, messages = list[Leak](), list[str](), list[dict[str, Any]]()
        for place in [TITLE, *(next(places) for _ in range(min(LEAKS_A_SESSION, count - nth) - 1))]:
            kind = next(kinds)
            text, secrets = drawn_text(random, random.choice(KINDS[kind]), facts)
            placed = PLACES[place](random, text, secrets)
            leaks.append(Leak(kind, place, tuple(_remains(placed))))
            title = placed.title or title
            todos += placed.todos
            if placed.parts:
                messages.append(_message(session_id, len(messages), placed))
        info: dict[str, Any] = {
            "id": session_id,
            "slug": f"leaks-{nth}",
            "projectID": "global",
            "directory": facts.directory,
            "title": title,
        }
        info |= {"version": "1", "time": {"created": 1, "updated": 1}}
        yield LeakySession({"info": info, "messages": messages}, todos, leaks)


def _message(session_id: str, nth: int, placed: Placed) -> dict[str, Any]:
    message_id = f"msg_{session_id[-6:]}_{nth:05}"
    place = {"sessionID": session_id, "messageID": message_id}
    parts = [
        {"id": f"prt_{session_id[-6:]}_{nth:05}_{index}", **place, **part} for index, part in enumerate(placed.parts)
    ]
    info: dict[str, Any] = {"id": message_id, "sessionID": session_id, "role": placed.role, "time": {"created": nth}}
    if placed.role == "user":
        info |= {"agent": "build", "model": {"providerID": "offline", "modelID": "tk-1"}}
    else:
        info |= {
            "parentID": f"msg_{session_id[-6:]}_00000",
            "modelID": "tk-1",
            "providerID": "offline",
            "mode": "build",
            "agent": "build",
        }
        info |= {"path": {"cwd": "/", "root": "/"}, "cost": 0}
        info |= {"tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}}
        info["time"] = {"created": nth, "completed": nth}
    return {"info": {**info, **placed.info}, "parts": parts}


def _remains(placed: Placed) -> Iterator[str]:
    for secret in placed.gone:
        yield secret
        half = len(secret) // 2
        if half >= HALF_CHARS_MIN:
            yield from (secret[:half], secret[half:])


def _decks(random: Random, names: list[str]) -> Iterator[str]:
    """The names again and again, each time in another order."""
    while True:
        yield from random.sample(names, len(names))


def _slot(random: Random, facts: Facts, found: re.Match[str]) -> str:
    letter, length, name = found.groups()
    if letter is not None:
        return "".join(random.choices(_ALPHABETS[letter], k=int(length)))
    draw = _NAMED.get(name)
    return draw(random, facts) if draw is not None else found[0]


def _password(random: Random, _: Facts) -> str:
    word, other = random.sample(_WORDS, 2)
    number = random.randint(10, 9999)
    return random.choice(
        [
            f"{word.capitalize()}{number}!",
            f"{word}{number}",
            f"{word}-{other}-{number}",
            f"{word[:3]}{number}.{other}_",
            "".join(random.choices(_ALPHABETS["a"] + "_.!+*", k=14)),
            f"{word}{other}",
        ]
    )


def _uuid(random: Random, _: Facts) -> str:
    return "-".join("".join(random.choices(_ALPHABETS["h"], k=size)) for size in (8, 4, 4, 4, 12))


_NAMED: Final[Mapping[str, Callable[[Random, Facts], str]]] = {
    "pw": _password,
    "uuid": _uuid,
    "word": lambda random, _: random.choice(_WORDS),
    "env": lambda random, facts: random.choice(facts.env),
    "variable": lambda _, facts: facts.variable,
    "home": lambda _, facts: facts.home,
    "user": lambda _, facts: facts.user,
    "host": lambda _, facts: facts.host,
    "email": lambda _, facts: facts.email,
}
