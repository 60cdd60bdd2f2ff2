"""Sources: the pages and documents that an answer names, kept in the metadata of its text under one name."""

from typing import Final

from turnkeeper.model.value import JsonObject, Value

SOURCES: Final = "sources"
"""Where in the metadata of a text its sources are: a list of objects with ``url`` or ``title`` and the provider's own
fields.
"""


class CitedSource(Value):
    """A page or document; at least one of the two is not empty."""

    url: str = ""
    title: str = ""


def sources(metadata: JsonObject | None) -> tuple[CitedSource, ...]:
    """The sources of a text in the order in which they were named, each once."""
    listed = (metadata or {}).get(SOURCES)
    named = (_source(one) for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
    return tuple(dict.fromkeys(one for one in named if one.url or one.title))


def without_sources(metadata: JsonObject) -> JsonObject:
    """Metadata as a provider gets it back: sources are for people."""
    return {key: value for key, value in metadata.items() if key != SOURCES}


def _source(listed: JsonObject) -> CitedSource:
    url, title = listed.get("url"), listed.get("title")
    return CitedSource(url=url if isinstance(url, str) else "", title=title if isinstance(title, str) else "")
