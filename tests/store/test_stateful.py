"""Random lives of a store against a tiny model: log, view, documents and model always say the same."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, get_args

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stores import store_url

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.core.projector import project
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.session import Session
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.model.todo import Todo
from turnkeeper.sessions import create, edit, fork, history, listing, remove
from turnkeeper.sessions.doctor import examine
from turnkeeper.sessions.past import past
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import (
    NOW,
    SOME_TOKENS,
    a_call,
    a_child_task,
    a_permission,
    a_question,
    a_system,
    a_text,
    a_user,
    an_assistant,
    an_epoch,
    completed,
    every_event,
    running,
)
from turnkeeper.workspace.project import identify

T = TypeVar("T")


TEXTS = {"nothing": "", "short": "short", "wide": "Größe and 日本", "long": "long " * (BLOB_CHARS_MIN // 4)}
"""Drawn by name, for a failing example is printed."""

words = st.sampled_from(list(TEXTS))
RULED = (
    *(e.SessionCreated, e.SessionTitled, e.SourceFollowed, e.SessionArchived, e.SessionRestored, e.TodosSet),
    *(e.MessageRecorded, e.MessageRemoved, e.PartRecorded, e.PartExtended, e.PartRemoved),
    *(e.PromptAdmitted, e.PromptPromoted, e.PromptWithdrawn, e.EpochStarted, e.ContextAdmitted),
    *(e.TurnStarted, e.TurnEnded, e.UsageRecorded, e.StatusChanged),
    *(e.PermissionAsked, e.PermissionReplied, e.QuestionAsked, e.QuestionReplied, e.QuestionRejected, e.AnswerApplied),
    *(e.ChildBegun, e.ChildEnded),
)
"""Events that must fit what happened before. Rules of their own make them, and the model knows what they do."""

FACTS = [one for one in every_event() if not isinstance(one, RULED)]
"""All other events can happen at any time. A new kind of event is among them until it has a rule."""

[FOLLOWED] = [one for one in every_event() if isinstance(one, e.SourceFollowed)]

facts = st.sampled_from(range(len(FACTS)))

acts = st.sampled_from(["stream", "stream", "extend", "extend", "close", "drop", "call", "rewrite", "end"])
titles = st.sampled_from(["One", "Two", "Two (fork #3)", "Drei"])


SESSIONS_MAX = 2

WRITTEN: set[type[e.Event]] = set()
"""Every kind of event that was found in the log of a random life."""


class Model:
    """What a session must be: dicts and lists, no cleverness."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.is_archived = False
        self.cost = 0.0
        self.todos: list[str] = []
        self.epoch = 0
        self.inbox: list[str] = []
        self.history: dict[str, dict[str, str]] = {}
        self.turn: AssistantMessage | None = None
        self.open: dict[str, TextPart] = {}


