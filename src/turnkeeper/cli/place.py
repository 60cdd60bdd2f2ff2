"""The command that says where the store is."""

from pathlib import Path

from turnkeeper.cli.answer import answer
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.store.engines import ENGINES


def path(*, options: Options = EVERYWHERE) -> None:
    """Print where the store is. It need not be there yet.

    With --json the answer is {"store", "path", "exists"}; a memory store has no path.

    Examples:
      turnkeeper db path
      sqlite3 -readonly "$(turnkeeper db path)" 'select id, title from session limit 5'
    """
    scheme, _, place = options.url.partition(":")
    if scheme not in ENGINES or bool(place) is (scheme == "memory"):
        raise UsageError(f"{options.url!r} names no store; write sqlite:PATH, files:DIR or memory:")
    shown = str(Path(place).expanduser().absolute()) if place else None
    value = {"store": options.url, "path": shown, "exists": shown is not None and Path(shown).exists()}
    answer(options, value, lambda _: shown or f"{scheme}:")
