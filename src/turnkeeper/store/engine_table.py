"""The table of storage engines: what each is called, what opens it, and where tests kill it. Nothing is loaded."""

from typing import Final, NamedTuple


class EngineEntry(NamedTuple):
    """One engine."""

    opener: str
    """The function that opens a store, as ``module:function``."""
    place: str = "PATH"
    """What follows the name and a colon, as people are shown it; empty for a store that is in no place."""
    crash_points: tuple[str, ...] = ()
    """Places around its durable steps; ``store/crash.py`` names them ``ENGINE.POINT``."""


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
    "memory": EngineEntry("turnkeeper.store.engines.memory:open_memory", place=""),
}
"""The engines, by the names that they have in ``--store``."""


def store_names() -> str:
    """How stores are named, for people: ``sqlite:PATH, files:DIR or memory:``."""
    *others, last = (f"{name}:{entry.place}" for name, entry in ENGINES.items())
    return f"{', '.join(others)} or {last}"
