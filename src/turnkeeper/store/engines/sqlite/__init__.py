"""The SQLite engine: one file with a write-ahead log, one thread that writes, and readers that never wait for it.

A write goes ``SqliteEngine.append -> Writer.submit -> (queue) -> WriteConnection.write -> SQL``. The writer thread
takes all jobs that queued up while the disk was busy and writes them in one transaction (group commit). A job is
answered after the commit is on disk. Between transactions the thread tidies: it copies the write-ahead log into the
file, packs old entries and indexes words.

A read of a few rows runs on the event loop's thread as long as such reads are quick (``InlinePolicy``); every other
read runs on one of a few threads.
"""

from turnkeeper.store.engines.sqlite.engine import SqliteEngine
from turnkeeper.store.engines.sqlite.schema import Layout

__all__ = ["Layout", "SqliteEngine"]
