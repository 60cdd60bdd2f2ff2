"""Admit a prompt: resolve its parts, choose agent and model, and make it durable. From then on it is safe."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from turnkeeper.core.admission import admission_events, model_of
from turnkeeper.core.limits import PROMPT_PARTS_MAX
from turnkeeper.core.permission import merge
from turnkeeper.core.storable import storable
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import Event
from turnkeeper.model.identifier import check
from turnkeeper.model.message import UNKNOWN_MODEL, JsonSchemaFormat, MessageTime, ModelChoice, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part
from turnkeeper.model.prompt import AgentInput, FileInput, Prompt, Receipt
from turnkeeper.model.refusal import Busy, Conflict, Invalid
from turnkeeper.model.session import Session, SessionModel
from turnkeeper.model.value import encode
from turnkeeper.run.runtime import Runtime
from turnkeeper.sessions.attach import Attaching
from turnkeeper.sessions.resolve import TASK, Resolution, resolve
from turnkeeper.store import documents, keys
from turnkeeper.store.crash import crash_point
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store
from turnkeeper.text.json_schema import check_schema
from turnkeeper.workspace.images import LIMITS, limits_of
from turnkeeper.workspace.project import ProjectPlace


class AdmissionResult(NamedTuple):
    """A prompt that is safe."""

    receipt: Receipt
    message: MessageWithParts | None
    """As it was admitted; None if that was done before."""


async def prompt(store: Store, runtime: Runtime, session_id: str, prompt: Prompt) -> Receipt:
    """Resolve a prompt's parts and admit it. A prompt that names no agent is for the agent of the session.

    The same prompt sent again gets the same receipt. Raises Invalid, and records nothing, if its agent or model is not
    known or its model has no key; Conflict if its id stands for something else; Busy if too much is waiting.
    """
    return (await _admit(store, runtime, session_id, prompt)).receipt


async def note(store: Store, runtime: Runtime, session_id: str, prompt: Prompt) -> MessageWithParts:
    """Admit a prompt that needs no answer: its message, whether it is part of the history already or not."""
    done = await _admit(store, runtime, session_id, prompt)
    if done.message is not None:
        return done.message
    for waiting in (await store.journal.view(session_id)).inbox:
        if waiting.message.id == done.receipt.message_id:
            return await store.queries.whole(MessageWithParts(info=waiting.message, parts=waiting.parts))
    return await store.queries.message(session_id, done.receipt.message_id)


async def _admit(store: Store, runtime: Runtime, session_id: str, prompt: Prompt) -> AdmissionResult:
    prompt, _ = storable(prompt, Prompt, "the prompt")
    if not 0 < len(prompt.parts) <= PROMPT_PARTS_MAX:
        raise Invalid(f"a prompt needs at least one part, and has {PROMPT_PARTS_MAX} at the most")
    if isinstance(prompt.format, JsonSchemaFormat):
        check_schema(prompt.format.schema)
    message_id, digest = message_id_of(store, prompt), digest_of(prompt)
    # What is known here may be old, and is good enough to work things out: the newest view decides whether they hold.
    view = store.journal.cache.view(session_id) if prompt.message_id is None else None
    resolved: _Resolved | None = None
    for _ in range(ATTEMPTS_MAX):
        view = view or await store.journal.view(session_id)
        if (known := await _known(store, session_id, message_id, prompt, digest)) is not None:
            return AdmissionResult(known, None)
        if resolved is None or resolved.session != _settings(view.session, prompt):
            resolved = await _resolve(store, runtime, view.session, prompt, message_id)
        message = _message(store, prompt, message_id, view.session, resolved)
        if not prompt.no_reply:
            runtime.directories.require(resolved.place, message.model)
        elif prompt.model is not None:
            runtime.model(prompt.model, resolved.place)
        admitted = e.PromptAdmitted(message=message, parts=resolved.parts, delivery=prompt.delivery, digest=digest)
        crash_point("run.before-admit")
        seq = await _append(store, admitted, prompt, view, resolved.instructions)
        crash_point("run.after-admit")
        if seq is not None:
            receipt = Receipt(message_id=message_id, session_id=session_id, seq=seq, delivery=prompt.delivery)
            return AdmissionResult(receipt, MessageWithParts(info=message, parts=resolved.parts))
        view = None
    raise Busy(f"session {session_id!r} is given prompts without pause; try again")


class _Resolved(NamedTuple):
    """What a prompt says in a session with these settings, and which agent is to answer it."""

    session: "_Settings"
    place: ProjectPlace
    agent: Agent
    parts: tuple[Part, ...]
    fallback: Callable[[], ModelChoice]
    instructions: list[str]
    """Instruction files near the files it names."""


class _Settings(NamedTuple):
    """The settings of a session on which the meaning of a prompt depends; None where the prompt itself decides."""

    directory: str
    agent: str | None
    model: SessionModel | None


def _settings(session: Session, prompt: Prompt) -> _Settings:
    agent = session.agent if prompt.agent is None else None
    model = session.model if prompt.model is None else None
    return _Settings(session.directory, agent, model)


async def _resolve(store: Store, runtime: Runtime, session: Session, prompt: Prompt, message_id: str) -> _Resolved:
    place, config = await runtime.directories.resolve(session.directory)
    who = config.agent(prompt.agent or session.agent)
    # What only a file or the mention of an agent needs is only asked for where there is one.
    named = [type(part) for part in prompt.parts]
    limits = limits_of(config.config.attachment.image) if FileInput in named else LIMITS
    read: list[Path] = []
    reads = runtime.directories.reads(session.id)
    resolution = Resolution(store.mint, Attaching(session.id, message_id, place, limits, met=read.append, reads=reads))
    if AgentInput in named:
        setup = await runtime.directories.setup(place)
        rules, has_task = merge(setup.rules, who.permission), setup.toolbox.find(TASK) is not None
        resolution = Resolution(store.mint, resolution.attaching, rules, config.agents, has_task)
    parts = await resolve(prompt.parts, resolution)
    # Files are read side by side; their order must not depend on which was read first.
    near = await to_thread.run_sync(runtime.instructions_near, sorted(read), place) if read else []
    last = await last_model(store, session)
    fallback = partial(_fallback, runtime, place, last)
    return _Resolved(_settings(session, prompt), place, who, parts, fallback, near)


def _fallback(runtime: Runtime, place: ProjectPlace, last: ModelChoice | None) -> ModelChoice:
    return last or runtime.directories.default_model(place)


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
    store: Store, admitted: e.PromptAdmitted, prompt: Prompt, before: SessionView, instructions: list[str]
) -> int | None:
    """Append the admission; its place in the log. None, and nothing is appended, if ``before`` holds no longer."""

    def decide(view: SessionView) -> list[Event]:
        return admission_events(admitted, prompt, view, instructions) if _is_same(before, view, prompt) else []

    after, decided = await store.journal.change(before.session.id, decide)
    return after.seq - len(decided) + 1 if decided else None


def _is_same(before: SessionView, view: SessionView, prompt: Prompt) -> bool:
    """Whether a prompt says in a view what it said in the one it was resolved for."""
    if _settings(view.session, prompt) != _settings(before.session, prompt):
        return False
    # Another admission under the caller's id in between is noticed. An id that we just made is in use nowhere.
    return prompt.message_id is None or _input(view) == _input(before)


def _input(view: SessionView) -> tuple[int, tuple[str, ...]]:
    """What changes whenever a prompt comes in or becomes part of the history."""
    return view.messages, tuple(one.message.id for one in view.inbox)


def digest_of(prompt: Prompt) -> str:
    """What tells one prompt from another: all that the caller sent, but for the id it gave."""
    said = prompt if prompt.message_id is None else prompt.but(message_id=None)
    return sha256(encode(said)).hexdigest()[:32]


def message_id_of(store: Store, prompt: Prompt) -> str:
    """The caller's id, checked, or a new one."""
    if prompt.message_id is None:
        return store.mint.message_id()
    try:
        return check("message", prompt.message_id)
    except ValueError as error:
        raise Invalid(str(error)) from error


async def _known(store: Store, session_id: str, message_id: str, prompt: Prompt, digest: str) -> Receipt | None:
    """The receipt of this very prompt, if it was admitted before. An id that we just made stands for nothing yet."""
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
    """The model of the newest prompt in the history that has one, for a session that has none of its own.

    Forks and imports that an older version made, and imports of histories that do not say, are such sessions.
    """
    if session.model is None:
        async for message in store.queries.stream(session.id):
            if isinstance(message.info, UserMessage) and message.info.model.provider_id != UNKNOWN_MODEL:
                return message.info.model
    return None
