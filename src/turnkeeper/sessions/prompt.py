"""Admit a prompt: resolve its parts, choose agent and model, and record it."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from turnkeeper.core.admission import admission_events, check_content, model_of
from turnkeeper.core.child_rules import TASK, callable_agents, mentioned
from turnkeeper.core.permission import merge
from turnkeeper.core.restores import is_pending
from turnkeeper.core.storable import storable
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import Delivery, Event
from turnkeeper.model.identifier import check
from turnkeeper.model.message import UNKNOWN_MODEL, JsonSchemaFormat, MessageTime, ModelChoice, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part
from turnkeeper.model.prompt import AgentInput, FileInput, Prompt, Receipt, SubtaskInput
from turnkeeper.model.refusal import Busy, Conflict, Invalid
from turnkeeper.model.session import Session, SessionModel
from turnkeeper.model.value import encode
from turnkeeper.run.configured import ResolvedDirectory
from turnkeeper.run.discovery import all_near
from turnkeeper.run.runtime import Runtime
from turnkeeper.sessions.attach import Attaching
from turnkeeper.sessions.mentions import with_mentions
from turnkeeper.sessions.plugged_prompt import plugged_prompt
from turnkeeper.sessions.resolve import Resolution, resolve
from turnkeeper.sessions.symbols import session_symbols
from turnkeeper.store import documents, keys
from turnkeeper.store.crash import crash_point
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store
from turnkeeper.text.json_schema import check_schema
from turnkeeper.workspace.images import LIMITS, limits_of


class AdmissionResult(NamedTuple):
    """An admitted prompt. ``message`` is None if the prompt was admitted before."""

    receipt: Receipt
    message: MessageWithParts | None


async def prompt(
    store: Store,
    runtime: Runtime,
    session_id: str,
    prompt: Prompt,
    *,
    digest: str | None = None,
    deliver: Callable[[SessionView], Delivery] | None = None,
) -> Receipt:
    """Resolve the parts of a prompt and admit it. The default agent is that of the session.

    A prompt that is sent again gets the receipt of the first admission; ``digest`` says what "again" means, if that is
    not the whole prompt. ``deliver`` chooses the delivery as of the append. Raises Invalid if the agent or the model is
    not known or the model has no key, Conflict if the id is used by another message, Busy if too many prompts wait.
    """
    return (await _admit(store, runtime, session_id, prompt, digest, deliver)).receipt


async def note(store: Store, runtime: Runtime, session_id: str, prompt: Prompt) -> MessageWithParts:
    """Admit a prompt that needs no answer, and return its message."""
    done = await _admit(store, runtime, session_id, prompt)
    if done.message is not None:
        return done.message
    for waiting in (await store.journal.view(session_id)).inbox:
        if waiting.message.id == done.receipt.message_id:
            return await store.queries.whole(MessageWithParts(info=waiting.message, parts=waiting.parts))
    return await store.queries.message(session_id, done.receipt.message_id)


async def _admit(
    store: Store,
    runtime: Runtime,
    session_id: str,
    prompt: Prompt,
    digest: str | None = None,
    deliver: Callable[[SessionView], Delivery] | None = None,
) -> AdmissionResult:
    prompt, _ = storable(prompt, Prompt, "the prompt")
    check_content(prompt)
    if isinstance(prompt.format, JsonSchemaFormat):
        check_schema(prompt.format.schema)
    message_id, digest = message_id_of(store, prompt), digest or digest_of(prompt)
    # A cached view may be old. It is enough to resolve the prompt; the append checks that it is still valid.
    view = store.journal.cache.view(session_id) if prompt.message_id is None else None
    resolved: _Resolved | None = None
    for _ in range(ATTEMPTS_MAX):
        view = view or await store.journal.view(session_id)
        if (known := await known_receipt(store, session_id, message_id, prompt, digest)) is not None:
            return AdmissionResult(known, None)
        if is_pending(view):
            await runtime.commit_revert(session_id)
            view = await store.journal.view(session_id)
        if resolved is None or resolved.session != _settings(view.session, prompt):
            resolved = await _resolve(store, runtime, view.session, prompt, message_id)
        said = _message(store, prompt, message_id, view.session, resolved)
        message, parts = await plugged_prompt(store.mint, runtime.directories, resolved.where, said, resolved.parts)
        if not prompt.no_reply:
            runtime.directories.require(resolved.where.place, message.model, resolved.where.config)
        elif prompt.model is not None:
            runtime.model(prompt.model, resolved.where.place)
        admitted = e.PromptAdmitted(message=message, parts=parts, delivery=prompt.delivery, digest=digest)
        crash_point("run.before-admit")
        done = await _append(store, admitted, prompt, view, resolved.instructions, deliver)
        crash_point("run.after-admit")
        if done is not None:
            return AdmissionResult(done, MessageWithParts(info=message, parts=parts))
        view = None
    raise Busy(f"session {session_id!r} is given prompts without pause; try again")


class _Resolved(NamedTuple):
    """A prompt, resolved for the settings of a session, with its agent."""

    session: "_Settings"
    where: ResolvedDirectory
    agent: Agent
    parts: tuple[Part, ...]
    fallback: Callable[[], ModelChoice]
    instructions: list[str]
    """Instruction files next to the attached files."""


class _Settings(NamedTuple):
    """The settings of a session that a prompt is resolved for; None where the prompt has its own."""

    directory: str
    agent: str | None
    model: SessionModel | None


def _settings(session: Session, prompt: Prompt) -> _Settings:
    agent = session.agent if prompt.agent is None else None
    model = session.model if prompt.model is None else None
    return _Settings(session.directory, agent, model)


async def _resolve(store: Store, runtime: Runtime, session: Session, prompt: Prompt, message_id: str) -> _Resolved:
    place, config = where = await runtime.directories.resolve(session.directory)
    who = config.agent(prompt.agent or session.agent)
    symbols = session_symbols(runtime, session, place, config, who)
    given = await with_mentions(prompt.parts, place, config.agents, runtime.home, symbols, runtime.directories.mcp)
    # Image limits are only needed for files, and the toolbox only for mentions of agents.
    named = [type(part) for part in given]
    limits = limits_of(config.config.attachment.image) if FileInput in named else LIMITS
    read: list[Path] = []
    reads = runtime.directories.reads(session.id)
    resource = partial(runtime.directories.mcp.read, place)
    attaching = Attaching(
        session.id, message_id, place, limits, met=read.append, reads=reads, resource=resource, symbols=symbols
    )
    resolution = Resolution(store.mint, attaching)
    if AgentInput in named or SubtaskInput in named:
        setup = await runtime.directories.setup(place)
        rules = merge(who.permission, mentioned([part.name for part in given if isinstance(part, AgentInput)]))
        has_task = setup.toolbox.find(TASK) is not None and bool(callable_agents(config.agents.values(), rules))
        resolution = Resolution(store.mint, attaching, who.permission, config.agents, has_task)
    parts = await resolve(given, resolution)
    # Files are read concurrently, so the paths are sorted for a fixed order.
    near = await to_thread.run_sync(all_near, sorted(read), place, runtime.environ) if read else []
    last = await last_model(store, session)
    return _Resolved(
        session=_settings(session, prompt),
        where=where,
        agent=who,
        parts=parts,
        fallback=lambda: last or runtime.directories.default_model(place),
        instructions=near,
    )


def _message(store: Store, prompt: Prompt, message_id: str, session: Session, resolved: _Resolved) -> UserMessage:
    return UserMessage(
        id=message_id,
        session_id=session.id,
        time=MessageTime(created=store.mint.now()),
        agent=resolved.agent.name,
        model=model_of(prompt, resolved.agent, session.model, resolved.fallback),
        format=prompt.format,
        system=prompt.system,
        tools=prompt.tools,
    )


async def _append(
    store: Store,
    admitted: e.PromptAdmitted,
    prompt: Prompt,
    before: SessionView,
    instructions: list[str],
    deliver: Callable[[SessionView], Delivery] | None,
) -> Receipt | None:
    """Append the admission. None, without an append, if the view ``before`` is outdated."""
    given = admitted

    def decide(view: SessionView) -> list[Event]:
        nonlocal given
        if not _is_same(before, view, prompt):
            return []
        if deliver is not None:
            chosen = prompt.but(delivery=deliver(view))
            given = admitted.but(delivery=chosen.delivery, digest=digest_of(chosen))
        return admission_events(given, prompt, view, instructions)

    after, decided = await store.journal.change(before.session.id, decide)
    if not decided:
        return None
    session_id, seq = before.session.id, after.seq - len(decided) + 1
    return Receipt(message_id=given.message.id, session_id=session_id, seq=seq, delivery=given.delivery)


def _is_same(before: SessionView, view: SessionView, prompt: Prompt) -> bool:
    """Whether a prompt that was resolved for the view ``before`` is valid for a newer view."""
    if is_pending(view) or _settings(view.session, prompt) != _settings(before.session, prompt):
        return False
    # An id of the caller may have been admitted meanwhile. A new id cannot.
    return prompt.message_id is None or _input(view) == _input(before)


def _input(view: SessionView) -> tuple[int, tuple[str, ...]]:
    """A value that changes when a prompt is admitted or promoted."""
    return view.messages, tuple(one.message.id for one in view.inbox)


def digest_of(prompt: Prompt) -> str:
    """The hash of a prompt without its id."""
    content = prompt if prompt.message_id is None else prompt.but(message_id=None)
    return sha256(encode(content)).hexdigest()[:32]


def message_id_of(store: Store, prompt: Prompt) -> str:
    """The id that the caller gave, checked, or a new one."""
    return store.mint.message_id() if prompt.message_id is None else checked_id(prompt.message_id)


def checked_id(message_id: str) -> str:
    """The id of a message that a caller gave. Raises Invalid."""
    try:
        return check("message", message_id)
    except ValueError as error:
        raise Invalid(str(error)) from error


async def known_receipt(store: Store, session_id: str, message_id: str, prompt: Prompt, digest: str) -> Receipt | None:
    """The receipt of a prompt that was admitted before under the id of the caller. Raises Conflict."""
    if prompt.message_id is None:
        return None
    taken, stored = await store.engine.get([keys.message(session_id, message_id), keys.receipt(message_id)])
    if stored is None:
        if taken is not None:
            raise Conflict(f"message {message_id!r} exists already; choose another id")
        return None
    known = documents.read_admission(stored)
    if (known.session_id, known.digest, known.delivery) != (session_id, digest, prompt.delivery):
        raise Conflict(f"message {message_id!r} was admitted before with other content; choose another id")
    return Receipt(message_id=message_id, session_id=session_id, seq=known.seq, delivery=known.delivery)


async def last_model(store: Store, session: Session) -> ModelChoice | None:
    """The model of the newest prompt that has one, for a session without a model.

    Forks and imports of older versions have no model, and imports of histories without one.
    """
    if session.model is None:
        async for message in store.queries.stream(session.id):
            if isinstance(message.info, UserMessage) and message.info.model.provider_id != UNKNOWN_MODEL:
                return message.info.model
    return None
