"""Tool: the interface to the actions of a model. A tool gets arguments and a context, and returns an output.

    ToolFailure             what went wrong, in words that the model reads and can act on
    ├── Denied              a rule says no; the model goes on without
    ├── Interrupted         what the call waited for was stopped from elsewhere; the model is told
    └── Rejected            the user said no; without feedback the session rests

A tool knows neither the store nor the loop: its caller hands it callbacks.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import anyio
import msgspec

from turnkeeper.core.permission import Deny
from turnkeeper.core.recall import Recalled, RecallHit
from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.agent import Agent
from turnkeeper.model.question import Question
from turnkeeper.model.refusal import NotFound, Refusal
from turnkeeper.model.request import ToolDefinition
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.tools.delegation import Delegation
from turnkeeper.tools.schema import schema_of
from turnkeeper.tools.services import ToolServices
from turnkeeper.workspace import files
from turnkeeper.workspace.jobs import Jobs

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ToolFailure(Exception):
    """The call failed. The text is for the model: the error, and the advice."""


class Denied(ToolFailure):
    """A rule denies the call."""

    def __init__(self, deny: Deny) -> None:
        super().__init__(deny.reason)
        self.rules = deny.rules


class Rejected(ToolFailure):
    """The user rejected the call. With feedback the model goes on by it; without, the session rests."""

    def __init__(self, words: str, feedback: str | None = None) -> None:
        said = f" The user says: {feedback}" if feedback else ""
        super().__init__(f"{words}{said}")
        self.feedback = feedback


class Interrupted(ToolFailure):
    """The work of the call was stopped by someone else, and not by cancelling the call."""


class Attachment(Value):
    """A file that goes with an output. ``url`` is a ``data:`` address."""

    mime: str
    url: str
    filename: str | None = None


class ToolOutput(Value):
    """The output of a tool: a title for people, the text for the model, and metadata for clients.

    A tool that bounds its own output says so with ``truncated`` in its metadata; all others are bounded for it.
    """

    title: str
    output: str
    metadata: JsonObject = {}
    attachments: tuple[Attachment, ...] = ()
    lost_bytes: int = 0
    """The bytes in the middle of the output that the tool did not keep."""


class AskPermission(Protocol):
    """Ask for permission."""

    async def __call__(
        self, permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject
    ) -> None:
        """Return when all patterns are allowed; raise Denied or Rejected. ``always`` is what an approval covers."""
        ...


class AskQuestions(Protocol):
    """Put questions to the user."""

    async def __call__(self, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
        """For each question the chosen labels or the typed text; raise Rejected if the user dismisses them."""
        ...


async def nobody_answers(questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
    """The default of ``ToolContext.question``: there is no user."""
    raise ToolFailure("Nobody is there to answer questions. Decide by yourself, and say what you assumed.")


class HandOver(Protocol):
    """Hand over to another agent."""

    async def __call__(self, agent: str, words: str) -> None:
        """Once the call is completed, ``agent`` is given a prompt with these words. Raises Invalid for no agent."""
        ...


async def nobody_takes_over(agent: str, words: str) -> None:
    """The default of ``ToolContext.hand_over``: there is no session."""
    raise ToolFailure("There is no other agent here.")


class Progress(Protocol):
    """Report the progress of a running call."""

    async def __call__(self, *, title: str | None = None, metadata: JsonObject | None = None) -> None:
        """Replace the title and the metadata of the running call, which clients show."""
        ...


class Recall(Protocol):
    """Access to all texts of the session, also to those that the model is no longer shown."""

    async def find(self, handle: str) -> Recalled:
        """The text of this handle, whole. Raises NotFound."""
        ...

    async def search(self, query: str) -> Sequence[RecallHit]:
        """The hits of these words, hidden texts first. Raises Invalid if there are no words."""
        ...


class NoRecall:
    """The default of ``ToolContext.recall``: there is no session."""

    async def find(self, handle: str) -> Recalled:
        """Raises NotFound."""
        raise NotFound(f"there is no text with the handle {handle!r}")

    async def search(self, query: str) -> Sequence[RecallHit]:
        """No hits."""
        return ()


class ToolContext(msgspec.Struct, frozen=True):
    """The information and the callbacks that a tool has besides its arguments."""

    directory: Path
    """The directory of the session; relative paths begin here."""
    worktree: Path
    """The top of the project; the root of the file system where there is none."""
    session_id: str
    message_id: str
    call_id: str
    ask: AskPermission
    progress: Progress
    todos: Callable[[], Awaitable[tuple[Todo, ...]]]
    set_todos: Callable[[tuple[Todo, ...]], Awaitable[None]]
    discovered: Callable[[Path], None]
    """Called for each file that was read, so that instruction files near it are found."""
    recall: Recall = msgspec.field(default_factory=NoRecall)
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    may: Callable[[str, Sequence[str]], bool] = lambda permission, patterns: True
    """Whether the rules allow these patterns of a permission without asking."""
    refuse_denied: Callable[[str, Sequence[str]], None] = lambda permission, patterns: None
    """Raise Denied if the rules deny one of these patterns. For what is asked later, so that no question is in vain."""
    services: ToolServices = msgspec.field(default_factory=ToolServices)
    """Objects that live longer than the call: files that were read, formatters, language servers."""
    confine: Callable[[], Confinement | None] = lambda: None
    """Returns the sandbox of commands; None for no sandbox. It reads the disk."""
    jobs: Jobs | None = None
    """The background jobs; None where there can be none."""
    question: AskQuestions = nobody_answers
    hand_over: HandOver = nobody_takes_over
    plan: Path | None = None
    """The plan file of the session, which need not exist."""
    delegation: Delegation | None = None
    """Hands the work of the call to another agent; None where no agent can be run."""
    acts: Callable[[], None] = lambda: None
    """Called before a tool acts that may ask again later: if the process then ends, the call is not run again."""
    writes: Callable[[Path], None] = lambda path: None
    """Called by a tool that ``names_files`` before it writes, moves or deletes a file."""

    @property
    def top(self) -> Path:
        """The top of the project's files, which the patterns of rules begin at."""
        return files.top(self.directory, self.worktree)


