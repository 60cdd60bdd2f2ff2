"""Replaces lone surrogates, which JSON cannot hold. They come from file names and from split surrogate pairs."""

import re

from turnkeeper.model.value import Json, JsonObject

_LONE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with each lone surrogate replaced."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def clean_json(value: Json) -> Json:
    """The JSON value with lone surrogates replaced in all strings; keys become strings."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return value


def clean_object(value: Json) -> JsonObject:
    """The JSON object with lone surrogates replaced; empty if the value is not an object."""
    cleaned = clean_json(value)
    return cleaned if isinstance(cleaned, dict) else {}
