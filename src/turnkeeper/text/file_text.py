"""File text: the bytes of a text file decoded so that an edited text can be encoded in the same form.

| The content | Encoding |
|---|---|
| begins with a UTF-16 byte order mark | UTF-16, the mark is kept |
| begins with a UTF-8 byte order mark | UTF-8, the mark is kept |
| is UTF-8, or has more UTF-8 characters than stray bytes | UTF-8; stray bytes are kept as surrogates |
| is anything else | Latin-1, in which every byte is a character |
"""

import re
from typing import Final, Literal, TypeAlias

from turnkeeper.model.value import Value

Encoding: TypeAlias = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]

UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final[dict[Encoding, bytes]] = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
_MARKS: Final[dict[Encoding, bytes]] = {**_UTF16_MARKS, "utf-8-sig": UTF8_MARK}
_STRAY: Final = re.compile("[\udc80-\udcff]")
_WIDE: Final = re.compile("[^\x00-\x7f\udc80-\udcff]")
_NAMES: Final[dict[Encoding, str]] = {"latin-1": "ISO-8859-1", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


class Unencodable(ValueError):
    """A text holds a character that the file's encoding does not have."""


class FileText(Value):
    """The text of a file, without its byte order mark, and how it is encoded."""

    text: str
    encoding: Encoding = "utf-8"

    @property
    def encoding_name(self) -> str:
        """The encoding as people know it."""
        return _NAMES.get(self.encoding, "UTF-8")

    @property
    def has_crlf_only(self) -> bool:
        """Whether there are line ends, and all of them are CRLF."""
        count = self.text.count("\r\n")
        return count > 0 and count == self.text.count("\n")

    def encode(self, text: str) -> bytes:
        """Another text in the same form. Raises Unencodable if the encoding lacks one of its characters."""
        mark = _MARKS.get(self.encoding, b"")
        if self.encoding in ("utf-8", "utf-8-sig"):
            return mark + text.encode("utf-8", "surrogateescape")
        try:
            return mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise Unencodable(f"{self.encoding_name} has no character {text[error.start]!r}") from error


def decode(content: bytes) -> FileText:
    """The text of a file. Raises ValueError for UTF-16 that is damaged or holds a NUL: that is no text."""
    for encoding, mark in _UTF16_MARKS.items():
        if content.startswith(mark):
            text = content[len(mark) :].decode(encoding)
            if "\0" in text:
                raise ValueError("the text holds a NUL")
            return FileText(text=text, encoding=encoding)
    if content.startswith(UTF8_MARK):
        return FileText(text=content[len(UTF8_MARK) :].decode("utf-8", "surrogateescape"), encoding="utf-8-sig")
    text = content.decode("utf-8", "surrogateescape")
    if not (strays := len(_STRAY.findall(text))) or strays < len(_WIDE.findall(text)):
        return FileText(text=text)
    return FileText(text=content.decode("latin-1"), encoding="latin-1")


def is_utf16(head: bytes) -> bool:
    """Whether a file that begins like this says that it is UTF-16."""
    return head.startswith(tuple(_UTF16_MARKS.values()))
