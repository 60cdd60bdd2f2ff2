"""The text of a file and its bytes: whatever a file holds, its unchanged text gives the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.file_text import FileText, Unencodable, decode


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", FileText(text="")),
        (b"plain", FileText(text="plain")),
        ("café".encode(), FileText(text="café")),
        (b"\xef\xbb\xbfa", FileText(text="a", encoding="utf-8-sig")),
        (b"\xff\xfea\0", FileText(text="a", encoding="utf-16-le")),
        (b"\xfe\xff\0a", FileText(text="a", encoding="utf-16-be")),
        (b"caf\xe9", FileText(text="café", encoding="latin-1")),
        ("où, là-bas, \u20ac ".encode() + b"\xff", FileText(text="où, là-bas, \u20ac \udcff")),
        (b"\xef\xbb\xbf\xff", FileText(text="\udcff", encoding="utf-8-sig")),
    ],
)
def test_the_encoding_is_told_by_the_bytes(content: bytes, expected: FileText) -> None:
    assert decode(content) == expected


@given(
    st.binary(max_size=40)
    | st.text(max_size=20).map(str.encode)
    | st.text(max_size=20).map(lambda t: t.encode("utf-16"))
)
def test_an_unchanged_text_gives_the_same_bytes(content: bytes) -> None:
    try:
        decoded = decode(content)
    except ValueError:
        assert content[:2] in (b"\xff\xfe", b"\xfe\xff")  # Damaged UTF-16 is no text.
    else:
        assert decoded.encode(decoded.text) == content


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    with pytest.raises(Unencodable, match="ISO-8859-1 has no character '\u20ac'"):
        FileText(text="", encoding="latin-1").encode("5 \u20ac")
