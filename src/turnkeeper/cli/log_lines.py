"""Log of a command: warnings on standard error, which name files and settings of a project."""

import logging

from turnkeeper.cli.screen import harmless


class HarmlessFormatter(logging.Formatter):
    """Formats records without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return harmless(super().format(record))


def begin() -> None:
    """Let warnings of this process have no control characters, unless somebody configured its log."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(HarmlessFormatter())
