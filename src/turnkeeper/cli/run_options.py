"""Options of the commands that run a session: which session, what the prompt holds, how the run is displayed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.trust import Trust
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.attachments import FileArgument
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.prompt import PartInput, Prompt, TextInput
    from turnkeeper.model.session import Session

Auto = Annotated[bool, Parameter(help="Allow every call that would be asked. Denied calls stay denied.")]


Thinking = Annotated[bool, Parameter(help="Show all reasoning of the model.")]
Model = Annotated[
    str | None,
    Parameter(
        name=("--model", "-m"), metavar="PROVIDER/MODEL", help="The model that answers.", completer=candidates.models
    ),
]
AgentName = Annotated[str | None, Parameter(metavar="NAME", help="The agent to use.", completer=candidates.agents)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The session that a prompt continues: a named one, the newest of a directory, a copy of it, or a new one."""

    session: Annotated[
        str | None,
        Parameter(name=("--session", "-s"), metavar="ID", help="Continue this session.", completer=candidates.sessions),
    ] = None
    continue_: Annotated[
        bool, Parameter(name=("--continue", "-c"), help="Continue the newest session of the directory.")
    ] = False
    fork: Annotated[bool, Parameter(help="Continue a copy of the session; with --session or --continue.")] = False
    dir: Annotated[Path | None, Parameter(metavar="DIR", help="The working directory; the current one by default.")] = (
        None
    )

    trust: Trust = False

    def directory(self, *, is_near: bool) -> Path:
        """The working directory. Raises UsageError for options that contradict each other."""
        if self.fork and self.session is None and not self.continue_:
            raise UsageError("--fork copies a session; name it with --session, or take the newest with --continue")
        if self.session is not None and self.continue_:
            raise UsageError("give --session or --continue, not both")
        if self.session is not None and self.dir is not None and not self.fork:
            raise UsageError("a session keeps its directory; leave out --dir, or add --fork")
        return names.directory(self.dir if self.dir is not None else Path.cwd(), is_near=is_near)

    async def find(self, tk: "Turnkeeper | Client", directory: Path | None) -> "Session | None":
        """The session to continue; None for a new one. A fork works in ``directory``, if there is one."""
        if self.session is not None:
            found = await tk.get(await names.session(tk, self.session))
        elif self.continue_:
            page = await tk.list(directory=directory, limit=1)
            if not page.items:
                raise NotFound(
                    f"no session works in {str(directory)!r} yet; leave out --continue to begin one, or name one of "
                    "another directory with --session; `turnkeeper session list --all` shows them"
                )
            found = page.items[0]
        else:
            return None
        elsewhere = directory if directory is not None and str(directory) != found.directory else None
        return await tk.fork(found.id, directory=elsewhere) if self.fork else found


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """The model, the agent and the files of a prompt."""

    model: Model = None
    agent: AgentName = None
    variant: Annotated[str | None, Parameter(metavar="NAME", help="A variant of the model, such as high.")] = None
    file: Annotated[
        list[str] | None,
        Parameter(
            name=("--file", "-f"), metavar="PATH", help="Attach a file; PATH:10-20 for some lines. Can be repeated."
        ),
    ] = None

    def files(self, directory: Path, options: Options) -> "list[FileArgument]":
        """The files to attach."""
        from turnkeeper.cli.attachments import attachment

        if self.file and not options.is_near:
            options.require_store("--file")
        return [attachment(one, directory) for one in self.file or []]

    def prompt(self, texts: "Sequence[TextInput]", files: "list[FileArgument]") -> "Prompt":
        """The prompt of texts and of files. Raises UsageError if it would be empty."""
        from turnkeeper.model.prompt import Prompt

        if not texts and not files:
            raise UsageError('give a message: turnkeeper run "list the files"')
        parts: tuple[PartInput, ...] = (*(one.part for one in files), *texts)
        return Prompt(parts=parts, agent=self.agent, model=names.model(self.model), variant=self.variant)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DisplayOptions:
    """How a run is displayed, and whether its permission requests are allowed."""

    format: Annotated[
        Literal["default", "json"], Parameter(metavar="FORMAT", help="json prints one object per line, live.")
    ] = "default"
    auto: Auto = False
    thinking: Thinking = False

    def live(self, options: Options) -> "Live":
        """The run with this display."""
        from turnkeeper.cli.live import Live

        as_json = options.json or self.format == "json"
        return Live(as_json=as_json, thinking=self.thinking, auto=self.auto, program=options.program)


NEW_SESSION = SessionOptions()
PLAIN_PROMPT = PromptOptions()
DEFAULT_DISPLAY = DisplayOptions()
