"""Sources: the pages and documents that an answer cites, in the metadata of its text."""

from typing import Final

from turnkeeper.model.value import JsonObject, Value

SOURCES: Final = "sources"
"""The metadata key of the sources: a list of objects with ``url`` or ``title``, and fields of the provider."""


class CitedSource(Value):
    """A page or document; ``url`` or ``title`` is not empty."""

    url: str = ""
    title: str = ""


def sources(metadata: JsonObject | None) -> tuple[CitedSource, ...]:
    """The sources of a text, each once, in order."""
    listed = (metadata or {}).get(SOURCES)
    named = (_source(one) for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
    return tuple(dict.fromkeys(one for one in named if one.url or one.title))


def without_sources(metadata: JsonObject) -> JsonObject:
    """Metadata without sources, which only people are shown."""
    return {key: value for key, value in metadata.items() if key != SOURCES}


def _source(listed: JsonObject) -> CitedSource:
    url, title = listed.get("url"), listed.get("title")
    return CitedSource(url=url if isinstance(url, str) else "", title=title if isinstance(title, str) else "")
