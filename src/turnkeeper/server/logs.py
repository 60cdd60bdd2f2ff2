"""Logs of a server, on standard error: for people, or one JSON object a line. Never a query, a header or a body."""

import logging
import sys
import time
from typing import Final, Literal, TypeAlias

from turnkeeper.model.value import encode

LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

FIELDS: Final = ("method", "path", "operation", "status", "ms")
"""What a record of a request has beside its message."""


QUIET: Final = ("httpcore2", "httpx2")
"""Loggers that would write whole addresses, in which a provider may want its key."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """A record."""
        said: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return encode(said).decode()


def begin(format: LogFormat, level: LogLevel) -> None:
    """Send this process's log to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if format == "json" else logging.Formatter("%(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
