"""Commands about requests to the user: permission list, allow, deny, saved, revoke; question list, answer, reject."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer as show_answer
from turnkeeper.cli.output import answer_items
from turnkeeper.cli.request_lines import cause_lines, covered_by_always, origin, patterns_asked
from turnkeeper.cli.screen import Column, Screen, one_line, table
from turnkeeper.cli.status_word import running_owner
from turnkeeper.model.refusal import Conflict, NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.permission import PermissionAnswer, PermissionRequest
    from turnkeeper.model.question import Question, QuestionRequest
    from turnkeeper.run.coordinator import Outcome

RequestName: TypeAlias = Annotated[str, Parameter(metavar="ID", help="The request, or the first characters of its id.")]
Place: TypeAlias = Annotated[Path | None, Parameter(metavar="DIR", help="Only requests of sessions in this directory.")]
Recorded: TypeAlias = Annotated[bool, Parameter(help="Only record the answer; do not run the session on.")]


async def list_permissions(*, directory: Place = None, options: Options) -> None:
    """List the permission requests that wait for an answer.

    They stay until they are answered, also if the process that asked is gone.
    With --server these are the requests of one directory, by default the current
    one. With --json the answer is {"items": [REQUEST]}.

    For example:
      turnkeeper permission list
      turnkeeper permission list --directory . --json | jq -r '.items[].id'
    """
    async with options.sessions(read_only=True) as tk:
        found = list(await tk.permissions(directory=_place(directory, options)))
        origins = await _origins(tk, found)
    text = "No permission request waits."
    answer_items(options, found, lambda screen: _permissions(screen, found, origins), empty=text)


async def allow(
    id: RequestName,
    /,
    *,
    always: Annotated[bool, Parameter(help="Allow it for good in this project, and what else it covers.")] = False,
    record_only: Recorded = False,
    options: Options,
) -> int:
    """Allow a call that waits for permission.

    The answer is recorded. If no process runs the session, it is then run here
    until it rests or asks again, unless --record-only is given; a process that
    runs it finds the answer by itself, and so does a server. With --json the
    answer is {"id", "sessionID", "answer", "outcome"}, without "outcome" if
    nothing was run.

    For example:
      turnkeeper permission allow per_1e0ae3b0a001
      turnkeeper permission allow per_1e0ae3b0a001 --always
    """
    return await _reply(id, "always" if always else "once", None, record_only, options)


async def deny(
    id: RequestName,
    /,
    *,
    message: Annotated[
        str | None,
        Parameter(metavar="TEXT", help="Advice: the model then goes on.", allow_leading_hyphen=True),
    ] = None,
    record_only: Recorded = False,
    options: Options,
) -> int:
    """Refuse a call that waits for permission.

    All other calls of its session that wait for permission are refused with it.
    Without a message the session rests. The rest is as with `permission allow`.

    For example:
      turnkeeper permission deny per_1e0ae3b0a001
      turnkeeper permission deny per_1e0ae3b0a001 --message "use the test database"
    """
    return await _reply(id, "reject", message, record_only, options)


async def saved(*, options: Options) -> None:
    """List what was allowed for good.

    Such an approval holds in its repository with all its worktrees, or outside
    of repositories in its directory. It answers what the rules would ask and
    never undoes a deny. With --json the answer is {"items": [{"id", "projectID",
    "directory", "permission", "pattern", "created"}]}.

    For example:
      turnkeeper permission saved
    """
    async with _answering(options) as tk:
        found = list(await tk.approvals())
    answer_items(
        options,
        found,
        lambda screen: table(
            screen,
            Column("ID", [one.id for one in found], ("cyan",)),
            Column("PROJECT", [one.directory or one.project_id for one in found]),
            Column("PERMISSION", [one_line(one.permission) for one in found]),
            Column("PATTERN", [one_line(one.pattern) for one in found], least=16),
        ),
        empty="Nothing is allowed for good.",
    )


async def revoke(
    id: Annotated[str, Parameter(metavar="ID", help="The approval, as `permission saved` lists it.")],
    /,
    *,
    options: Options,
) -> None:
    """Take back what was allowed for good.

    For example:
      turnkeeper permission revoke psv_1e0ae3b0a001
    """
    async with _answering(options) as tk:
        found = _named("approval", id, [one.id for one in await tk.approvals()])
        await tk.revoke(found)
    show_answer(options, {"id": found}, lambda screen: f"Revoked  {screen.paint(found, 'cyan')}")


async def list_questions(*, directory: Place = None, options: Options) -> None:
    """List the questions of models that wait for an answer.

    They stay until they are answered, also if the process that asked is gone.
    With --server these are the questions of one directory, by default the
    current one. With --json the answer is {"items": [REQUEST]}.

    For example:
      turnkeeper question list
    """
    async with options.sessions(read_only=True) as tk:
        found = list(await tk.questions(directory=_place(directory, options)))
        origins = await _origins(tk, found)
    answer_items(options, found, lambda screen: _questions(screen, found, origins), empty="No question waits.")


async def answer(
    id: RequestName,
    /,
    *answers: Annotated[
        str, Parameter(metavar="ANSWER", help="One for each question: a label, several with commas, or your own text.")
    ],
    record_only: Recorded = False,
    options: Options,
) -> int:
    """Answer the questions of a model, in their order.

    What happens then is as with `permission allow`.

    For example:
      turnkeeper question answer que_1e0ae3b0a001 "Red" "Small, Large"
    """

    async def given(tk: "Turnkeeper | Client", found: str) -> None:
        request = next(one for one in await tk.questions() if one.id == found)
        asked, said = len(request.questions), len(answers)
        if asked != said:
            raise UsageError(
                f"{found} asks {asked} question(s) and you gave {said} answer(s); give one for each question, "
                "in quotes if it has blanks"
            )
        await _give(tk, found, [parse_answer(*pair) for pair in zip(request.questions, answers, strict=True)])

    return await _answer("question", id, "answered", given, record_only, options)


async def reject(id: RequestName, /, *, record_only: Recorded = False, options: Options) -> int:
    """Dismiss the questions of a model. The session then rests.

    For example:
      turnkeeper question reject que_1e0ae3b0a001
    """
    return await _answer("question", id, "dismissed", lambda tk, found: _give(tk, found, None), record_only, options)


def parse_answer(question: "Question", given: str) -> tuple[str, ...]:
    """The labels or the text that an answer gives."""
    labels = {option.label.casefold(): option.label for option in question.options}
    parts = [part.strip() for part in given.split(",")]
    if question.multiple and all(part.casefold() in labels for part in parts):
        return tuple(labels[part.casefold()] for part in parts)
    return (labels.get(given.strip().casefold(), given),) if given.strip() else ()


async def _reply(id: str, given: "PermissionAnswer", message: str | None, record_only: bool, options: Options) -> int:
    async def reply(tk: "Turnkeeper | Client", found: str) -> None:
        if (store := local_store(tk)) is not None:
            await store.reply(found, given, message=message, resume=False)
        else:
            await tk.reply(found, given, message=message)

    return await _answer("permission request", id, given, reply, record_only, options)


async def _give(tk: "Turnkeeper | Client", request_id: str, given: Sequence[Sequence[str]] | None) -> None:
    if (store := local_store(tk)) is not None:
        await store.answer(request_id, given, resume=False)
    else:
        await tk.answer(request_id, given)


async def _answer(
    kind: str,
    id: str,
    said: str,
    give: "Callable[[Turnkeeper | Client, str], Awaitable[None]]",
    record_only: bool,
    options: Options,
) -> int:
    """Record an answer, and run the session on if no process runs it; the exit code."""
    from turnkeeper.cli.live import Live

    live = Live(as_json=False, thinking=False, auto=False, program=options.program)
    is_shown = live.can_ask and not options.json
    reason: dict[str, object] = {}
    code = 0
    async with _answering(options, live if is_shown else None) as tk:
        waiting = await (tk.questions() if kind == "question" else tk.permissions())
        sessions = {one.id: one.session_id for one in waiting}
        found = _named(kind, id, list(sessions))
        session_id = sessions[found]
        await give(tk, found)
        store = local_store(tk)
        if store is not None and not record_only and await running_owner(store, session_id) is None:
            # The sessions that wait for this one go on, too: the first of them runs the others.
            first = await store.runtime.children.root_of(session_id)
            if is_shown:
                code = await live.run(store, first, partial(store.run, first))
            else:
                outcome = await _until_it_asks(store, first)
                reason = {"outcome": outcome.reason or outcome.kind}
    report = {"id": found, "sessionID": session_id, "answer": said, **reason}
    then = f"; the session went on and rests: {reason['outcome']}" if reason else ""
    show_answer(options, report, lambda screen: f"{said}  {screen.paint(found, 'cyan')} of {session_id}{then}")
    return code


@asynccontextmanager
async def _answering(options: Options, live: "Live | None" = None) -> "AsyncIterator[Turnkeeper | Client]":
    """Gives answers, at a server or in a store. Further requests are asked at the terminal, or left waiting."""
    from turnkeeper.run.runtime import Settings

    if options.address is not None:
        async with options.client() as client:
            yield client
        return
    ask, question = (live.ask, live.question) if live is not None else (None, None)
    async with options.run(Path.cwd(), Settings(ask=ask, question=question, environ=options.environ)) as tk:
        yield tk


async def _until_it_asks(tk: "Turnkeeper", session_id: str) -> "Outcome":
    """Wait until a session rests, or waits for the next answer, which another command gives."""
    import anyio

    from turnkeeper.core.next_action import WAITS
    from turnkeeper.run.coordinator import Outcome

    outcome = Outcome(kind="rested", reason=WAITS)
    async with tk.subscribe() as heard, anyio.create_task_group() as group:

        async def rest() -> None:
            nonlocal outcome
            outcome = await tk.run(session_id)
            group.cancel_scope.cancel()

        group.start_soon(rest)
        async for one in heard:  # Also what Child Sessions ask: this process runs no others.
            if one.type in ("permission.asked", "question.asked"):
                break
        group.cancel_scope.cancel()
    return outcome


def _named(kind: str, given: str, known: list[str]) -> str:
    """The id that is meant: equal to the given text, or the only one that begins with it."""
    found = [one for one in known if one == given] or [one for one in known if one.startswith(given)]
    if len(found) > 1:
        raise Conflict(f"{given!r} may be any of these: {', '.join(found)}; give more of the id")
    if not found:
        if kind == "approval":
            raise NotFound(f"no approval {given!r} is saved; `turnkeeper permission saved` lists them")
        raise NotFound(f"no {kind} {given!r} waits; `turnkeeper {kind.split()[0]} list` lists what does")
    return found[0]


def _place(directory: Path | None, options: Options) -> Path | None:
    return names.directory(directory, is_near=options.is_near) if directory is not None else None


async def _origins(tk: "Turnkeeper | Client", found: "Sequence[PermissionRequest | QuestionRequest]") -> dict[str, str]:
    """By session, which Child Session asks, and for which parent."""
    return {one: await origin(tk.get, one) for one in {request.session_id for request in found}}


def _head(screen: Screen, request: "PermissionRequest | QuestionRequest", origins: dict[str, str]) -> list[str]:
    head = f"{screen.paint(request.id, 'cyan')}  {screen.paint(request.session_id, 'dim')}"
    asked_by = origins[request.session_id]
    return [head, f"  {asked_by}"] if asked_by else [head]


def _permissions(screen: Screen, found: "Sequence[PermissionRequest]", origins: dict[str, str]) -> str:
    lines: list[str] = []
    for one in found:
        lines += _head(screen, one, origins)
        lines.append(f"  {one_line(one.permission)}: {patterns_asked(one)}")
        lines += [f"  {line}" for line in cause_lines(one)]
        covered = covered_by_always(one)
        lines.append(f"  always allows: {'the same' if covered == patterns_asked(one) else covered}")
    return "\n".join(lines)


def _questions(screen: Screen, found: "Sequence[QuestionRequest]", origins: dict[str, str]) -> str:
    lines: list[str] = []
    for request in found:
        lines += _head(screen, request, origins)
        for one in request.questions:
            lines.append(f"  {one_line(one.question)}")
            lines += [f"    - {one_line(option.label)}  {one_line(option.description)}" for option in one.options]
    return "\n".join(lines)
