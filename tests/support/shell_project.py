"""A project for shell commands, with a home and files around it, and what a command would ask for there."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from desk import Desk

from turnkeeper.core.permission import Ask, decide, parse_rules
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import Value
from turnkeeper.text.shell_rules import command_ask
from turnkeeper.tools.reach import shell_places
from turnkeeper.tools.tool import ToolContext

_FILES = (
    "README.md package.json Makefile .env src/app.py src/main.c tests/test_app.py docs/index.md a.txt b.txt"
    " packages/api/package.json packages/web/package.json scripts/deploy.sh"
)


ROOT_HOME = os.path.expanduser("~root")
LENIENT = parse_rules({"bash": {"*": "ask", "ls *": "allow", "echo *": "allow", "git status*": "allow"}}, "/home")
"""Rules that allow a few commands and ask about everything else."""


class Verdict(Value):
    """What a command asks for: the patterns, what an approval covers, the files it writes, the places outside."""

    command: str
    patterns: list[str]
    always: list[str]
    written: list[str] = []
    outside: list[str] = []
    computed: list[str] = []


class ShellProject(NamedTuple):
    """The directory that holds all, the project in it, and the home beside the project."""

    top: Path
    project: Path
    home: Path

    @classmethod
    def made(cls, top: Path) -> "ShellProject":
        top = top.resolve()
        made = cls(top, top / "project", top / "home")
        for name in _FILES.split():
            (made.project / name).parent.mkdir(parents=True, exist_ok=True)
            (made.project / name).write_text("inside\n")
        for name in ("home/.ssh/id_rsa", "secret/plan.txt", "secret.txt", "shadow/app.py"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text("SECRET\n")
        os.symlink(top / "secret", made.project / "linked")
        return made

    def desk(self, rules: list[Rule]) -> Desk:
        return Desk(self.project, self.project, rules)

    def context(self, desk: Desk) -> ToolContext:
        """The context of a desk, with the home of this project."""
        context = desk.context()
        environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "USER": "ada", "SHELL": "/bin/bash"}
        fields = {name: getattr(context, name) for name in context.__struct_fields__}
        return ToolContext(**{**fields, "environ": environ})

    def verdict(self, command: str) -> Verdict:
        """What a command asks for, with the places of this machine under short names."""
        context = self.context(self.desk([]))
        asked = command_ask(command, context.environ)
        places = shell_places(asked, self.project, context)
        return Verdict(
            command=command,
            patterns=list(asked.patterns),
            always=list(asked.always),
            written=places.edited,
            outside=sorted(self.short(str(place)) for place in places.outside),
            computed=list(asked.computed),
        )

    def asks(self, command: str) -> dict[str, list[str]]:
        """What the user is asked about a command, by permission, where a few harmless commands are allowed."""
        told = self.verdict(command)
        outside = [f"{place.rstrip('/')}/*" for place in told.outside]
        asked = {"bash": told.patterns, "edit": told.written, "external_directory": [*outside, *told.computed]}
        decisions = {permission: decide(LENIENT, permission, patterns) for permission, patterns in asked.items()}
        return {name: list(found.patterns) for name, found in decisions.items() if isinstance(found, Ask)}

    def short(self, place: str) -> str:
        for path, name in (
            (self.home, "~"),
            (self.project, "."),
            (self.top, ".."),
            (self.top.parent, "../.."),
            (ROOT_HOME, "~root"),
        ):
            place = re.sub(rf"^{re.escape(str(path))}(?=/|$)", name, place)
        return place
