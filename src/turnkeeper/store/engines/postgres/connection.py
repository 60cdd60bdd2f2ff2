"""Connections to the database of a store: how they are set up, and what their errors mean to a caller."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import errors

from turnkeeper.store.engine import StoreDamaged, StoreFull, StoreUnavailable
from turnkeeper.store.engines.postgres.address import Address

Connection = psycopg.Connection[tuple[Any, ...]]
"""The columns of a row have the types that the statement gives them."""
Cursor = psycopg.Cursor[tuple[Any, ...]]

STATEMENT_TIMEOUT_S: Final = 60.0
"""Seconds that one statement may take."""
LOCK_TIMEOUT_S: Final = 10.0
"""Seconds that a call waits for the lock of another process."""
RECONNECT_S: Final = 15.0
"""Seconds during which a call connects again after the connection was lost: a restart or a failover."""
OUTCOME_S: Final = 60.0
"""Seconds during which the outcome of a commit is looked up whose acknowledgement was lost."""
SILENCE_S: Final = 5.0
"""Seconds after which a host that says nothing in the middle of a transaction loses it. Below a lease and OUTCOME_S."""
PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 0.5

_STARTING: Final = ("the database system is starting up", "the database system is shutting down", "not yet accepting")
_REFUSED: Final = (
    ("password authentication failed", "the password or the user is wrong; see PGPASSWORD and ~/.pgpass"),
    ("no password supplied", "the server wants a password; set PGPASSWORD or write it to ~/.pgpass"),
    ("no pg_hba.conf entry", "the server refuses this user from this host; see its pg_hba.conf"),
    ('role "', "the server has no such user; name another one, or create it"),
    ('database "', "there is no such database; create it with `createdb`"),
    ("could not translate host name", "the name of the host is unknown; check the address"),
)
_ADVICE: Final = (
    (errors.DiskFull, "the disk of the server is full; make room and try again"),
    (errors.TooManyConnections, "the server has no connection left; raise its max_connections"),
    (errors.ReadOnlySqlTransaction, "the server only takes reads, as a standby does; name the primary"),
    (errors.InsufficientPrivilege, "this user may not do that; grant it the schema, or name another user"),
    (errors.QueryCanceled, "a statement took too long and was ended; try again, or look what keeps the server busy"),
    (errors.LockNotAvailable, "another process holds it locked; try again, or end that process"),
    (errors.DataCorrupted, "its data is damaged; run `turnkeeper doctor` and restore a back-up"),
    (errors.IndexCorrupted, "an index is damaged; run REINDEX, or restore a back-up"),
    (errors.UndefinedTable, "a table of the store is gone; restore a back-up"),
)
_KINDS: Final = (
    (errors.DiskFull, StoreFull),
    (errors.DataCorrupted, StoreDamaged),
    (errors.IndexCorrupted, StoreDamaged),
    (errors.UndefinedTable, StoreDamaged),
)
_LOST: Final = (
    psycopg.InterfaceError,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
    errors.TransactionTimeout,
    errors.ConnectionException,
    errors.ReadOnlySqlTransaction,  # After a failover, until the standby is promoted or the address leads elsewhere.
)


SETTINGS: Final = (
    "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, false),"
    " set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false),"
    # An acknowledged write survives a power cut, also if the server's own setting is weaker.
    " set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END, false)"
)
"""The settings of every connection of a store, besides ``Database.settings``."""


class OutcomeUnknown(StoreUnavailable):
    """The connection was lost during a commit and stayed so: the write is in the store whole, or not at all."""


class Database:
    """The database of a store."""

    def __init__(
        self,
        address: Address,
        *,
        statement_timeout_s: float,
        reconnect_s: float,
        outcome_s: float,
        silence_s: float,
        crash: Callable[[str], None],
    ) -> None:
        self.address, self.crash = address, crash
        self.reconnect_s, self.outcome_s = reconnect_s, outcome_s
        self._statement_timeout_s, self.silence_s = statement_timeout_s, silence_s
        self.closing = threading.Event()
        logging.getLogger("psycopg").addFilter(_is_worth_logging)

    def connect(self) -> Connection:
        """A connection in which each statement is a transaction, unless BEGIN says otherwise."""
        # The values are those of the address, whose types only libpq knows.
        parameters: dict[str, Any] = dict(self.address.parameters)
        connection = psycopg.connect(autocommit=True, **parameters)
        try:
            connection.execute(SETTINGS, self.settings)
        except BaseException:
            disconnect(connection)
            raise
        return connection

    @property
    def settings(self) -> tuple[str, ...]:
        """The values for ``SETTINGS``."""
        return (
            f'"{self.address.schema}"',
            milliseconds(self._statement_timeout_s),
            milliseconds(LOCK_TIMEOUT_S),
            milliseconds(self.silence_s),
        )

    def patience(self, seconds: float) -> "Patience":
        """Pauses between tries to connect again, for so many seconds or until the store is closed."""
        return Patience(self.closing, seconds)

    def unavailable(self, error: psycopg.Error) -> StoreUnavailable:
        """The exception for an error of the driver, with advice and without the password."""
        said = " ".join(self.address.without_password(str(error)).split())
        advice = next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
        if not advice and error.sqlstate is None:
            advice = next((advice for phrase, advice in _REFUSED if phrase in said), _NOT_REACHED)
        kind = next((kind for known, kind in _KINDS if isinstance(error, known)), StoreUnavailable)
        refusal = kind(f"{self.name}: {advice} ({said})" if advice else f"{self.name}: {said}")
        refusal.__cause__ = error
        return refusal

    def unknown(self, error: Exception) -> OutcomeUnknown:
        """The exception for a commit whose outcome could not be looked up."""
        refusal = OutcomeUnknown(
            f"{self.name}: the connection was lost during a commit and could not be made again; the write is in the "
            "store whole or not at all: read before you write again"
        )
        refusal.__cause__ = error
        return refusal

    def closed(self) -> StoreUnavailable:
        """The exception for a call to a closed store."""
        return StoreUnavailable(f"{self.name} was closed; open it again")

    @property
    def name(self) -> str:
        """The store for messages, without its password."""
        return f"the store {self.address.shown!r}"


_NOT_REACHED: Final = "the server cannot be reached; check that it runs, and the address"


class Patience:
    """Counts the pauses of one call; they grow, and end after a given time."""

    def __init__(self, closing: threading.Event, seconds: float) -> None:
        self._closing, self._deadline, self._pause_s = closing, time.monotonic() + seconds, PAUSE_FIRST_S

    def pause(self) -> bool:
        """Wait before the next try; False if there is no time for one."""
        left = self._deadline - time.monotonic()
        if left <= 0 or self._closing.wait(min(self._pause_s, left)):
            return False
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)
        return True


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that another one may work."""
    if isinstance(error, _LOST):
        return True
    # Without a code the error is the driver's own: the server has not answered the statement.
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None and not is_refused(error)


def is_refused(error: psycopg.Error) -> bool:
    """Whether the server, or the address, refuses every connection; trying again would not help."""
    return error.sqlstate is None and any(phrase in str(error) for phrase, _ in _REFUSED)


def is_starting(error: psycopg.Error) -> bool:
    """Whether the server is there and not ready yet."""
    return isinstance(error, errors.CannotConnectNow) or any(phrase in str(error) for phrase in _STARTING)


def disconnect(connection: Connection) -> None:
    """Close a connection; the server rolls back its transaction."""
    with suppress(psycopg.Error):
        connection.close()


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Whether a record of the driver says what no exception does: of a lost connection it logs each step that fails."""
    return not str(record.msg).startswith("error ignored")


def milliseconds(seconds: float) -> str:
    """Seconds as the server takes them in a setting."""
    return str(int(seconds * 1000))
