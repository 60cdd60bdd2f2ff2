"""Logs of a server on standard error, as text or as JSON lines. Queries, headers and bodies are never logged."""

import logging
import sys
import time
from typing import Final, Literal, TypeAlias

from turnkeeper.model.value import encode

LogFormat: TypeAlias = Literal["text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

FIELDS: Final = ("method", "path", "operation", "status", "ms")
"""Fields of an access log record."""


QUIET: Final = ("httpcore2", "httpx2")
"""Loggers that would write whole URLs, which may contain a provider's key."""


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


def begin(format: LogFormat, level: LogLevel) -> None:
    """Configure the log of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if format == "json" else logging.Formatter("%(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
