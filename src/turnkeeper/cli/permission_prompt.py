"""Requests of a run to the user: asked at the terminal, or refused without one."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio

from turnkeeper.cli.awaited_line import awaited_line
from turnkeeper.cli.part_lines import arguments, patch_lines
from turnkeeper.cli.request_lines import cause_lines, covered_by_always, origin, patterns_asked
from turnkeeper.cli.screen import Screen, harmless, one_line, show
from turnkeeper.core.permission import is_protected
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import Question, QuestionReply, QuestionRequest
from turnkeeper.run.permission import NobodyToAsk
from turnkeeper.text.number import number_in

if TYPE_CHECKING:
    from turnkeeper.cli.feed import Display
    from turnkeeper.model.session import Session

COVERED_CHARS: Final = 40
"""What is covered by "always" stands beside that word, or on a line of its own if it is longer."""

Alone: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]


class Questioner(Protocol):
    """Asks the user for answers to requests."""

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


class NoTerminal:
    """Refuses without asking, and displays once for each permission how to allow it."""

    def __init__(self, display: "Display") -> None:
        self._display = display
        self._noted: set[str] = set()

    async def ask(self, request: PermissionRequest) -> Reply:
        """Say that the user cannot be asked."""
        if request.permission not in self._noted:
            self._noted.add(request.permission)
            self._display.note(
                f"! {request.permission} was refused for {patterns_asked(request)}: there is no terminal to ask on. "
                + how_to_allow(request)
            )
        raise NobodyToAsk


def how_to_allow(request: PermissionRequest) -> str:
    """How a request is allowed where nobody can be asked, by the narrowest setting if there is one."""
    import json

    if any(is_protected(request.permission, pattern) for pattern in request.patterns):
        return "A change of such a file is always asked about, whatever the rules say; --auto allows everything."
    rule = json.dumps({request.permission: dict.fromkeys(request.patterns, "allow")}, ensure_ascii=False)
    return f'To allow it, set "permission": {one_line(rule)} in turnkeeper.json; --auto allows everything.'


def parse_choice(question: Question, typed: str) -> tuple[str, ...] | None:
    """The answer of a typed line: options by their numbers, or the text itself; none for an empty line.

    None: there are several numbers, and the question takes one.
    """
    words = [word for word in typed.replace(",", " ").split() if word]
    labels = [option.label for option in question.options]
    numbers = [number for word in words if (number := number_in(word)) is not None and 1 <= number <= len(labels)]
    if words and len(numbers) == len(words):
        chosen = tuple(labels[number - 1] for number in numbers)
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
    """The action that a call asks permission for."""
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
