"""Images within limits: real pictures, made here and decoded again."""

import io
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from PIL import Image

from turnkeeper.core.limits import IMAGE_PIXELS_MAX, MEDIA_BYTES_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.images import ImageLimits, Picture, normalise, pillow

SMALL = ImageLimits(width_max=100, height_max=100, base64_max=5 * 1024 * 1024)


def saved(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def plain(width: int, height: int, mode: str = "RGB", color: Any = "teal") -> Image.Image:
    return Image.new(mode, (width, height), color)


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), Random(1).randbytes(width * height * 3))


def opened(picture: Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.content))
    assert Image.MIME[image.format or ""] == picture.mime
    return image


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_within_the_limits_is_left_as_it_is(format: str) -> None:
    content = saved(plain(100, 100), format)
    assert normalise(content, "a.png", pillow(), SMALL) == (f"image/{format.lower()}", content)


@pytest.mark.parametrize(("size", "expected"), [((400, 200), (100, 50)), ((101, 1), (100, 1)), ((50, 5000), (1, 100))])
def test_an_image_that_is_too_large_is_scaled_and_keeps_its_shape(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    picture = normalise(saved(plain(*size)), "a.png", pillow(), SMALL)
    assert opened(picture).size == expected


def test_an_image_of_too_many_bytes_becomes_the_first_encoding_that_fits() -> None:
    content = saved(noise(90, 90))
    limits = SMALL._replace(base64_max=len(b64encode(content)) // 3)
    picture = normalise(content, "a.png", pillow(), limits)
    assert picture.mime == "image/jpeg"
    assert opened(picture).size == (90, 90)
    assert len(b64encode(picture.content)) <= limits.base64_max


def test_where_no_quality_fits_the_image_shrinks_by_quarters() -> None:
    limits = SMALL._replace(base64_max=1200)
    picture = normalise(saved(noise(100, 100)), "a.png", pillow(), limits)
    assert opened(picture).size in {(75, 75), (56, 56), (42, 42), (31, 31), (23, 23), (17, 17)}
    assert len(b64encode(picture.content)) <= limits.base64_max


def test_an_image_that_never_fits_is_refused_with_its_measures() -> None:
    with pytest.raises(Invalid, match=r"b\.png \(101x101 pixels.*cannot be brought under 8 bytes"):
        normalise(saved(plain(101, 101)), "b.png", pillow(), SMALL._replace(base64_max=8))


def test_transparency_survives_where_the_format_has_it_and_becomes_white_where_not() -> None:
    clear = plain(200, 200, "RGBA", (0, 0, 0, 0))
    assert opened(normalise(saved(clear), "a.png", pillow(), SMALL)).getpixel((0, 0)) == (0, 0, 0, 0)
    noisy = noise(100, 100).convert("RGBA")
    noisy.putalpha(0)
    picture = normalise(saved(noisy), "a.png", pillow(), SMALL._replace(base64_max=2000))
    assert picture.mime == "image/jpeg"
    assert opened(picture).getpixel((0, 0)) == (255, 255, 255)


def test_an_upright_photograph_stays_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # The camera was held upright: turn right to see it.
    content = saved(plain(400, 200), "JPEG", exif=exif)
    assert opened(normalise(content, "a.jpg", pillow(), SMALL)).size == (50, 100)


@pytest.mark.parametrize("mode", ["P", "L", "1", "CMYK", "I;16"])
def test_images_of_every_kind_of_pixel_are_scaled(mode: str) -> None:
    content = saved(plain(200, 200, mode, 0), "JPEG" if mode == "CMYK" else "PNG")
    assert opened(normalise(content, "a", pillow(), SMALL)).size == (100, 100)


@pytest.mark.parametrize("content", [b"", b"words", saved(plain(10, 10), "BMP"), saved(plain(10, 10))[:20]])
def test_what_is_no_image_is_refused_before_anyone_decodes_it(content: bytes) -> None:
    with pytest.raises(Invalid, match="convert it"):
        normalise(content, "a.bmp", pillow())


def test_a_damaged_image_is_refused() -> None:
    content = saved(noise(200, 200))
    with pytest.raises(Invalid, match="cannot be decoded"):
        normalise(content[:2000] + bytes(2000), "a.png", pillow(), SMALL)


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    head = saved(plain(1, 1))
    side = int(IMAGE_PIXELS_MAX**0.5) + 1
    bomb = head[:16] + side.to_bytes(4) * 2 + head[24:]
    with pytest.raises(Invalid, match="pixels; send a smaller one"):
        normalise(bomb, "a.png", pillow())


def test_without_pillow_a_large_image_is_kept_as_long_as_models_take_files_of_its_size() -> None:
    content = saved(plain(3000, 10))
    assert normalise(content, "a.png", None).content is content
    with pytest.raises(Invalid, match=r"install turnkeeper\[images\]"):
        normalise(content + bytes(MEDIA_BYTES_MAX), "a.png", None)
