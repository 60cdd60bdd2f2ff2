"""Logs of a server on standard error, as text or as JSON lines. Queries, headers and bodies are never logged."""

import logging
import sys
import time
from types import TracebackType
from typing import Final, Literal, TypeAlias

from turnkeeper.model.value import encode
from turnkeeper.text.escapes import escaped

LogFormat: TypeAlias = Literal["text", "json"]
_Caught: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

FIELDS: Final = ("method", "path", "operation", "status", "ms")
"""Fields of an access log record."""


QUIET: Final = ("httpcore2", "httpx2")
"""Loggers that would write whole URLs, which may contain a provider's key."""

_NO_ROOM_S: Final = 60.0


class TextFormatter(logging.Formatter):
    """One line a record, and indented lines for a traceback: text of a request cannot pass for another record."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of logging.
        """The first line of a record."""
        return escaped(super().formatMessage(record))

    def formatException(self, ei: "_Caught") -> str:  # noqa: N802 - a method of logging.
        """The lines of a traceback."""
        return "\n".join(f"  {escaped(line)}" for line in super().formatException(ei).split("\n"))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line of JSON."""
        fields: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return encode(fields).decode()


class NoRoomFilter(logging.Filter):
    """Tells once a minute that no connection can be accepted, which asyncio says thousands of times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._told_at: float | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        if not record.getMessage().startswith("socket.accept() out of system resource"):
            return True
        if self._told_at is not None and record.created < self._told_at + _NO_ROOM_S:
            return False
        self._told_at = record.created
        reason = record.exc_info[1] if record.exc_info else None
        why = reason.strerror if isinstance(reason, OSError) else "the system has no room"
        record.msg = f"connections wait to be accepted: {why}; close clients, or raise the limit (`ulimit -n`)"
        record.args, record.exc_info = (), None
        return True


def begin(format: LogFormat, level: LogLevel) -> None:
    """Configure the log of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").addFilter(NoRoomFilter())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
