"""The table of storage engines: what each is called, what opens it, and where tests kill it. Nothing is loaded."""

import re
from typing import Final, NamedTuple


class EngineEntry(NamedTuple):
    """One engine."""

    opener: str
    """The function that opens a store, as ``module:function``."""
    place: str = "PATH"
    """The text behind the name and a colon, as users are shown it; empty for a store without a place."""
    crash_points: tuple[str, ...] = ()
    """Places around its durable steps; ``store/crash.py`` names them ``ENGINE.POINT``."""
    aliases: tuple[str, ...] = ()
    """Other names that mean the same in ``--store``."""
    is_on_disk: bool = True
    """Whether the place is a path of this machine. If not, it is an address, which the opener gets whole, as text."""


ENGINES: Final[dict[str, EngineEntry]] = {
    "sqlite": EngineEntry(
        "turnkeeper.store.sqlite_layout:open_sqlite",
        crash_points=(
            *("begin", "before-commit", "after-commit", "before-checkpoint", "after-checkpoint"),
            *("begin-tidying", "before-tidied", "before-migration", "after-migration"),
        ),
    ),
    "files": EngineEntry(
        "turnkeeper.store.engines.files:open_files",
        place="DIR",
        crash_points=(
            *("staged", "intent-written", "intent-synced", "place-begun", "document-placed", "log-placed"),
            *("placed", "synced", "emptied"),
        ),
    ),
    "postgres": EngineEntry(
        "turnkeeper.store.postgres_layout:open_postgres",
        place="//USER@HOST/DATABASE",
        crash_points=("begin", "checked", "before-commit", "after-commit", "before-migration", "after-migration"),
        aliases=("postgresql",),
        is_on_disk=False,
    ),
    "memory": EngineEntry("turnkeeper.store.engines.memory:open_memory", place=""),
}
"""The engines, by the names that they have in ``--store``."""


class StoreName(NamedTuple):
    """A store as it is named in ``--store``, taken apart."""

    engine: str
    entry: EngineEntry
    place: str


def named_store(url: str) -> StoreName | None:
    """The engine and the place that a name such as ``sqlite:PATH`` has; None if it names no engine."""
    scheme, separator, place = url.partition(":")
    found = next((one for one in ENGINES.items() if scheme in (one[0], *one[1].aliases)), None)
    return StoreName(*found, place) if found is not None and separator else None


def store_names(*without: str) -> str:
    """How stores are named, for people: ``sqlite:PATH, files:DIR or memory:``. Some engines may be left out."""
    *others, last = (f"{name}:{entry.place}" for name, entry in ENGINES.items() if name not in without)
    return f"{', '.join(others)} or {last}"


HIDDEN: Final = "***"

_PASSWORDS: Final = (
    # Up to the last "@": a password in which "@" or "/" should have been quoted is hidden whole.
    (re.compile(r"(?<=://)([^:@/?#]*):.*@"), rf"\1:{HIDDEN}@"),
    (re.compile(r"([?&](?:ssl)?password=)[^&]*", re.I), rf"\1{HIDDEN}"),
)


def shown_store(url: str) -> str:
    """The name of a store without its password, for messages, logs and answers."""
    for pattern, replacement in _PASSWORDS:
        url = pattern.sub(replacement, url)
    return url
