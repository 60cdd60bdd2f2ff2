"""Permission requests of a run: asked at the terminal, refused without one, and answered for a server's session."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from turnkeeper.cli.awaited_line import awaited_line
from turnkeeper.cli.part_lines import arguments, patch_lines
from turnkeeper.cli.request_lines import cause_lines, covered_by_always, origin, patterns_asked
from turnkeeper.cli.screen import Screen, harmless, one_line, show
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import Question, QuestionReply, QuestionRequest
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.run.permission import Asker, NobodyToAsk, QuestionAsker

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.feed import Display
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session

COVERED_CHARS: Final = 40
"""What is covered by "always" stands beside that word, or on a line of its own if it is longer."""

T = TypeVar("T")
Alone: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]


class Questioner(Protocol):
    """Who puts requests to the user."""

    lock: anyio.Lock
    """Held while nothing else may be displayed."""
    sessions: "Callable[[str], Awaitable[Session]] | None"
    """Finds the session that asks, once there is a store or a server."""

    async def ask(self, request: PermissionRequest) -> Reply:
        """Ask for a permission."""

    async def answer(self, request: QuestionRequest) -> QuestionReply:
        """Ask the questions of a model."""


class TerminalPrompt:
    """Asks at the terminal, one question at a time. Nothing else is displayed meanwhile."""

    def __init__(self, display: "Display", alone: Alone = nullcontext) -> None:
        """``alone`` is a context with exclusive use of the terminal."""
        self._display, self._alone = display, alone
        self.lock = anyio.Lock()
        """Held while a question is on the screen."""
        self.sessions: Callable[[str], Awaitable[Session]] | None = None
        """Finds the session that asks, once there is a store or a server."""

    async def ask(self, request: PermissionRequest) -> Reply:
        """Ask until there is a valid answer."""
        async with self.lock, self._alone():
            self._display.close()
            screen = Screen.of(sys.stderr)
            show("\n".join(["", *permission_lines(screen, request), *await self._origin(request)]), to=sys.stderr)
            while True:
                reply = parse_reply(await self._line(_choices(screen, request)))
                if reply is not None:
                    return reply

    async def answer(self, request: QuestionRequest) -> QuestionReply:
        """Ask the questions of a model one after the other. The end of input dismisses them."""
        given: list[tuple[str, ...]] = []
        async with self.lock, self._alone():
            self._display.close()
            screen = Screen.of(sys.stderr)
            if asked_by := await self._origin(request):
                show("\n".join(["", *asked_by]), to=sys.stderr)
            for question in request.questions:
                show("\n".join(["", *question_lines(screen, question)]), to=sys.stderr)
                chosen = None
                while chosen is None:
                    line = await self._line(f"{screen.paint(ways_to_answer(question), 'dim')}\n> ")
                    if line is None:
                        return QuestionReply()
                    chosen = parse_choice(question, line)
                given.append(chosen)
        return QuestionReply(answers=tuple(given))

    async def _origin(self, request: PermissionRequest | QuestionRequest) -> list[str]:
        """A line that names the Child Session which asks."""
        found = await origin(self.sessions, request.session_id) if self.sessions is not None else ""
        return [f"  {found}"] if found else []

    async def _line(self, prompt: str) -> str | None:
        """Read a line; None at the end of input."""
        _discard_typed()
        print(prompt, end="", file=sys.stderr, flush=True)
        try:
            return await awaited_line()
        except BaseException:
            print(file=sys.stderr)
            raise


class RemotePermissions:
    """Asks the requests of a session here that a server or another process runs, and sends the replies.

    A request that is answered elsewhere first is withdrawn.
    """

    def __init__(
        self, client: "Turnkeeper | Client", session_id: str, ask: Asker, question: QuestionAsker, group: TaskGroup
    ) -> None:
        self._client, self._session_id, self._ask, self._question, self._group = (
            client,
            session_id,
            ask,
            question,
            group,
        )
        self._asked: dict[str, anyio.CancelScope] = {}
        self._family = {session_id}
        """The session and its descendants, whose requests are asked here, too."""

    async def begin(self, *, is_attended: bool) -> None:
        """Ask the requests that are already open. Without a user they are left alone, also if they are announced."""
        directory = (await self._client.get(self._session_id)).directory
        self._family |= {one.id for one in await self._client.children(self._session_id, recursive=True)}
        permissions = await self._client.permissions(directory=directory)
        questions = await self._client.questions(directory=directory)
        if not is_attended:
            known = [*(one.id for one in permissions), *(one.id for one in questions)]
            self._asked |= {request_id: anyio.CancelScope() for request_id in known}
            return
        for one in permissions:
            if one.session_id in self._family:
                self._start(one.id, self._answer, one)
        for asked in questions:
            if asked.session_id in self._family:
                self._start(asked.id, self._answer_questions, asked)

    async def follow(self, notifications: "AsyncIterator[Notification | Delta]") -> None:
        """Ask what the descendants of the session ask from now on. ``notifications`` are those of all sessions."""
        from turnkeeper.model.session import Session

        async for one in notifications:
            if not isinstance(one, Notification):
                continue
            match one.type, one.properties:
                case "session.created", {"info": Session(id=made, parent_id=parent_id)} if parent_id in self._family:
                    self._family.add(made)
            if one.session_id in self._family and one.session_id != self._session_id:
                self.take(one)

    def take(self, one: Notification | Delta) -> None:
        """Ask a new request, or withdraw one that was answered."""
        if not isinstance(one, Notification):
            return
        if one.type == "permission.asked":
            import msgspec

            asked = msgspec.convert(one.properties, PermissionRequest)
            self._start(asked.id, self._answer, asked)
        elif one.type == "question.asked":
            import msgspec

            request = msgspec.convert(one.properties, QuestionRequest)
            self._start(request.id, self._answer_questions, request)
        elif one.type in ("permission.replied", "question.replied", "question.rejected"):
            scope = self._asked.get(str(one.properties.get("requestID")))
            if scope is not None:
                scope.cancel()

    def _start(self, request_id: str, answer: Callable[[T], Coroutine[object, object, None]], asked: T) -> None:
        if request_id not in self._asked:
            self._asked[request_id] = anyio.CancelScope()
            self._group.start_soon(answer, asked, name=f"ask {request_id}")

    async def _answer_questions(self, asked: QuestionRequest) -> None:
        with self._asked[asked.id]:
            reply = await self._question(asked)
            try:
                await self._client.answer(asked.id, reply.answers, absence=reply.absence)
            except (NotFound, Conflict):
                return  # Another client has answered, or the session was stopped.

    async def _answer(self, asked: PermissionRequest) -> None:
        with self._asked[asked.id]:
            try:
                reply = await self._ask(asked)
            except NobodyToAsk:
                reply = Reply(answer="reject", absence="nobody")
            try:
                await self._client.reply(asked.id, reply.answer, message=reply.feedback, absence=reply.absence)
            except (NotFound, Conflict):
                return  # Another client has answered, or the session was stopped.


class NoTerminal:
    """Refuses without asking, and displays once for each permission how to allow it."""

    def __init__(self, display: "Display") -> None:
        self._display = display
        self._noted: set[str] = set()

    async def ask(self, request: PermissionRequest) -> Reply:
        """Say that the user cannot be asked."""
        if request.permission not in self._noted:
            self._noted.add(request.permission)
            wanted = ", ".join(map(one_line, request.patterns))
            self._display.note(
                f"! {request.permission} was refused for {wanted}: there is no terminal to ask on. To allow it, set "
                f'"permission": {_rule(request)} in turnkeeper.json; --auto allows everything.'
            )
        raise NobodyToAsk


def _rule(request: PermissionRequest) -> str:
    """The narrowest setting that allows a request."""
    import json

    return one_line(json.dumps({request.permission: dict.fromkeys(request.patterns, "allow")}, ensure_ascii=False))


def parse_choice(question: Question, typed: str) -> tuple[str, ...] | None:
    """The answer of a typed line: options by their numbers, or the text itself; none for an empty line.

    None: there are several numbers, and the question takes one.
    """
    words = [word for word in typed.replace(",", " ").split() if word]
    labels = [option.label for option in question.options]
    if words and all(word.isdecimal() and 1 <= int(word) <= len(labels) for word in words):
        chosen = tuple(labels[int(word) - 1] for word in words)
        return chosen if question.multiple or len(chosen) == 1 else None
    return (typed.strip(),) if typed.strip() else ()


def parse_reply(typed: str | None) -> Reply | None:
    """The reply of a typed line; None for an empty one. Any other text rejects, and is feedback for the model."""
    if typed is None:
        return Reply(answer="reject")
    match typed.strip().casefold():
        case "":
            return None
        case "y" | "yes":
            return Reply(answer="once")
        case "a" | "always":
            return Reply(answer="always")
        case "n" | "no":
            return Reply(answer="reject")
    return Reply(answer="reject", feedback=typed.strip())


def question_lines(screen: Screen, question: Question) -> Iterator[str]:
    """A question of the model, with its numbered options."""
    yield screen.paint(f"? {harmless(question.question)}", "bold", "yellow")
    for number, option in enumerate(question.options, 1):
        yield f"  {number}. {one_line(option.label)}  {screen.paint(one_line(option.description), 'dim')}"


def ways_to_answer(question: Question) -> str:
    """How a question can be answered."""
    ways = (
        ["the numbers of your choices" if question.multiple else "the number of your choice"]
        if question.options
        else []
    )
    return ", or ".join([*ways, *(["your own words"] if question.custom is not False else []), "nothing to skip"])


def permission_lines(screen: Screen, request: PermissionRequest) -> Iterator[str]:
    """What a call wants to do."""
    what = {
        "edit": "Change a file?",
        "bash": "Run a command?",
        "external_directory": "Leave the project?",
        "doom_loop": "The same call for the third time. Go on?",
    }.get(request.permission, f"Use {request.permission}?")
    yield screen.paint(f"? {harmless(what)}", "bold", "yellow")
    yield from (f"  {line}" for line in _about(screen, request))
    yield from (f"  {line}" for line in cause_lines(request))
    if len(covered := _covered(screen, request)) > COVERED_CHARS:
        yield f"  always allows: {covered}"


def always_key(screen: Screen, request: PermissionRequest) -> str:
    """The word "always", with what it allows unless that is long."""
    covered = _covered(screen, request)
    return f"always ({covered})" if len(covered) <= COVERED_CHARS else "always"


def _covered(screen: Screen, request: PermissionRequest) -> str:
    covered = covered_by_always(request)
    return "the same" if [covered] == list(_about(screen, request)) else covered


def _about(screen: Screen, request: PermissionRequest) -> Iterator[str]:
    match request.permission, request.metadata:
        case "bash", {"command": str(command)}:
            yield from harmless(command).splitlines()
        case "edit", {"diff": str(patch), "filediff": {"file": str(name)}}:
            yield one_line(name)
            yield from patch_lines(screen, patch, lines_max=40)
        case "doom_loop", {"input": dict() as given}:
            yield one_line(f"{', '.join(request.patterns)} {arguments(given)}")
        case _:
            yield patterns_asked(request)


def _choices(screen: Screen, request: PermissionRequest) -> str:
    keys = f"y = once, a = {always_key(screen, request)}, n = no, or say what to do instead"
    return f"{screen.paint(keys, 'dim')}\n> "


def _discard_typed() -> None:
    """Discard what was typed before the question appeared."""
    import termios

    try:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    except termios.error:
        return
