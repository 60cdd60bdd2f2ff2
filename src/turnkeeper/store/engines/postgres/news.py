"""News of other processes: after a commit a writer tells the names of its logs (NOTIFY), and listeners hear them.

News may be lost, with a connection or because a process ends between its commit and its NOTIFY. So they only save
time: a follower of a log also looks now and then. They are sent after the commit and not with it, because Postgres
lets only one transaction with a NOTIFY commit at a time.
"""

from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from typing import Final, TypeAlias

from turnkeeper.store.engines.postgres.connection import Connection, Database
from turnkeeper.store.engines.postgres.notify import notify, packed, unpacked

NAMES_MAX: Final = 2000
"""If more logs were written at once, listeners are asked to poll all of them."""
ALL: Final = "*"

Names: TypeAlias = Collection[str] | None
"""The logs that other processes have written; None if it may be any."""
Heard: TypeAlias = Callable[[Names], None]


def channel(database: Database) -> str:
    """The channel of this store. Channels belong to the database, which may hold more stores."""
    return f"turnkeeper_{sha256(database.address.schema.encode()).hexdigest()[:16]}"


def tell(connection: Connection, database: Database, writer: bytes, names: Iterable[str]) -> None:
    """Tell all listeners that these logs were written."""
    told = list(dict.fromkeys(names))
    notify(connection, channel(database), packed(writer.hex(), told if len(told) <= NAMES_MAX else [ALL]))


def read(payloads: Iterable[str], own: str) -> Names:
    """The logs that payloads name, except those of the writer ``own``."""
    names = list(dict.fromkeys(unpacked(payloads, own)))
    return None if ALL in names else names
