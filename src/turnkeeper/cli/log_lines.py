"""Log of a command on standard error. Its lines name files and settings of a project."""

import logging
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.cli.screen import harmless
from turnkeeper.core import flags

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

LEVELS: Final[Mapping[str, LogLevel]] = {
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
}


class HarmlessFormatter(logging.Formatter):
    """Formats records without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return harmless(super().format(record))


def begin(environ: Mapping[str, str]) -> None:
    """Escape control characters in log lines of this process, unless its log is configured elsewhere.

    Variables say what is logged. Only what this program itself logs follows them: libraries would log addresses with
    keys in them.
    """
    if logging.lastResort is not None and not logging.getLogger().handlers:
        logging.lastResort.setFormatter(HarmlessFormatter())
        if (level := level_of(environ)) is not None:
            logging.lastResort.setLevel(level.upper())
            logging.getLogger("turnkeeper").setLevel(level.upper())


def level_of(environ: Mapping[str, str]) -> LogLevel | None:
    """The log level that variables set; None if they set none."""
    given = flags.LOG_LEVEL.value(environ)
    if given is not None and (level := LEVELS.get(given.strip().lower())) is not None:
        return level
    return "info" if flags.PRINT_LOGS.is_on(environ) else None
