"""Media: what of a file a provider can take, and the text that stands for it when it cannot."""

import binascii

from turnkeeper.model.request import Media, Text

DATA_CHARS_MAX = 28 * 1024 * 1024
"""The longest base64 text of one file."""
BYTES_MAX = 20 * 1024 * 1024
"""The largest file."""

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"


def modality(mime: str) -> str | None:
    """The modality of a type, in the catalogue's words; None for types without one."""
    if mime == PDF:
        return "pdf"
    family = mime.partition("/")[0]
    return family if family in ("image", "audio", "video") else None


def named(media: Media) -> str:
    """How a text calls the file."""
    return f'"{media.filename}"' if media.filename else f"A file of type {media.mime}"


def stand_in(media: Media, reason: str) -> Text:
    """The text that is sent in a file's place: it says why, so that the model can tell the user."""
    return Text(text=f"[{named(media)} could not be sent: {reason}. Tell the user if it matters.]")


def refusal(media: Media) -> str | None:
    """Why nobody would take this file; None if it is sound."""
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
    """The file, if this model can read its kind and it is sound; else the text that stands for it."""
    kind = modality(media.mime)
    if kind is not None and kind not in modalities:
        return stand_in(media, f"this model does not read {kind}")
    reason = refusal(media)
    return media if reason is None else stand_in(media, reason)


def data_url(media: Media) -> str:
    """The file as an address: its own, or one that holds its content."""
    return media.url if media.data is None and media.url else f"data:{media.mime};base64,{media.data}"
