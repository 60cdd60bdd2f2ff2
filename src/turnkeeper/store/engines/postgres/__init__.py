"""The Postgres engine: one schema of a database, for stores that several hosts use.

A write goes ``PostgresEngine.append -> Writer.submit -> (queue) -> Transaction -> SQL``. The writer thread takes all
jobs that queued up during the last commit and writes them in one transaction (group commit): it locks the rows of their
logs, checks each job against them, writes with one statement for each table, and commits. A job is answered after the
commit is on the server's disk.

Reads run on a few threads with a connection each. Writes of other processes are told by NOTIFY.
"""

from turnkeeper.store.engines.postgres.engine import PostgresEngine
from turnkeeper.store.engines.postgres.schema import Layout

__all__ = ["Layout", "PostgresEngine"]
