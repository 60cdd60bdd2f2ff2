"""The size of an image, read from its first bytes, and the sizes to which it is scaled down."""

from typing import Final, NamedTuple

SHRINK: Final = 0.75
SIZES_MAX: Final = 32

# Frame headers of a JPEG; the excluded markers have another meaning.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers of a JPEG without a length field."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def image_size(content: bytes) -> Size | None:
    """The size of a PNG, JPEG, GIF or WebP image; None for other content and for a truncated header."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        found = _png(content)
    elif content.startswith(b"\xff\xd8"):
        found = _jpeg(content)
    elif content.startswith((b"GIF87a", b"GIF89a")):
        found = _gif(content)
    elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        found = _webp(content)
    else:
        found = None
    return found if found is not None and found.width > 0 and found.height > 0 else None


def smaller_sizes(size: Size, width_max: int, height_max: int) -> tuple[Size, ...]:
    """The sizes to try: the largest within the limits, then each three quarters of the previous one."""
    scale = min(1.0, width_max / size.width, height_max / size.height)
    # Clamped, because rounding may exceed the limit by one.
    now = Size(_clamped(size.width * scale, width_max), _clamped(size.height * scale, height_max))
    sizes = [now]
    while len(sizes) < SIZES_MAX and now != (1, 1):
        now = Size(max(1, int(now.width * SHRINK)), max(1, int(now.height * SHRINK)))
        sizes.append(now)
    return tuple(sizes)


def _clamped(length: float, length_max: int) -> int:
    return max(1, min(round(length), length_max))


def _png(content: bytes) -> Size | None:
    if len(content) < 24 or content[12:16] != b"IHDR":
        return None
    return Size(int.from_bytes(content[16:20]), int.from_bytes(content[20:24]))


def _gif(content: bytes) -> Size | None:
    if len(content) < 10:
        return None
    return Size(int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little"))


def _jpeg(content: bytes) -> Size | None:
    """Find the frame header segment by segment: cameras write long segments before it."""
    place = 2
    while place + 4 <= len(content):
        if content[place] != 0xFF:
            return None
        marker = content[place + 1]
        if marker == 0xFF:  # Padding.
            place += 1
        elif marker in _BARE:
            place += 2
        elif marker in _FRAMES:
            frame = content[place + 5 : place + 9]
            return Size(int.from_bytes(frame[2:]), int.from_bytes(frame[:2])) if len(frame) == 4 else None
        else:
            place += 2 + max(2, int.from_bytes(content[place + 2 : place + 4]))
    return None


def _webp(content: bytes) -> Size | None:
    """The size in an extended (VP8X), lossless (VP8L) or lossy (VP8) header."""
    kind, body = content[12:16], content[20:30]
    if kind == b"VP8X" and len(body) == 10:
        return Size(1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little"))
    if kind == b"VP8L" and len(body) >= 5 and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a" and len(body) == 10:
        width, height = int.from_bytes(body[6:8], "little"), int.from_bytes(body[8:10], "little")
        return Size(width & 0x3FFF, height & 0x3FFF)
    return None
