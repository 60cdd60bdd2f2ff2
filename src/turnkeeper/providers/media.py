"""Media: checks files before they are sent, and makes the text that replaces one that cannot be sent."""

import binascii

from turnkeeper.model.request import Media, Text

DATA_CHARS_MAX = 28 * 1024 * 1024
"""The longest base64 text of one file."""
BYTES_MAX = 20 * 1024 * 1024
"""The largest file."""

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"


def modality(mime: str) -> str | None:
    """The modality of a media type, as named in the catalogue; None for types without one."""
    if mime == PDF:
        return "pdf"
    family = mime.partition("/")[0]
    return family if family in ("image", "audio", "video") else None


def named(media: Media) -> str:
    """The file's name or type, for texts."""
    return f'"{media.filename}"' if media.filename else f"A file of type {media.mime}"


def stand_in(media: Media, reason: str) -> Text:
    """The text that replaces a file. It contains the reason, so that the model can tell the user."""
    return Text(text=f"[{named(media)} could not be sent: {reason}. Tell the user if it matters.]")


def refusal(media: Media) -> str | None:
    """Why no provider accepts this file; None if it is valid."""
    if media.data is None:
        return None if media.url else "it is empty"
    if not media.data:
        return "it is empty or corrupted"
    if len(media.data) > DATA_CHARS_MAX:
        return f"it is larger than {BYTES_MAX // 1024 // 1024} MiB"
    try:
        size = len(binascii.a2b_base64(media.data, strict_mode=True))
    except (binascii.Error, ValueError):
        return "its content is not base64"
    if size == 0:
        return "it is empty or corrupted"
    return f"it is larger than {BYTES_MAX // 1024 // 1024} MiB" if size > BYTES_MAX else None


def checked(media: Media, modalities: tuple[str, ...]) -> Media | Text:
    """The file if it is valid and the model reads its modality, else the text that replaces it."""
    kind = modality(media.mime)
    if kind is not None and kind not in modalities:
        return stand_in(media, f"this model does not read {kind}")
    reason = refusal(media)
    return media if reason is None else stand_in(media, reason)


def data_url(media: Media) -> str:
    """The URL of a file: its own, or a ``data:`` URL with its content."""
    return media.url if media.data is None and media.url else f"data:{media.mime};base64,{media.data}"
