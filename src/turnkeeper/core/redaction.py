"""Redaction: masks secrets in texts and in JSON. One secret has one mask, and a report says what was masked where.

A secret is known by its value (a credential, a value of an ``.env`` file), by its shape, or by the name that stands
before it. What is found once by its shape is masked by its value from then on, so a redactor first reads everything
(``learn``) and then masks it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from json import dumps
from typing import Final
from urllib.parse import quote, quote_plus

from turnkeeper.core.spans import Span, crossing, going_on, joined, overlapping
from turnkeeper.model.redaction import KnownSecret, MaskedKind, RedactionReport
from turnkeeper.model.value import Json
from turnkeeper.text.encoded_runs import runs
from turnkeeper.text.secret_names import is_placeholder, is_secret_name
from turnkeeper.text.secret_shapes import doubtful_in, shapes_in
from turnkeeper.text.shape import PASSWORD, Found
from turnkeeper.text.value_index import BOUNDED_CHARS, ValueIndex

USER, HOST, ENV_VALUE = "user", "host", "env-file"

DEPTH_MAX: Final = 3
"""How many encodings around each other are looked through."""
LEARNT_CHARS_MIN: Final = 8
"""A shorter secret that was found by its place is masked there only: its value may be a common word."""
REMEMBERED_MAX: Final = 200_000
"""Texts of which a redactor remembers the shapes. A session is read twice or more often: to learn, and to mask."""
REMEMBERED_CHARS: Final = 64
"""A longer text is remembered by its hash."""
PLACES_MAX: Final = 50
"""Places of one kind that a report names; it counts all of them."""
DOUBTFUL_MAX: Final = 50

ENV_FILE: Final = re.compile(r"(?:^|[/\\\s\"'=])\.env(?:\.[\w.-]+)?(?![\w-])")
"""A name of an ``.env`` file in the input of a tool."""
_ENV_LINE: Final = re.compile(
    r"^([+-]?[ \t]*(?:\d+[:|→\t][ \t]*)?(?:export[ \t]+)?[A-Za-z_]\w*[ \t]*=[ \t]*)([^\s#][^\r\n]*)$", re.M
)
_OTHER_HOME: Final = re.compile(r"(?P<before>/home/|/Users/|[A-Za-z]:\\+Users\\+)(?P<v>[A-Za-z0-9][\w.@-]{0,62})")
_COMMON_HOMES: Final = frozenset(
    {"user", "username", "runner", "ubuntu", "shared", "public", "default", "app", "node", "me"}
)

_STRUCTURE: Final = (
    "id sessionID messageID parentID projectID partID callID type role providerID modelID mode agent tool status"
    " snapshot hash mime slug version finish reason variant action tail_start_id"
)
STRUCTURAL: Final = frozenset(_STRUCTURE.split())
"""Keys of messages and parts whose values clients rely on."""


class Redactor:
    """Masks the secrets of one export. Not shared between exports: their masks would be comparable."""

    def __init__(self, known: Iterable[KnownSecret] = ()) -> None:
        self._known: dict[str, KnownSecret] = {}
        for secret in known:
            self._known.setdefault(secret.value, secret)
        self._masks: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._index = ValueIndex()
        self._meant: dict[str, KnownSecret] = {}
        for secret in sorted(self._known.values(), key=lambda one: -len(one.value)):
            self._add(secret)
        self._news: dict[str, str] = {}
        self._shapes_of: dict[str | bytes, tuple[Found, ...]] = {}
        self._clean: set[str] = set()
        """Short texts without a secret: most texts of a session are names of fields and the like."""
        self._begin_report()

    def learn(self) -> None:
        """Mask what was found so far wherever it occurs from now on, and begin the report again."""
        for value, kind in sorted(self._news.items(), key=lambda one: -len(one[0])):
            self._known[value] = KnownSecret(kind=kind, value=value)
            self._add(self._known[value])
        self._news.clear()
        self._clean.clear()
        self._begin_report()

    def _add(self, secret: KnownSecret) -> None:
        for spelling in _spellings(secret):
            if spelling not in self._meant:
                self._meant[spelling] = secret
                self._index.add(spelling)

    def _begin_report(self) -> None:
        self._counts: Counter[str] = Counter()
        self._distinct: dict[str, set[str]] = {}
        self._places: dict[str, Counter[str]] = {}
        self._doubtful: dict[str, str] = {}

    @property
    def has_news(self) -> bool:
        """Whether something was found that is not yet known by its value."""
        return bool(self._news)

    @property
    def used(self) -> list[KnownSecret]:
        """The secrets that were found so far and are known by their value."""
        return [secret for value, secret in self._known.items() if value in self._masks]

    def report(self) -> RedactionReport:
        """The report on all secrets that were masked so far."""
        return RedactionReport(
            masked=tuple(
                MaskedKind(
                    kind=kind,
                    count=count,
                    distinct=len(self._distinct[kind]),
                    places=dict(self._places[kind].most_common(PLACES_MAX)),
                )
                for kind, count in sorted(self._counts.items())
            ),
            doubtful=len(self._doubtful),
            doubtful_places=tuple(dict.fromkeys(self._doubtful.values())),
        )

    def json(self, value: Json, place: str = "", *, is_env: bool = False) -> Json:
        """A JSON value with the secrets in its strings masked, also in the names of its fields."""
        match value:
            case str():
                return self.text(value, place, is_env=is_env)
            case dict():
                return {
                    (self.text(key, place) if isinstance(key, str) else key): (
                        self._field(value, key, one, place, is_env)
                    )
                    for key, one in value.items()
                }
            case list() | tuple():
                return [self.json(one, place, is_env=is_env) for one in value]
            case _:
                return value

    def text(self, text: str, place: str = "", *, is_env: bool = False) -> str:
        """A text with its secrets masked. ``is_env``: it may hold an ``.env`` file, whose values are all masked."""
        if text in self._clean and not is_env:
            return text
        [masked] = self.texts([text], place, is_env=is_env)
        if masked == text and len(text) <= REMEMBERED_CHARS and len(self._clean) < REMEMBERED_MAX:
            self._clean.add(text)
        return masked

    def texts(self, texts: Sequence[str], place: str = "", *, is_env: bool = False) -> list[str]:
        """Texts that follow one another, with their secrets masked, also one that goes on in the next text."""
        over = crossing(texts, self._over(texts)) if len(texts) > 1 else [[]]
        return [
            self._masked(text, self._found(text, place, is_env), carried, place)
            for text, carried in zip(texts, over, strict=True)
        ]

    def _over(self, texts: Sequence[str]) -> list[Found]:
        """The secrets in several texts that are searched as one text."""
        together = "".join(texts)
        return [*self._values(together), *going_on(texts, self._shapes(together), self._shapes)]

    def _field(self, owner: Mapping[str, Json], key: object, value: Json, place: str, is_env: bool) -> Json:
        name = key if isinstance(key, str) else ""
        if name in STRUCTURAL and isinstance(value, str) and len(value) <= 64:
            return value
        label = owner.get("name", owner.get("key")) if name == "value" else name
        if isinstance(value, str) and isinstance(label, str) and is_secret_name(label) and not is_placeholder(value):
            return self._mask(PASSWORD, value, place)
        return self.json(value, place, is_env=is_env)

    def _found(self, text: str, place: str, is_env: bool) -> list[Found]:
        found = list(self._plain(text))
        if is_env:
            found += [Found(match.start(2), match.end(2), ENV_VALUE) for match in _ENV_LINE.finditer(text)]
        overlaps = overlapping(found)
        for run in runs(text):
            if not overlaps(run.start, run.end) and (kind := self._inside(run.decoded, run.is_text, 1)) is not None:
                found.append(Found(run.start, run.end, f"encoded {kind}"))
        if len(self._doubtful) < DOUBTFUL_MAX:
            overlaps = overlapping(found)
            for start, word in doubtful_in(text):
                if not overlaps(start, start + len(word)):
                    self._doubtful.setdefault(word, place)
        return found

    def _plain(self, text: str) -> Iterator[Found]:
        yield from self._values(text)
        yield from self._shapes(text)

    def _values(self, text: str) -> Iterator[Found]:
        for start, value in self._index.find(text):
            yield Found(start, start + len(value), self._meant[value].kind)

    def _shapes(self, text: str) -> tuple[Found, ...]:
        key = text if len(text) <= REMEMBERED_CHARS else sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._shapes_of.get(key)
        if found is None:
            if len(self._shapes_of) >= REMEMBERED_MAX:
                self._shapes_of.clear()
            found = self._shapes_of[key] = (*shapes_in(text), *_other_homes(text))
        return found

    def _inside(self, decoded: str, is_text: bool, depth: int) -> str | None:
        """The kind of the first secret in the decoded content of an encoded run; None if there is none."""
        if not is_text:
            values = (self._meant[value] for _, value in self._index.find(decoded))
            return next((one.kind for one in values if len(one.value) >= BOUNDED_CHARS), None)
        for found in self._plain(decoded):
            return found.kind
        if depth < DEPTH_MAX:
            for run in runs(decoded):
                if (kind := self._inside(run.decoded, run.is_text, depth + 1)) is not None:
                    return kind
        return None

    def _masked(self, text: str, found: list[Found], carried: Sequence[Span], place: str) -> str:
        """A text with its secrets masked. ``carried`` are its pieces of secrets that cross into other texts."""
        rest = {one.start for one in carried if not one.secret}
        whole = {one.start: one.secret for one in carried if one.secret}
        pieces, last = [], 0
        for span in joined(text, [*found, *(Found(one.start, one.end, one.kind) for one in carried)]):
            secret = whole.get(span.start, span.secret)
            pieces += [text[last : span.start], "" if span.start in rest else self._mask(span.kind, secret, place)]
            last = span.end
        return "".join([*pieces, text[last:]]) if pieces else text

    def _mask(self, kind: str, secret: str, place: str) -> str:
        known = self._meant.get(secret)
        value, kind = (known.value, known.kind) if known is not None else (secret, self._kinds.get(secret, kind))
        self._counts[kind] += 1
        self._distinct.setdefault(kind, set()).add(value)
        self._places.setdefault(kind, Counter())[place] += 1
        if value not in self._masks:
            self._numbers[kind] += 1
            fixed = known.mask if known is not None else None
            self._masks[value] = fixed if fixed is not None else f"[{kind} {self._numbers[kind]}]"
            self._kinds[value] = kind
            if len(value) >= LEARNT_CHARS_MIN and value not in self._known:
                self._news[value] = kind
        return self._masks[value]


def _other_homes(text: str) -> Iterator[Found]:
    """The names in paths of other homes."""
    if "ome/" in text or "sers" in text:
        for match in _OTHER_HOME.finditer(text):
            if match["v"].lower() not in _COMMON_HOMES:
                yield Found(match.start("v"), match.end("v"), USER)


def _spellings(secret: KnownSecret) -> Iterator[str]:
    """The spellings of a value in texts: as it is, in JSON, in an address, in HTML, in a shell."""
    value = secret.value
    yield value
    if secret.kind in (USER, HOST):
        yield from (value.lower(), value.upper(), value.capitalize())
    yield dumps(value)[1:-1]
    yield dumps(dumps(value)[1:-1])[1:-1]
    yield dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield quote(value, safe="").replace("%2F", "%2f").replace("%3A", "%3a")
    yield escape(value)
    yield value.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
