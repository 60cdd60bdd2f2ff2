"""The options of commands that run sessions for others: which sessions, and what is logged."""

from typing import Annotated, Literal

from cyclopts import Parameter

Labels = Annotated[
    tuple[str, ...],
    Parameter(metavar="LABEL", help="Also run sessions with this label. Can be repeated."),
]
OnlyLabels = Annotated[bool, Parameter(help="Run no sessions without a label.")]
LogFormat = Annotated[Literal["text", "json"], Parameter(metavar="FORMAT", help="json logs one object per line.")]
