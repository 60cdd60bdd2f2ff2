"""Send a command: its template becomes a prompt, with the arguments, the outputs of its programs, and its mentions.

What is admitted is the prompt as it was expanded, so neither a changed file nor a restart changes it. Everything that
can be refused is refused before that.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from turnkeeper.core.child_rules import child_rules
from turnkeeper.core.commands import ShellPiece, expansion, find, is_subtask, joined, said
from turnkeeper.core.storable import storable
from turnkeeper.model.command import Command, CommandCall
from turnkeeper.model.message import model_choice
from turnkeeper.model.notification import Notification
from turnkeeper.model.prompt import FileInput, PartInput, Prompt, Receipt, SubtaskInput, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.model.value import encode
from turnkeeper.plugins import calls
from turnkeeper.plugins.hooks import COMMAND_BEFORE
from turnkeeper.plugins.payloads import CommandBeforeInput, CommandBeforeOutput
from turnkeeper.run.configured import DirectoryConfig
from turnkeeper.run.plan_mode import PlanFile
from turnkeeper.run.runtime import Runtime
from turnkeeper.run.settlements import session_rules
from turnkeeper.run.template_shell import TemplateShell
from turnkeeper.sessions.mentions import mentioned
from turnkeeper.sessions.prompt import known_receipt, message_id_of, prompt
from turnkeeper.sessions.symbols import session_symbols
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, identify

NAMED: Final = "The user names these files and folders; read of them what you need: {names}"


async def commands(runtime: Runtime, directory: Path) -> tuple[Command, ...]:
    """The commands of a directory, by name."""
    return tuple((await runtime.directories.commands(await identify(directory))).values())


async def send(store: Store, runtime: Runtime, session_id: str, call: CommandCall) -> Receipt:
    """Expand a command and admit the prompt. A call that is sent again under its id gets its first receipt.

    Raises NotFound for an unknown command, with the nearest names, and Forbidden if it runs a program that is not
    allowed; else as ``prompt`` does.
    """
    call, _ = storable(call, CommandCall, "the command")
    digest = sha256(encode(call.but(message_id=None))).hexdigest()[:32]
    session = await store.queries.session(session_id)
    if call.message_id is not None:
        empty = Prompt(message_id=call.message_id, parts=())
        known = await known_receipt(store, session_id, message_id_of(store, empty), empty, digest)
        if known is not None:
            return known
    place, config = await runtime.directories.resolve(session.directory)
    command = find(await runtime.directories.commands(place), call.command)
    if command.kind == "action":
        raise Invalid(f"{call.command!r} is no prompt but an action on the session; it has a method of its own")
    expansion = _Expansion(store, runtime, session, place, config, command, call)
    expanded = await expansion.prompt()
    plugins = runtime.directories.plugins.now(place.directory)
    if plugins.has(COMMAND_BEFORE.name):
        asked = CommandBeforeInput(command=call.command, session_id=session_id, arguments=call.arguments)
        given = CommandBeforeOutput(parts=list(expanded.parts))
        changed, _ = await plugins.trigger(COMMAND_BEFORE, asked, given, session_id=session_id)
        expanded = expanded.but(parts=tuple(changed.parts))
    return await prompt(store, runtime, session_id, expanded, digest=digest)


def executed(session: Session, call: CommandCall, message_id: str) -> Notification:
    """The notification that the prompt of a command was answered."""
    told = {"name": call.command, "arguments": call.arguments, "messageID": message_id, "sessionID": session.id}
    return Notification(
        type="command.executed",
        session_id=session.id,
        directory=session.directory,
        seq=0,
        properties=told,
        project_id=session.project_id,
    )


class _Expansion:
    """The expansion of one command to a prompt."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        session: Session,
        place: ProjectPlace,
        config: DirectoryConfig,
        command: Command,
        call: CommandCall,
    ) -> None:
        """Raises Invalid for an unknown agent, and for a model whose name is none."""
        self._store, self._runtime, self._session, self._place = store, runtime, session, place
        self._config, self._command, self._call = config, command, call
        self._caller = config.agent(call.agent or session.agent)
        self._agent = config.agent(command.agent) if command.agent is not None else self._caller
        self._model = model_choice(command.model) if command.model is not None else None

    async def prompt(self) -> Prompt:
        """The prompt that the command expands to."""
        if self._command.source == "mcp":
            return await self._served()
        found = expansion(self._command, self._call.arguments)
        shell = [piece for piece in found if isinstance(piece, ShellPiece)]
        outputs = await self._outputs(shell) if shell else []
        text = joined(found, outputs, self._call.input)
        if not text:
            raise Invalid(f"the command {self._call.command!r} has an empty template; give it arguments")
        own = said(self._command, found, self._call.arguments)
        named = await self._mentioned(own)
        return self._subtask(text, named) if self._is_subtask else self._plain(text, named)

    async def _served(self) -> Prompt:
        """The prompt of an MCP server. It is text: nothing in it is replaced, run or attached."""
        name, arguments = self._call.command, self._call.arguments
        found = await self._runtime.directories.mcp.prompt(self._place, name, arguments)
        text = joined([found.text], (), self._call.input)
        files = [FileInput(mime=file.mime, url=file.url, filename=file.filename) for file in found.files]
        if not text and not files:
            raise Invalid(f"the MCP server gave nothing for {name!r}")
        return self._plain(text or name, [*files, *await self._mentioned(arguments)])

    async def _mentioned(self, text: str) -> list[PartInput]:
        symbols = session_symbols(self._runtime, self._session, self._place, self._config, self._agent)
        servers = self._runtime.directories.mcp
        return await mentioned(text, self._place, self._config.agents, self._runtime.home, symbols, servers)

    @property
    def _is_subtask(self) -> bool:
        return is_subtask(self._command, self._agent)

    def _plain(self, text: str, named: Sequence[PartInput]) -> Prompt:
        own = self._agent.model if self._command.agent is not None else None
        return Prompt(
            message_id=self._call.message_id,
            parts=(TextInput(text=text), *named, *self._call.parts),
            agent=self._command.agent or self._call.agent,
            model=self._model or own or self._call.model,
            variant=self._command.variant or self._call.variant,
        )

    def _subtask(self, text: str, named: Sequence[PartInput]) -> Prompt:
        """The prompt with a Subtask. The calling model reads its result, and the files of the call."""
        paths = [_path(part) for part in named if isinstance(part, FileInput)]
        subtask = SubtaskInput(
            prompt="\n\n".join([text, *([NAMED.format(names=", ".join(paths))] if paths else [])]),
            description=self._command.description or self._call.command,
            agent=self._agent.name,
            model=self._model or self._agent.model,
            command=self._call.command,
        )
        return Prompt(
            message_id=self._call.message_id,
            parts=(subtask, *self._call.parts),
            agent=self._call.agent,
            model=self._call.model,
            variant=self._call.variant,
        )

    async def _outputs(self, shell: Sequence[ShellPiece]) -> list[str]:
        runtime, setup = self._runtime, await self._runtime.directories.setup(self._place)
        session = self._session
        if self._is_subtask:
            given, delegating = session.permission or (), setup.delegating
            inherited = child_rules(
                given,
                self._caller,
                self._agent,
                primary_tools=delegating.primary_tools,
                inherits_plan=delegating.inherits_plan,
            )
            session = session.but(permission=inherited)
        environ = await calls.environ(setup.plugins, setup.environ, self._place.directory, session_id=session.id)
        setup = msgspec.structs.replace(setup, environ=environ)
        plan = PlanFile.of(session, self._place, runtime.environ)
        running = TemplateShell(
            mint=self._store.mint,
            place=self._place,
            session=session,
            setup=setup,
            agent=self._agent.name,
            rules=session_rules(setup, plan, self._agent, session),
            approvals=runtime.approvals,
            ask=runtime.responders.permission,
            jobs=runtime.jobs,
        )
        return await running.outputs(shell, is_own=self._command.is_own)


def _path(part: FileInput) -> str:
    return unquote(urlsplit(part.url).path)
