"""The options with which a command that runs sessions says which ones."""

from typing import Annotated

from cyclopts import Parameter

Labels = Annotated[
    tuple[str, ...],
    Parameter(metavar="LABEL", help="Also run sessions with this label. Can be repeated."),
]
OnlyLabels = Annotated[bool, Parameter(help="Run no sessions without a label.")]
