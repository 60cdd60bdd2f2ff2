"""Attachment URLs: parses ``file:`` and ``data:`` URLs as clients write them."""

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
    """A ``file:`` URL. ``paths`` are the possible paths, likeliest first; lines are counted from 1.

    ``is_exact``: the lines are meant as they are, also if a symbol begins at the only one of them.
    """

    paths: tuple[bytes, ...]
    first: int | None = None
    last: int | None = None
    is_exact: bool = False


class DataUrl(NamedTuple):
    """A ``data:`` URL. ``data`` is still encoded: as base64, or with percent signs."""

    mime: str
    charset: str | None
    is_base64: bool
    data: str

    def content(self) -> bytes:
        """The decoded bytes. Raises ValueError for invalid base64."""
        if not self.is_base64:
            return unquote_to_bytes(self.data)
        # Some clients insert line breaks, and some percent-encode reserved characters.
        return binascii.a2b_base64(b"".join(unquote_to_bytes(self.data).split()), strict_mode=True)

    def text(self) -> str:
        """The content as text; in UTF-8 if the charset is unknown. Raises ValueError for invalid base64."""
        content = self.content()
        try:
            return content.decode(self.charset or "utf-8", "replace")
        except LookupError:
            return content.decode("utf-8", "replace")


def is_textual(mime: str) -> bool:
    """Whether files of a media type are read as text."""
    return _TEXTUAL.fullmatch(mime.partition(";")[0].strip()) is not None


def read_file_url(url: str) -> FileUrl | None:
    """Parse a ``file:`` URL; None if it has another host or no path.

    Some clients do not encode a ``#`` in a file name, so the path with it comes before the path without the fragment.
    """
    rest = url.partition(":")[2]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            return None
        rest = f"/{path}"
    whole, given = _without_lines(rest)
    plain = re.split(r"[?#]", whole, maxsplit=1)[0]
    paths = tuple(dict.fromkeys(unquote_to_bytes(path) for path in (whole, plain) if path))
    first, last = (_number(given.get(name, [""])[-1]) for name in ("start", "end"))
    return FileUrl(paths, first, last, "exact" in given) if paths else None


def line_query(first: int, last: int | None = None) -> str:
    """The query of a ``file:`` URL for these lines; without ``last`` for the line or its symbol."""
    exact = "&exact=1" if first == last else ""
    return f"?start={first}&end={first if last is None else last}{exact}"


def read_data_url(url: str) -> DataUrl | None:
    """Parse a ``data:`` URL; None if the text is not one."""
    match = _DATA.fullmatch(url)
    if match is None:
        return None
    mime, *parameters = (word.strip() for word in match[1].split(";"))
    charset = next((word[8:].strip('"') for word in parameters if word.lower().startswith("charset=")), None)
    is_base64 = any(word.lower() == "base64" for word in parameters)
    return DataUrl(mime.lower() or "text/plain", charset, is_base64, match[2])


def _without_lines(path: str) -> tuple[str, dict[str, list[str]]]:
    """The path without a query for lines, and the query. Another question mark belongs to the file name."""
    before, mark, query = path.rpartition("?")
    given = parse_qs(query.partition("#")[0]) if mark else {}
    return (before, given) if given.keys() & {"start", "end"} else (path, {})


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
