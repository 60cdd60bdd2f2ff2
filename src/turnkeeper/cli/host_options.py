"""The options of commands that run sessions for others: which sessions, and what is logged."""

from typing import Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import log_lines
from turnkeeper.cli.options import Options

Labels = Annotated[
    tuple[str, ...],
    Parameter(metavar="LABEL", help="Also run sessions with this label. Can be repeated."),
]
OnlyLabels = Annotated[bool, Parameter(help="Run no sessions without a label.")]
LogFormat = Annotated[Literal["text", "json"], Parameter(metavar="FORMAT", help="json logs one object per line.")]
LogLevel = Annotated[
    log_lines.LogLevel | None,
    Parameter(
        metavar="LEVEL",
        help="What to log on standard error: debug, info, warning or error. info logs every request of a server. Also "
        "TURNKEEPER_LOG_LEVEL; warning by default.",
    ),
]


def begin_log(format: LogFormat, level: LogLevel, options: Options) -> None:
    """Log what this process does on standard error; without a level as the environment says."""
    from turnkeeper.server import logs

    logs.begin(format, level or log_lines.level_of(options.environ) or "warning")
