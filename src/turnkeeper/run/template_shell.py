"""Shell commands in the template of a command: allowed first, all of them, then run like calls of the bash tool.

They run before the prompt is admitted, so a refusal leaves nothing behind. A command of the user's own configuration
is the user's word already: its programs need no permission, unless an argument was inserted into their text. The
sandbox, the environment, the time limit and the bounds of outputs hold for all.
"""

from collections.abc import Sequence
from typing import Final

import anyio
import msgspec

from turnkeeper.core.commands import ShellPiece
from turnkeeper.core.limits import CALLS_PARALLEL_MAX, TEMPLATE_COMMANDS_MAX
from turnkeeper.core.permission import Allow, Ask, Deny, decide, offered
from turnkeeper.mint import Mint
from turnkeeper.model.permission import AskedBy, PermissionRequest, Rule, Ruleset
from turnkeeper.model.refusal import Forbidden, Invalid
from turnkeeper.model.session import Session
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject
from turnkeeper.outside_code import contained
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.permission import Asker, NobodyToAsk
from turnkeeper.text.surrogates import clean
from turnkeeper.tools.bash import BASH, BashArguments, needed
from turnkeeper.tools.tool import ToolContext, ToolFailure
from turnkeeper.tools.wanted import Wanted
from turnkeeper.workspace.approvals import Approvals
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.project import ProjectPlace

ADVICE: Final = (
    "a template's programs run before its prompt, when nobody can be asked here; allow it in `permission.{0}`, or "
    "define the command in your own configuration directory"
)

_Grant = tuple[str, tuple[str, ...]]
"""A permission, and the patterns that it is for."""


class TemplateShell(msgspec.Struct, frozen=True):
    """Runs the shell commands of a template under the rules of the agent that the prompt is for."""

    mint: Mint
    place: ProjectPlace
    session: Session
    setup: DirectorySetup
    agent: str
    rules: Ruleset
    approvals: Approvals
    ask: Asker | None
    """Asks the user of this process; None: there is none."""
    jobs: Jobs

    async def outputs(self, commands: Sequence[ShellPiece], *, is_own: bool) -> list[str]:
        """The outputs of the commands, in order; an error of one is its output.

        Raises Forbidden, before any of them is run, if one is not allowed.
        """
        _check(commands)
        granted: list[set[_Grant] | None] = []
        for piece in commands:
            granted.append(None if is_own and piece.is_literal else await self._granted(piece.command))
        bounds, said = self.setup.bounds(self.session.id), [""] * len(commands)
        limiter = anyio.CapacityLimiter(CALLS_PARALLEL_MAX)

        async def run(number: int, command: str) -> None:
            async with limiter:
                try:
                    output = await BASH.run(BashArguments(command=command), self._context(granted[number]))
                except ToolFailure as failure:
                    said[number] = f"[not run: {failure}]"
                else:
                    said[number] = (await bounds.bound(output)).output.output

        async with anyio.create_task_group() as group:
            for number, piece in enumerate(commands):
                group.start_soon(run, number, piece.command)
        return said

    async def _granted(self, command: str) -> set[_Grant]:
        """The confinement of a command that is wholly allowed. Raises Forbidden."""
        try:
            wanted = await needed(BashArguments(command=command), self._context(set()))
        except (ToolFailure, OSError) as error:
            raise Forbidden(f"!`{command}` is not run: {error}") from error
        asked = []
        for one in wanted:
            match decide(self.rules, one.permission, one.patterns, self._approved()):
                case Deny():
                    what = f"{one.permission} of {', '.join(one.patterns)}"
                    raise Forbidden(f"!`{command}` is not run: a rule of the agent {self.agent!r} denies {what}")
                case Ask(patterns=left):
                    asked.append((one, left))
        for one, left in asked:
            await self._ask_user(command, one, left)
        return {(one.permission, tuple(one.patterns)) for one in wanted}

    async def _ask_user(self, command: str, wanted: Wanted, left: Sequence[str]) -> None:
        patterns = tuple(map(clean, left))
        request = PermissionRequest(
            id=self.mint.ascending("per"),
            session_id=self.session.id,
            permission=wanted.permission,
            patterns=patterns,
            always=tuple(map(clean, offered(wanted.permission, patterns, wanted.always))),
            metadata=wanted.metadata,
            tool=AskedBy(message_id="", call_id=""),
        )
        needed = f"!`{command}` needs the permission {wanted.permission}: {ADVICE.format(wanted.permission)}"
        if self.ask is None:
            raise Forbidden(needed)
        try:
            with contained():
                reply = await self.ask(request)
        except NobodyToAsk:
            raise Forbidden(needed) from None
        if reply.answer not in ("once", "always"):
            raise Forbidden(f"!`{command}` is not run: you rejected it")
        if reply.answer == "always":
            rules = [Rule(permission=request.permission, pattern=one, action="allow") for one in request.always]
            self.approvals.add(self.session, rules)

    def _approved(self) -> tuple[Rule, ...]:
        return self.approvals.rules(self.approvals.place(self.session))

    def _context(self, granted: set[_Grant] | None) -> ToolContext:
        """The context of one command. ``granted`` is what it may do; None: everything that the sandbox allows."""

        async def ask(permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject) -> None:
            if granted is not None and (permission, tuple(patterns)) not in granted:
                raise ToolFailure("What it does has changed since it was allowed.")

        def may(permission: str, patterns: Sequence[str]) -> bool:
            # What the user's own command does is not asked, so it does not widen the sandbox either.
            return granted is None or isinstance(decide(self.rules, permission, patterns, self._approved()), Allow)

        return ToolContext(
            directory=self.place.directory,
            worktree=self.place.worktree,
            session_id=self.session.id,
            message_id="",
            call_id="",
            ask=ask,
            progress=_ignore,
            todos=_no_todos,
            set_todos=_keep_todos,
            discovered=lambda path: None,
            environ=self.setup.environ,
            may=may,
            services=self.setup.services(self.session.id),
            confine=lambda: self.setup.confine(self.session.id, self.rules, self._approved()),
            jobs=self.jobs,
        )


def _check(commands: Sequence[ShellPiece]) -> None:
    if len(commands) > TEMPLATE_COMMANDS_MAX:
        raise Invalid(f"a template may run {TEMPLATE_COMMANDS_MAX} programs at the most, and this one has more")
    if any("\0" in piece.command for piece in commands):
        raise Invalid("the arguments hold a NUL character, which no program can be given")


async def _ignore(*, title: str | None = None, metadata: JsonObject | None = None) -> None:
    """Output is not displayed."""


async def _no_todos() -> tuple[Todo, ...]:
    return ()


async def _keep_todos(todos: tuple[Todo, ...]) -> None:
    """No tool that is run here sets any."""
