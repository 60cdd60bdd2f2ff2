"""Services: objects for the tools of a session that live longer than a call: reads, formatters, language servers."""

from collections.abc import Container
from pathlib import Path

import msgspec

from turnkeeper.model.skill import Skill
from turnkeeper.tools.reads import SessionReads
from turnkeeper.workspace.after_edit import Diagnose, Format, Prepare, diagnose_nothing, format_nothing, prepare_nothing
from turnkeeper.workspace.symbols import ConfinedSymbols, confined_symbols


class ToolServices(msgspec.Struct, frozen=True):
    """The services for the tools of one session. The defaults do nothing."""

    reads: SessionReads = msgspec.field(default_factory=SessionReads)
    """The files that the session has read."""
    format: Format = format_nothing
    prepare: Prepare = prepare_nothing
    diagnose: Diagnose = diagnose_nothing
    symbols: ConfinedSymbols = confined_symbols
    fetches_private: bool = False
    """Whether webfetch may reach addresses of this machine and of private networks."""
    skills: tuple[Skill, ...] = ()
    """The skills of the directory."""
    secrets: Container[Path] = ()
    """Files that no tool opens, also if a rule allows it."""
