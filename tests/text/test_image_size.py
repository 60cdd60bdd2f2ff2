"""Sizes of pictures, as their first bytes tell them and as a decoder sees them."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from turnkeeper.text.image_size import SIZES_MAX, Size, image_size, smaller_sizes


def drawn(format: str, size: tuple[int, int], **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "teal").save(buffer, format, **options)
    return buffer.getvalue()


PICTURES = {
    "png": drawn("PNG", (37, 1201)),
    "jpeg": drawn("JPEG", (37, 1201)),
    "progressive jpeg": drawn("JPEG", (37, 1201), progressive=True),
    "jpeg with much before the frame": drawn("JPEG", (37, 1201), icc_profile=b"\xff\xc0" * 60_000),
    "jpeg with padding and a bare marker": b"\xff\xd8\xff\x01\xff" + drawn("JPEG", (37, 1201))[2:],
    "gif": drawn("GIF", (37, 1201)),
    "lossy webp": drawn("WEBP", (37, 1201)),
    "lossless webp": drawn("WEBP", (37, 1201), lossless=True),
    "extended webp": drawn("WEBP", (37, 1201), exif=b"Exif\0\0" + b"\0" * 20),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_header_tells_the_size(name: str) -> None:
    assert image_size(PICTURES[name]) == Size(37, 1201)


@pytest.mark.parametrize("name", PICTURES)
def test_a_header_that_is_cut_off_tells_the_size_or_nothing(name: str) -> None:
    for length in range(80):
        assert image_size(PICTURES[name][:length]) in (None, Size(37, 1201))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"plain words",
        b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8no segment",
        b"GIF89a" + b"\0" * 8,
        b"RIFF\0\0\0\0WAVEfmt " + b"\0" * 40,
        b"RIFF\0\0\0\0WEBPALPH" + b"\0" * 40,
    ],
)
def test_what_is_no_picture_has_no_size(content: bytes) -> None:
    assert image_size(content) is None


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8L"]), st.binary(max_size=200)
)
def test_no_bytes_confuse_the_reader(beginning: bytes, rest: bytes) -> None:
    found = image_size(beginning + rest)
    assert found is None or (found.width > 0 and found.height > 0)


def test_a_picture_within_the_limits_begins_with_its_own_size() -> None:
    assert smaller_sizes(Size(800, 600), 2000, 2000)[:3] == ((800, 600), (600, 450), (450, 337))


def test_a_picture_that_is_too_wide_keeps_its_shape() -> None:
    assert smaller_sizes(Size(8000, 1000), 2000, 2000)[0] == (2000, 250)


def test_a_line_keeps_one_pixel() -> None:
    sizes = smaller_sizes(Size(100_000, 1), 2000, 2000)
    assert sizes[0] == (2000, 1)
    assert sizes[-1] == (1, 1)


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 5000), st.integers(1, 5000))
def test_sizes_are_within_the_limits_distinct_and_bounded(width: int, height: int, wide: int, high: int) -> None:
    sizes = smaller_sizes(Size(width, height), wide, high)
    assert all(1 <= size.width <= min(wide, width) and 1 <= size.height <= min(high, height) for size in sizes)
    assert len(set(sizes)) == len(sizes) <= SIZES_MAX
