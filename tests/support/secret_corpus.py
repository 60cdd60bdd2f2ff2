"""A corpus of seeded secrets: each of many kinds, hidden at many kinds of places of a message."""

import base64
import json
import string
from collections.abc import Callable, Iterator, Sequence
from random import Random
from textwrap import fill
from typing import Any, NamedTuple
from urllib.parse import quote

from turnkeeper.model.redaction import KnownSecret

LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


class Secret(NamedTuple):
    """A secret, the words around it, and whether the redactor is told of it."""

    kind: str
    value: str
    said: str
    is_known: bool = False


class Hidden(NamedTuple):
    """A secret at a place: the message that holds it, and the texts that must not be left of it."""

    secret: Secret
    place: str
    message: dict[str, Any]
    gone: tuple[str, ...]


def _drawn(random: Random, symbols: str, length: int) -> str:
    return "".join(random.choices(symbols, k=length))


def _vendor(prefix: str, symbols: str, length: int) -> Callable[[Random], Secret]:
    def made(random: Random) -> Secret:
        value = prefix + _drawn(random, symbols, length)
        return Secret(
            f"vendor {prefix}", value, random.choice(["use {} for it", "I set it to {}", "found {}"]).format(value)
        )

    return made


def _jwt(random: Random) -> Secret:
    head, body = (
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=")
        for one in ({"alg": "HS256", "typ": "JWT"}, {"sub": _drawn(random, LETTERS, 12)})
    )
    value = f"{head}.{body}.{_drawn(random, LETTERS, 43)}"
    return Secret("jwt", value, f"Authorization: Bearer {value}")


def _named(template: str) -> Callable[[Random], Secret]:
    def made(random: Random) -> Secret:
        value = _drawn(random, LETTERS, random.randint(12, 40)) + str(random.randint(0, 9))
        return Secret(f"named {template}", value, template.format(value))

    return made


def _private_key(random: Random) -> Secret:
    lines = [_drawn(random, LETTERS + "+/", 64) for _ in range(8)]
    body = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    return Secret("private key", lines[4], body)


def _login(random: Random) -> Secret:
    value = _drawn(random, LETTERS, 14)
    return Secret("login", value, f"postgres://ada:{value}@db.example.org:5432/tides")


def _known(random: Random) -> Secret:
    value = _drawn(random, LETTERS + "+/=!@#%&", 24)
    return Secret("known", value, f"it answered {value} and went on", is_known=True)


KINDS: Sequence[Callable[[Random], Secret]] = (
    _vendor("sk-ant-api03-", LETTERS + "_-", 60),
    _vendor("sk-proj-", LETTERS, 48),
    _vendor("sk-or-v1-", HEX, 64),
    _vendor("AIza", LETTERS, 35),
    _vendor("gsk_", LETTERS, 52),
    _vendor("ghp_", LETTERS, 36),
    _vendor("github_pat_", LETTERS, 60),
    _vendor("glpat-", LETTERS, 20),
    _vendor("xoxb-", string.digits, 24),
    _vendor("AKIA", UPPER, 16),
    _vendor("sk_live_", LETTERS, 24),
    _vendor("npm_", LETTERS, 36),
    _vendor("hf_", LETTERS, 34),
    _vendor("xai-", LETTERS, 60),
    _jwt,
    _private_key,
    _login,
    _named("export DATABASE_PASSWORD={}"),
    _named('"client_secret": "{}"'),
    _named("api_key: {}"),
    _named("aws_secret_access_key = {}"),
    _named("curl -H 'Authorization: Bearer {}'"),
    _known,
    _known,
    _known,
)


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" for one in text)


def _text(role: str, kind: str) -> Callable[[Secret, Random], tuple[dict[str, Any], str]]:
    return lambda secret, random: (
        _message(role, {"type": kind, "text": f"Well:\n{secret.said}\nand so on."}),
        secret.value,
    )


