"""A session as a person names it, for the signatures of commands."""

from typing import Annotated

from cyclopts import Parameter

SessionName = Annotated[str, Parameter(metavar="ID", help="The session: its id, the beginning of it, or its slug.")]
"""What ``names`` reads."""