class StoreMachine(RuleBasedStateMachine):
    """One store, its model, and everything that can be done to them."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = TemporaryDirectory()
        self.mint = Mint.fixed(step_ms=1)
        directory = Path(self.directory.name)
        self.place = self.run(identify(directory))
        engine = self.run(open_engine(store_url(self.kind, directory)))
        self.journal = Journal(engine, self.mint, _deaf)
        self.store = Store(engine, self.journal, Queries(engine), self.mint)
        self.models: dict[str, Model] = {}
        self.touched: str | None = None
        self.read: dict[tuple[str, int], tuple[Session, list[MessageWithParts]]] = {}
        """What a reader found in a session after an event."""

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def append(self, session_id: str, *events: e.Event) -> None:
        self.touched = session_id
        self.run(self.journal.append(session_id, *events))

    def teardown(self) -> None:
        diagnosis = self.run(examine(self.store))
        damage = [one for one in diagnosis.problems if one.is_damage]
        for (session_id, seq), found in list(self.read.items())[::5]:
            then = self.run(past(self.store, session_id, seq))
            assert self.run(self.reading(then.queries, session_id)) == found
        self.run(self.store.engine.aclose())
        self.runner.close()
        self.directory.cleanup()
        assert damage == []

    sessions = Bundle("sessions")

    # Sessions.

    @initialize(target=sessions)
    def begin(self) -> Any:
        return self.create("One")

    # Few sessions, so that much happens to each.
    @precondition(lambda self: len(self.models) < SESSIONS_MAX)
    @rule(target=sessions, title=titles)
    def create(self, title: str) -> str:
        session = self.run(create.create(self.store, self.place, title=title))
        self.models[session.id] = Model(title)
        self.touched = session.id
        return session.id

    @rule(session_id=sessions, title=titles)
    def rename(self, session_id: str, title: str) -> None:
        self.run(edit.rename(self.store, session_id, title))
        self.models[session_id].title, self.touched = title, session_id

    @rule(session_id=sessions, archived=st.booleans())
    def archive(self, session_id: str, archived: bool) -> None:
        self.run((edit.archive if archived else edit.restore)(self.store, session_id))
        self.models[session_id].is_archived, self.touched = archived, session_id

    @precondition(lambda self: len(self.models) < SESSIONS_MAX)
    @rule(target=sessions, session_id=sessions, data=st.data())
    def fork(self, session_id: str, data: st.DataObject) -> str:
        source = self.models[session_id]
        upto = data.draw(st.none() | st.sampled_from(list(source.history)) if source.history else st.none())
        forked = self.run(fork.fork(self.store, session_id, message_id=upto))
        kept = list(source.history.values())[: list(source.history).index(upto) if upto else None]
        copy = self.models[forked.id] = Model(forked.title)
        found = self.run(self.messages(forked.id))
        assert [list(parts.values()) for parts in found.values()] == [list(parts.values()) for parts in kept]
        copy.history, copy.cost, copy.todos = found, float(forked.cost), list(source.todos) if upto is None else []
        self.touched = forked.id
        return forked.id

    @rule(session_id=consumes(sessions))
    def remove(self, session_id: str) -> None:
        self.run(remove.remove(self.store, session_id, _deaf))
        del self.models[session_id]
        self.read = {place: found for place, found in self.read.items() if place[0] != session_id}
        self.touched = None

    @rule(session_id=sessions, contents=st.lists(words, max_size=2))
    def todos(self, session_id: str, contents: list[str]) -> None:
        todos = [Todo(content=TEXTS[content], status="pending", priority="low") for content in contents]
        self.run(edit.set_todos(self.store, session_id, tuple(todos)))
        self.models[session_id].todos = [TEXTS[content] for content in contents]
        self.touched = session_id

    # Histories.

    @rule(session_id=sessions, texts=st.lists(words, max_size=3))
    def record(self, session_id: str, texts: list[str]) -> None:
        user = a_user(session_id, self.mint.message_id())
        parts = tuple(a_text(user, self.mint.part_id(), TEXTS[text]) for text in texts)
        self.append(session_id, e.MessageRecorded(message=user, parts=parts))
        self.models[session_id].history[user.id] = {part.id: part.text for part in parts}

    @rule(session_id=sessions, data=st.data(), text=words)
    def edit_part(self, session_id: str, data: st.DataObject, text: str) -> None:
        model = self.models[session_id]
        open_id = model.turn.id if model.turn else None
        places = [(m, p) for m, parts in model.history.items() for p in parts if m != open_id]
        if not places:
            return
        message_id, part_id = data.draw(st.sampled_from(places))
        part = a_text(a_user(session_id, message_id), part_id, TEXTS[text])
        self.run(history.update_part(self.store, part))
        model.history[message_id][part_id], self.touched = TEXTS[text], session_id

    @rule(session_id=sessions, data=st.data())
    def remove_message(self, session_id: str, data: st.DataObject) -> None:
        model = self.models[session_id]
        names = [name for name in model.history if model.turn is None or name != model.turn.id]
        if not names:
            return
        name = data.draw(st.sampled_from(names))
        self.run(history.remove_message(self.store, session_id, name))
        del model.history[name]
        self.touched = session_id

    @rule(session_id=sessions, text=words)
    def admit(self, session_id: str, text: str) -> None:
        user = a_user(session_id, self.mint.message_id())
        part = a_text(user, self.mint.part_id(), TEXTS[text])
        self.append(session_id, e.PromptAdmitted(message=user, parts=(part,), delivery="steer"))
        self.models[session_id].inbox.append(user.id)

    @rule(session_id=sessions, data=st.data(), promoted=st.booleans())
    def settle_prompt(self, session_id: str, data: st.DataObject, promoted: bool) -> None:
        model = self.models[session_id]
        if not model.inbox:
            return
        name = data.draw(st.sampled_from(model.inbox))
        model.inbox.remove(name)
        if promoted:
            [prompt] = [one for one in self.run(self.journal.view(session_id)).inbox if one.message.id == name]
            self.append(session_id, e.PromptPromoted(message_id=name))
            model.history[name] = self.run(self.messages(session_id))[name]
            assert len(model.history[name]) == len(prompt.parts)
        else:
            self.append(session_id, e.PromptWithdrawn(message_id=name))

    # Turns.

    @rule(session_id=sessions, acts=st.lists(acts, min_size=8, max_size=16), text=words, data=st.data())
    def work(self, session_id: str, acts: list[str], text: str, data: st.DataObject) -> None:
        """A stretch of a turn. Many acts make one rule, or most lives would be over before much has happened."""
        if self.models[session_id].turn is None:
            self.start_turn(session_id)
        for act in acts:
            match act:
                case "stream":
                    self.stream(session_id, text)
                case "extend":
                    self.extend(session_id, data)
                case "close" | "drop":
                    self.close_part(session_id, data, removed=act == "drop")
                case "call":
                    self.call(session_id, text)
                case "rewrite":
                    self.rewrite_open_message(session_id)
                case "end":
                    self.end_turn(session_id)

    def start_turn(self, session_id: str) -> None:
        model = self.models[session_id]
        turn = an_assistant(session_id, self.mint.message_id(), "msg_parent")
        self.append(session_id, e.StatusChanged(status=BUSY), e.TurnStarted(message=turn))
        model.turn, model.history[turn.id] = turn, {}

    def stream(self, session_id: str, text: str) -> None:
        model = self.models[session_id]
        if model.turn is None:
            return
        part = a_text(model.turn, self.mint.part_id(), TEXTS[text], time=Span(start=NOW))
        self.append(session_id, e.PartRecorded(part=part))
        model.open[part.id], model.history[model.turn.id][part.id] = part, part.text

    def extend(self, session_id: str, data: st.DataObject) -> None:
        text = "längeres Stück "
        model = self.models[session_id]
        # A part that became a blob is held as a mark, and nothing is added to those.
        growing = [part for part in model.open.values() if len(part.text) < BLOB_CHARS_MIN]
        if model.turn is None or not growing:
            return
        part = data.draw(st.sampled_from(growing))
        event = e.PartExtended(message_id=model.turn.id, part_id=part.id, offset=len(part.text), text=text)
        self.append(session_id, event)
        model.open[part.id] = part.but(text=part.text + text)
        model.history[model.turn.id][part.id] += text

    def close_part(self, session_id: str, data: st.DataObject, *, removed: bool) -> None:
        model = self.models[session_id]
        if model.turn is None or not model.open:
            return
        part = data.draw(st.sampled_from(list(model.open.values())))
        del model.open[part.id]
        if removed:
            self.run(history.remove_part(self.store, session_id, model.turn.id, part.id))
            del model.history[model.turn.id][part.id]
            self.touched = session_id
        else:
            self.append(session_id, e.PartRecorded(part=part.but(time=Span(start=NOW, end=NOW + 1))))

    def call(self, session_id: str, output: str) -> None:
        model = self.models[session_id]
        if model.turn is None:
            return
        call = a_call(model.turn, self.mint.part_id())
        self.append(session_id, e.PartRecorded(part=call), e.PartRecorded(part=call.but(state=running())))
        if output != "nothing":
            self.ask(session_id, call, TEXTS[output])
        task = a_child_task(call).but(background=output != "short")
        self.append(session_id, e.ChildBegun(task=task))
        assert self.run(self.journal.view(session_id)).children == (task,)
        self.append(session_id, e.PartRecorded(part=call.but(state=completed(TEXTS[output]))))
        assert self.run(self.journal.view(session_id)).children == ((task,) if task.background else ())
        self.append(session_id, e.ChildEnded(session_id=task.session_id))
        model.history[model.turn.id][call.id] = TEXTS[output]

    def ask(self, session_id: str, call: ToolPart, text: str) -> None:
        """A request to the user that is answered in one of its ways; the call settles it."""
        name = f"{call.id[-6:]}_{len(text)}"
        permission = a_permission(call, f"per_{name}", patterns=(text,))
        question = a_question(call, f"que_{name}")
        self.append(session_id, e.PermissionAsked(request=permission))
        assert [one.request.id for one in self.run(self.journal.view(session_id)).asks] == [permission.id]
        if len(text) % 2:
            self.append(session_id, e.PermissionReplied(request_id=permission.id, reply="once", feedback=text))
            self.append(session_id, e.AnswerApplied(request_id=permission.id), e.QuestionAsked(request=question))
            self.append(session_id, e.QuestionRejected(request_id=question.id))
        else:
            self.append(session_id, e.QuestionAsked(request=question))
            self.append(session_id, e.QuestionReplied(request_id=question.id, answers=((text,),)))
            self.append(session_id, e.AnswerApplied(request_id=question.id))

    def end_turn(self, session_id: str) -> None:
        model, cost = self.models[session_id], 0.5
        if model.turn is None:
            return
        usage = e.UsageRecorded(purpose="turn", provider_id="acme", model_id="large", tokens=SOME_TOKENS, cost=cost)
        ended = e.TurnEnded(message=model.turn.but(finish="stop"))
        self.append(session_id, usage, ended, e.StatusChanged(status=IDLE))
        model.turn, model.open, model.cost = None, {}, model.cost + cost

    def rewrite_open_message(self, session_id: str) -> None:
        model = self.models[session_id]
        if model.turn is None:
            return
        view = self.run(self.journal.view(session_id))
        assert view.turn is not None
        model.turn = view.turn.message.but(finish="unknown")
        self.append(session_id, e.MessageRecorded(message=model.turn))

    @rule(session_id=sessions)
    def start_epoch(self, session_id: str) -> None:
        model = self.models[session_id]
        model.epoch += 1
        self.append(session_id, e.EpochStarted(epoch=an_epoch(model.epoch)))

    @rule(session_id=sessions, text=words)
    def admit_context(self, session_id: str, text: str) -> None:
        model = self.models[session_id]
        if not model.epoch:
            return
        news = a_system(session_id, self.mint.message_id(), TEXTS[text])
        self.append(session_id, e.ContextAdmitted(message=news, checkpoint={"k": text}))
        model.history[news.id] = {}

    @rule(session_id=sessions, title=titles)
    def follow_source(self, session_id: str, title: str) -> None:
        model = self.models[session_id]
        self.append(session_id, FOLLOWED.but(title=title))
        model.title, model.cost = title, model.cost + FOLLOWED.cost

    @rule(session_id=sessions, numbers=st.lists(facts, min_size=1, max_size=4))
    def facts(self, session_id: str, numbers: list[int]) -> None:
        self.append(session_id, *(FACTS[number] for number in numbers))

    # The store.

    @rule()
    def forget_all_views(self) -> None:
        """As after a restart: the next view comes from documents."""
        for session_id in self.models:
            self.journal.cache.forget(session_id)

    @precondition(lambda self: self.models)
    @rule()
    def list_sessions(self) -> None:
        listed = self.run(listing.sessions(self.store, listing.SessionFilter(limit=1000))).items
        assert {one.id for one in listed} == {name for name, model in self.models.items() if not model.is_archived}

    @invariant()
    def log_view_documents_and_model_agree(self) -> None:
        name = self.touched
        if name is None:
            return
        view = self.run(self.journal.view(name))
        recorded = self.run(self.journal.read(name))
        WRITTEN.update(type(one.event) for one in recorded)
        assert project(recorded) == view
        fresh = Journal(self.store.engine, self.mint, _deaf)
        assert self.run(fresh.view(name)) == view
        self.read[name, view.seq] = self.run(self.reading(self.store.queries, name))
        self.check_model(name)

    def check_model(self, name: str) -> None:
        model = self.models[name]
        view = self.run(self.journal.view(name))
        session = self.run(self.store.queries.session(name))
        assert (session.title, session.time.archived is not None) == (model.title, model.is_archived)
        assert float(session.cost) == model.cost
        assert [one.message.id for one in view.inbox] == model.inbox
        assert view.asks == (), "every call that asks is settled in the same act"
        todos = self.run(self.store.queries.todos(name))
        assert [todo.content for todo in todos] == model.todos
        assert (view.epoch.number if view.epoch else 0) == model.epoch
        assert (view.turn.message.id if view.turn else None) == (model.turn.id if model.turn else None)
        assert self.run(self.messages(name)) == model.history
        assert view.messages == len(model.history)
        assert view.parts == sum(map(len, model.history.values()))

    async def reading(self, queries: Queries, session_id: str) -> tuple[Session, list[MessageWithParts]]:
        return await queries.session(session_id), [one async for one in queries.stream(session_id, reverse=False)]

    async def messages(self, session_id: str) -> dict[str, dict[str, str]]:
        """The history as the model has it: message ids, part ids, words."""
        return {
            one.info.id: {part.id: _words(part) for part in one.parts}
            async for one in self.store.queries.stream(session_id, reverse=False)
        }


def _deaf(_: Notification) -> None:
    """Nobody listens."""


def _words(part: object) -> str:
    match part:
        case TextPart(text=text):
            return text
        case _:
            return getattr(getattr(part, "state", None), "output", "")


class SqliteMachine(StoreMachine):
    kind = "sqlite"


class FilesMachine(StoreMachine):
    kind = "files"


class PostgresMachine(StoreMachine):
    kind = "postgres"


def with_examples(machine: type[StoreMachine], examples: int) -> type:
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return case


def test_every_kind_of_event_happens_in_some_random_life() -> None:
    WRITTEN.clear()
    bounded = settings(
        max_examples=30,
        stateful_step_count=40,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    wanted = set(get_args(e.Event))
    for number in range(12):  # Hypothesis switches rules off at random, so one round may lack a kind.
        life = seed(number)(type("Life", (StoreMachine,), {}))
        run_state_machine_as_test(life, settings=bounded)
        if wanted == WRITTEN:
            return
    assert {kind.KIND for kind in wanted} == {kind.KIND for kind in WRITTEN}, "give it a rule"


TestAnyLifeOfAMemoryStore = with_examples(StoreMachine, 40)
TestAnyLifeOfASqliteStore = with_examples(SqliteMachine, 12)
TestAnyLifeOfAFilesStore = with_examples(FilesMachine, 5)
TestAnyLifeOfAPostgresStore = with_examples(PostgresMachine, 5)