class AnyInput(msgspec.Struct, frozen=True):
    """The arguments of a tool with a ``schema``: the input as the model gave it."""

    given: JsonObject


class Tool(msgspec.Struct, Generic[Arguments], frozen=True):
    """A tool: a value, not a class to inherit."""

    name: str
    description: str
    parameters: type[Arguments]
    """The type of the arguments; the schema for the model is derived from it."""
    execute: Callable[[Arguments, ToolContext], Awaitable[ToolOutput]]
    permission: str
    """The permission under which rules apply to it; several tools may share one."""
    read_only: bool = False
    """Whether it changes no file of the project. Then no snapshot is taken before and after its calls."""
    names_files: bool = False
    """Whether it changes only files that it reports (``ToolContext.writes``), unlike a command."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Other names that models use for parameters, each with the right name."""
    is_offered: bool = True
    """Whether models are told of it."""
    describe: Callable[[Sequence[Agent]], str] | None = None
    """Makes its description from the agents that can be called. It is offered only if there are some."""
    suits: Callable[[str], bool] = lambda model_id: True
    """Whether a model with this id gets it."""
    asks_first: bool = True
    """Whether it acts only after its last ask. Then a call that waits for the user outlives its process: it is run
    again from its beginning, with the answer. False: such a call is settled as interrupted."""
    schema: JsonObject | None = None
    """The schema that a model is shown of a tool whose input is checked elsewhere; ``parameters`` is AnyInput then."""
    prepare: Callable[[], None] | None = None
    """Called on a thread when a model begins to write a call, so that less is left to do when the call runs."""

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Execute one call. Raises ToolFailure also for a Refusal, an error of the disk and a timeout."""
        begun = anyio.current_time()
        try:
            return await self.execute(arguments, context)
        except Refusal as refusal:
            raise ToolFailure(_sentence(str(refusal))) from refusal
        except OSError as error:
            named = f"{str(error.filename)!r}: " if error.filename is not None else ""
            words = error.strerror or str(error) or type(error).__name__
            if isinstance(error, TimeoutError) and not str(error):  # Python's own says nothing of its limit.
                words = f"The call timed out after {anyio.current_time() - begun:.2f} s."
            raise ToolFailure(_sentence(f"{named}{words}")) from error

    def definition(self) -> ToolDefinition:
        """The tool as a model is told of it."""
        schema = self.schema if self.schema is not None else schema_of(self.parameters)
        return ToolDefinition(name=self.name, description=self.description, schema=schema)


# A collection of tools has many kinds of arguments; each is decoded for its own tool, and only there.
AnyTool: TypeAlias = Tool[Any]


def text(name: str) -> str:
    """The description in ``texts``: a text for models is prose, and reviewed as such."""
    return resources.files("turnkeeper.tools").joinpath("texts", f"{name}.txt").read_text("utf-8").strip()


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:] if message else "The call failed."
