"""Attachment URLs: what ``file:`` and ``data:`` addresses say, as clients write them."""

import binascii
import re
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote_to_bytes

_DATA: Final = re.compile(r"data:([^,]*),(.*)", re.DOTALL | re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
_TEXTUAL: Final = re.compile(
    r"text/.+|image/svg\+xml|application/(?:.+\+|x-)?(?:json|jsonc|json5|xml|yaml|toml|javascript|typescript|sh|sql)",
    re.IGNORECASE,
)


class FileUrl(NamedTuple):
    """A ``file:`` address. ``paths`` are what it may mean, likeliest first; lines are counted from 1."""

    paths: tuple[bytes, ...]
    first: int | None = None
    last: int | None = None


class DataUrl(NamedTuple):
    """A ``data:`` address. ``data`` is as it was written: base64, or with percent signs."""

    mime: str
    charset: str | None
    is_base64: bool
    data: str

    def content(self) -> bytes:
        """The bytes; ValueError if they are not what the address says."""
        if not self.is_base64:
            return unquote_to_bytes(self.data)
        # Some writers break lines, and some encode the signs that mean something in addresses.
        return binascii.a2b_base64(b"".join(unquote_to_bytes(self.data).split()), strict_mode=True)

    def text(self) -> str:
        """The content as text; ValueError as above."""
        content = self.content()
        try:
            return content.decode(self.charset or "utf-8", "replace")
        except LookupError:
            return content.decode("utf-8", "replace")


def is_textual(mime: str) -> bool:
    """Whether files of this type are read as text."""
    return _TEXTUAL.fullmatch(mime.partition(";")[0].strip()) is not None


def read_file_url(url: str) -> FileUrl | None:
    """What a ``file:`` address says; None if it names another machine or nothing at all.

    A ``#`` should have been encoded where it belongs to a name. Where it was not, the name with it comes first, for
    nothing of ours ends in a fragment.
    """
    rest = url.partition(":")[2]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            return None
        rest = f"/{path}"
    whole, lines = _without_lines(rest)
    plain = re.split(r"[?#]", whole, maxsplit=1)[0]
    paths = tuple(dict.fromkeys(unquote_to_bytes(path) for path in (whole, plain) if path))
    return FileUrl(paths, *lines) if paths else None


def read_data_url(url: str) -> DataUrl | None:
    """What a ``data:`` address says; None if it is none."""
    match = _DATA.fullmatch(url)
    if match is None:
        return None
    mime, *parameters = (word.strip() for word in match[1].split(";"))
    charset = next((word[8:].strip('"') for word in parameters if word.lower().startswith("charset=")), None)
    is_base64 = any(word.lower() == "base64" for word in parameters)
    return DataUrl(mime.lower() or "text/plain", charset, is_base64, match[2])


def _without_lines(path: str) -> tuple[str, tuple[int | None, int | None]]:
    """The path without the query that names lines, and these lines; a question mark may also belong to a name."""
    before, mark, query = path.rpartition("?")
    given = parse_qs(query.partition("#")[0]) if mark else {}
    if not given.keys() & {"start", "end"}:
        return path, (None, None)
    first, last = (_number(given.get(name, [""])[-1]) for name in ("start", "end"))
    return before, (first, last)


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
