"""Images within the limits of models: an image above them is scaled down if Pillow is installed."""

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from turnkeeper.core.limits import (
    IMAGE_BASE64_MAX,
    IMAGE_HEIGHT_MAX,
    IMAGE_PIXELS_MAX,
    IMAGE_WIDTH_MAX,
    MEDIA_BYTES_MAX,
)
from turnkeeper.model.config import ImageConfig
from turnkeeper.model.refusal import Invalid
from turnkeeper.text.image_size import Size, image_size, smaller_sizes
from turnkeeper.workspace.file_kind import SNIFFED_BYTES, media_type

if TYPE_CHECKING:
    from PIL.Image import Image

QUALITIES: Final = (80, 85, 70, 55, 40)
"""The JPEG qualities to try at each size, if PNG is too large."""


class ImageLimits(NamedTuple):
    """The maximum size of an image, and whether a larger one is scaled down. ``base64_max`` is in characters."""

    width_max: int = IMAGE_WIDTH_MAX
    height_max: int = IMAGE_HEIGHT_MAX
    base64_max: int = IMAGE_BASE64_MAX
    resizes: bool = True


class Picture(NamedTuple):
    """An image and the media type of its content."""

    mime: str
    content: bytes


Encodings: TypeAlias = Callable[[bytes, ImageLimits], Iterator[Picture]]
"""Encodes an image in several sizes and qualities within the pixel limits, best first."""

LIMITS: Final = ImageLimits()


def limits_of(config: ImageConfig) -> ImageLimits:
    """The configured limits."""
    return ImageLimits(
        width_max=config.max_width or IMAGE_WIDTH_MAX,
        height_max=config.max_height or IMAGE_HEIGHT_MAX,
        base64_max=config.max_base64_bytes or IMAGE_BASE64_MAX,
        resizes=config.auto_resize is not False,
    )


def pillow() -> Encodings | None:
    """The encoder that uses Pillow; None if the extra ``images`` is not installed."""
    try:
        # Imported here: Pillow is optional and slow to load.
        from PIL import Image as _  # noqa: F401
    except ImportError:
        return None
    return _encodings


def normalise(content: bytes, name: str, encodings: Encodings | None, limits: ImageLimits = LIMITS) -> Picture:
    """The image within the limits. Raises Invalid if it is not an image or cannot be scaled down enough.

    Without ``encodings`` an image above the limits is unchanged, up to the maximum size of files.
    """
    mime = media_type(content[:SNIFFED_BYTES])
    size = image_size(content)
    if mime is None or size is None:
        raise Invalid(f"{name} is not a whole PNG, JPEG, GIF or WebP image; convert it to one of these")
    given = Picture(mime, content)
    if size.width <= limits.width_max and size.height <= limits.height_max and _fits(given, limits):
        return given
    measured = f"{name} ({size.width}x{size.height} pixels, {len(content)} bytes)"
    if not limits.resizes:
        raise Invalid(
            f"{measured} is over the limit of {limits.width_max}x{limits.height_max} pixels and {limits.base64_max} "
            "bytes of base64; send a smaller one, or set attachment.image.auto_resize"
        )
    if encodings is None:
        if len(content) <= MEDIA_BYTES_MAX:
            return given
        raise Invalid(
            f"{measured} is larger than the {MEDIA_BYTES_MAX} bytes that models take; send a smaller one, or install "
            "turnkeeper[images], which makes it smaller"
        )
    if size.width * size.height > IMAGE_PIXELS_MAX:
        raise Invalid(f"{measured} has more than {IMAGE_PIXELS_MAX} pixels; send a smaller one")
    return _first_that_fits(encodings(content, limits), name, measured, limits)


def _first_that_fits(pictures: Iterator[Picture], name: str, measured: str, limits: ImageLimits) -> Picture:
    try:
        found = next((picture for picture in pictures if _fits(picture, limits)), None)
    except Exception as error:
        # A decoder may raise any exception on damaged bytes.
        raise Invalid(f"{name} cannot be decoded ({error}); is it whole?") from error
    if found is None:
        raise Invalid(f"{measured} cannot be brought under {limits.base64_max} bytes of base64; send a smaller one")
    return found


def _fits(picture: Picture, limits: ImageLimits) -> bool:
    return 4 * -(-len(picture.content) // 3) <= limits.base64_max


def _encodings(content: bytes, limits: ImageLimits) -> Iterator[Picture]:
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
        # The new file has no EXIF data, so the pixels are rotated by the EXIF orientation.
        image = ImageOps.exif_transpose(opened)
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    for size in smaller_sizes(Size(*image.size), limits.width_max, limits.height_max):
        scaled = image.resize(size, Image.Resampling.LANCZOS)
        yield Picture("image/png", _saved(scaled, "PNG"))
        opaque = _on_white(scaled)
        for quality in QUALITIES:
            yield Picture("image/jpeg", _saved(opaque, "JPEG", quality=quality))


def _saved(image: "Image", format: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def _on_white(image: "Image") -> "Image":
    """The image on a white background: JPEG has no transparency."""
    if image.mode != "RGBA":
        return image
    from PIL import Image

    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")
