"""Addresses of attachments, as clients write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.attachment_url import FileUrl, is_textual, read_data_url, read_file_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///a/b.txt", FileUrl((b"/a/b.txt",))),
        ("file:/a/b.txt", FileUrl((b"/a/b.txt",))),
        ("file://localhost/a/b.txt", FileUrl((b"/a/b.txt",))),
        ("FILE:///a", FileUrl((b"/a",))),
        ("file:b.txt", FileUrl((b"b.txt",))),
        ("file:///a/with%20space%23.txt", FileUrl((b"/a/with space#.txt",))),
        ("file:///a/%FF", FileUrl((b"/a/\xff",))),
        ("file:///a/C#.txt", FileUrl((b"/a/C#.txt", b"/a/C"))),
        ("file:///a.py?start=3&end=9", FileUrl((b"/a.py",), 3, 9)),
        ("file:///a.py?start=3&end=3&exact=1", FileUrl((b"/a.py",), 3, 3, is_exact=True)),
        ("file:///a.py?exact=1", FileUrl((b"/a.py?exact=1", b"/a.py"))),
        ("file:///a.py?start=3", FileUrl((b"/a.py",), 3, None)),
        ("file:///a.py?end=9#x", FileUrl((b"/a.py",), None, 9)),
        ("file:///a.py?start=x&end=-1", FileUrl((b"/a.py",), None, None)),
        ("file:///a.py?start=1&start=4", FileUrl((b"/a.py",), 4, None)),
        ("file:///C#/a.py?start=3&end=9", FileUrl((b"/C#/a.py", b"/C"), 3, 9)),
        ("file:///what?.txt", FileUrl((b"/what?.txt", b"/what"))),
        ("file:///what?.txt?start=2", FileUrl((b"/what?.txt", b"/what"), 2, None)),
    ],
)
def test_a_file_address_tells_path_and_lines(url: str, expected: FileUrl) -> None:
    assert read_file_url(url) == expected


@pytest.mark.parametrize("url", ["file:", "file://", "file://elsewhere/a.txt", "file://elsewhere"])
def test_an_address_of_another_machine_names_no_file(url: str) -> None:
    assert read_file_url(url) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("data:text/plain;base64,aGVsbG8=", "hello"),
        ("data:text/plain;charset=utf-8;base64,w6k=", "é"),
        ("data:text/plain;charset=latin-1,%E9", "é"),
        ("data:text/plain;charset=klingon,%C3%A9", "é"),
        ("data:text/plain;charset=rot13,abc", "abc"),
        ("data:,a%20b", "a b"),
        ("data:text/plain;base64,aGVs%0AbG8%3D", "hello"),
        ("data:text/plain;base64,aGVs\nbG8%3D", "hello"),
        ("data:text/plain;base64,a", None),
        ("data:text/plain,", ""),
    ],
)
def test_a_data_address_holds_text_or_says_that_it_does_not(url: str, text: str | None) -> None:
    address = read_data_url(url)
    assert address is not None
    if text is None:
        with pytest.raises(ValueError):
            address.text()
    else:
        assert address.text() == text


def test_what_has_no_comma_is_no_data_address() -> None:
    assert read_data_url("data:text/plain;base64") is None


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    read_file_url(f"file:{text}")
    read_data_url(f"data:{text}")


@pytest.mark.parametrize("mime", ["text/plain", "text/markdown; charset=utf-8", "application/json", "image/svg+xml"])
def test_text_in_any_dress_is_text(mime: str) -> None:
    assert is_textual(mime)


@pytest.mark.parametrize("mime", ["image/png", "application/pdf", "application/octet-stream", "text", ""])
def test_other_types_are_not_text(mime: str) -> None:
    assert not is_textual(mime)