def _state(**fields: Callable[[str], object]) -> Callable[[Secret, Random], tuple[dict[str, Any], str]]:
    return lambda secret, random: (_call(**{name: made(secret.said) for name, made in fields.items()}), secret.value)


def _encoded(encode: Callable[[str], str]) -> Callable[[Secret, Random], tuple[dict[str, Any], str]]:
    def hidden(secret: Secret, random: Random) -> tuple[dict[str, Any], str]:
        made = encode(secret.said)
        return _call(output=f"result: {made} (done)"), made[len(made) // 3 : 2 * len(made) // 3].split("\n")[-1] or made

    return hidden


def _split(secret: Secret, random: Random) -> tuple[dict[str, Any], str]:
    at = secret.said.index(secret.value) + len(secret.value) // 2
    parts = [{"type": "text", "text": one} for one in (secret.said[:at], secret.said[at:])]
    return _message("assistant", *parts), secret.value


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PLACES: dict[str, Callable[[Secret, Random], tuple[dict[str, Any], str]]] = {
    "prompt": _text("user", "text"),
    "answer": _text("assistant", "text"),
    "reasoning": _text("assistant", "reasoning"),
    "tool input": _state(input=lambda said: {"command": f"run --with '{said}'" if "'" not in said else said}),
    "deep tool input": _state(input=lambda said: {"files": [{"edits": [{"new": said}]}]}),
    "name in tool input": _state(input=lambda said: {said: True}),
    "tool output": _state(output=lambda said: f"line 1\n{said}\nline 3"),
    "tool error": _state(error=lambda said: f"failed: {said}"),
    "tool title": _state(title=lambda said: said),
    "tool metadata": _state(metadata=lambda said: {"seen": [said]}),
    "name in metadata": _state(metadata=lambda said: {said: 1}),
    "diff": _state(
        metadata=lambda said: {"diff": "@@ -1 +1 @@\n-old\n" + "\n".join(f"+{one}" for one in said.split("\n"))}
    ),
    "numbered lines": _state(
        output=lambda said: "\n".join(f"{n:05d}| {one}" for n, one in enumerate(said.split("\n")))
    ),
    "file name": lambda secret, random: (
        _message("user", {"type": "file", "mime": "text/plain", "filename": secret.said, "url": ""}),
        secret.value,
    ),
    "json in output": _state(output=lambda said: json.dumps({"body": json.dumps({"log": said})})),
    "base64": _encoded(_base64),
    "wrapped base64": _encoded(lambda said: fill(_base64(said), 76)),
    "base64 twice": _encoded(lambda said: _base64(_base64(said))),
    "hexadecimal": _encoded(lambda said: said.encode().hex()),
    "address": _encoded(lambda said: "https://example.org/?next=" + quote(said, safe="")),
    "escaped characters": _encoded(_escaped),
    "over two parts": _split,
}


def corpus(seed: int, count: int) -> Iterator[Hidden]:
    """So many secrets; kinds and places in turn, so that each kind is at each place."""
    random = Random(seed)
    names = list(PLACES)
    for number in range(count):
        secret = KINDS[number % len(KINDS)](random)
        place = names[(number // len(KINDS) + number) % len(names)]
        message, left = PLACES[place](secret, random)
        yield Hidden(secret, place, message, (left, secret.value))


def known(hidden: Sequence[Hidden]) -> list[KnownSecret]:
    """What the redactor is told: half as credentials, half as values of an ``.env`` file."""
    told = [one.secret.value for one in hidden if one.secret.is_known]
    return [KnownSecret(kind="credential" if n % 2 else "env-file", value=one) for n, one in enumerate(told)]


def _message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"info": {"id": "msg_1", "role": role}, "parts": [{"id": f"prt_{n}", **one} for n, one in enumerate(parts)]}


def _call(**fields: object) -> dict[str, Any]:
    state = {"status": "completed", "input": {}, "output": "", "title": "", "metadata": {}, **fields}
    return _message("assistant", {"type": "tool", "tool": "bash", "callID": "call_1", "state": state})
