"""Random lives: whatever happens, the provider's cache holds inside an epoch, and the model knows what is so.

A life is a list of steps: turns, steers, midnights, edited files, plugins that come, go and fail, restarts, failures,
compactions, other models and places. The oracle below knows what the sources say; at each request it is asked what
the model must know now, and the request alone must show just that.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from context_world import DAY_MS, Fact, compact, epoch, news, prefixes, world, write
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from turnkeeper.context.component import Absent, ContextComponent, Loaded, Unavailable
from turnkeeper.core.lowering import system_text
from turnkeeper.core.prefix import reuse_percent
from turnkeeper.core.system_context import known
from turnkeeper.mint import Mint
from turnkeeper.model.message import ModelChoice, SystemMessage
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers import anthropic, gemini, openai_chat, openai_responses
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.scripted import Scripted
from turnkeeper.registry import Registration
from turnkeeper.testing.harness import Stage, a_tool
from turnkeeper.testing.laws import check
from turnkeeper.tools.read import READ
from turnkeeper.tools.tool import ToolContext

KEYS = ("acme/tide", "acme/weather")
FILES = ("AGENTS.md", "pkg/AGENTS.md")
CODECS = (
    ("anthropic", anthropic.body, "messages", "claude-sonnet-4-5"),
    ("anthropic", anthropic.body, "messages", "claude-opus-4-8"),  # Takes system messages inside the conversation.
    ("openai-chat", openai_chat.body, "messages", "large"),
    ("openai-responses", openai_responses.body, "input", "large"),
    ("gemini", gemini.body, "contents", "gemini-3-pro"),
)


class Oracle:
    """What the sources say, and from that what the model must know at a boundary. It knows nothing of checkpoints."""

    def __init__(self) -> None:
        self.facts = {key: Fact(key, "first") for key in KEYS}
        self.registered: set[str] = set()
        self.files: dict[Path, str] = {}
        self.met: list[Path] = []
        self.place, self.model, self.agent = Path(), "large", "build"
        self.now: Callable[[], int] = int
        self.is_compacted = False
        self._epoch: tuple[Path, str] | None = None
        self._known: dict[str, tuple[str, ...]] = {}

    def cross(self) -> bool:
        """A boundary is crossed: whether an epoch must begin there. Then ``expected`` is what the model knows."""
        here = (self.place, self.model)
        begins = self._epoch != here or self.is_compacted
        before = self._known if self._epoch is not None and self._epoch[0] == self.place else {}
        self._known = {} if begins else dict(self._known)
        for key in sorted(self.registered):
            self._cross_fact(key, before)
        for key in set(KEYS).difference(self.registered):
            if key in self._known and not _is_gone(self._known[key]):
                self._known[key] = (f"What you were told by {key} no longer applies: it is not there any more.",)
        for path in (self.place / FILES[0], *self.met):
            self._cross_file(f"core/instructions/{path}", self.files.get(path, ""), begins)
        self._epoch, self.is_compacted = here, False
        return begins

    def _cross_fact(self, key: str, before: dict[str, tuple[str, ...]]) -> None:
        match self.facts[key].sample:
            case Loaded(baseline=baseline, update=update):
                self._known[key] = (baseline, update)
            case Absent(removal=removal) if key in self._known:
                self._known[key] = (removal,)
            case Unavailable() if key in before and not _is_gone(before[key]):
                self._known[key] = before[key]

    def _cross_file(self, key: str, text: str, begins: bool) -> None:
        source = key.removeprefix("core/instructions/")
        if text:
            now = f"The instructions from {source} are now as follows, in place of any earlier version:\n{text}"
            self._known[key] = (f"Instructions from: {source}\n{text}", now)
        elif key in self._known and not begins:
            self._known[key] = (f"The instructions from {source} no longer apply.",)

    def expected(self) -> dict[str, tuple[str, ...]]:
        """The texts by which the model may know each fact now: as it stands in a baseline, or as news."""
        today = datetime.fromtimestamp(self.now() / 1000).strftime("%A, %d %B %Y")
        date = (f"Today's date: {today}", f"Today's date is now: {today}")
        return {**self._known, "core/date": date}


def _is_gone(texts: tuple[str, ...]) -> bool:
    return texts[0].endswith((" is no more", " not there any more."))


class Model:
    """A provider that answers as told, and at each new request asks the oracle what the model must know."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.answers: list[Scripted] = []
        self.will_meet: Path | None = None
        """The instruction file that the calls of the next answer discover."""
        self.asked: list[tuple[ModelRequest, bool, dict[str, tuple[str, ...]]]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        if not self.asked or self.asked[-1][0] is not request:  # Another attempt sends the very same request.
            begins = self._oracle.cross()
            self.asked.append((request, begins, self._oracle.expected()))
        answer = self.answers.pop(0) if self.answers else Scripted().says("Well.")
        async for batch in answer.stream(request):
            yield batch
        if self.will_meet is not None and self.will_meet not in self._oracle.met:
            self._oracle.met.append(self.will_meet)  # The answer is over: its call has read next to the file.
        self.will_meet = None


class Life:
    """One session and what happens to it."""

    def __init__(self, folder: Path) -> None:
        self._oracle = Oracle()
        self._model = Model(self._oracle)
        self._mint = Mint.fixed()
        self._oracle.now = self._mint.now
        self._folder = folder
        self._places = [(folder / name).resolve() for name in ("here", "there")]
        self._oracle.place = self._places[0]
        self._stack = AsyncExitStack()
        self._scopes: dict[str, Registration[ContextComponent]] = {}
        self._count = 0
        self._checked = 0
        self.stage: Stage
        self.session = ""

    async def live(self, steps: Sequence[tuple[str, int]]) -> None:
        for place in self._places:
            write(place / "pkg/code.py", "x = 1\n")
        await self._open()
        write(self._places[1] / "turnkeeper.json", (self._places[0] / "turnkeeper.json").read_text())
        self.session = await self.stage.session()
        try:
            for name, number in steps:
                await getattr(self, name)(number)
                await self.check()
            await self.say(0)
            await self.check()
            assert await self.stage.is_sound(self.session)
        finally:
            await self._stack.aclose()

    async def _open(self) -> None:
        tools = (a_tool("nudge", self._nudge), READ)
        url = f"sqlite:{self._folder}/store.db"
        opened = world(self._places[0], self._model, url=url, mint=self._mint, tools=tools)
        self.stage = await self._stack.enter_async_context(opened)
        self._scopes = {key: self._register(key) for key in self._oracle.registered}

    def _register(self, key: str) -> Registration[ContextComponent]:
        return self.stage.tk.context(self._oracle.facts[key].component)

    async def _nudge(self, text: str, _: ToolContext) -> str:
        """The user speaks while a turn is under way, and the world goes on."""
        await self.stage.tk.prompt(self.session, self._prompt("by the way"), resume=False)
        await self.set(int(text))
        return "nudged"

    # What can happen.

    async def say(self, _: int) -> None:
        await self.stage.tk.prompt(self.session, self._prompt("and now?"))
        await self.stage.tk.wait(self.session)

    def _prompt(self, text: str) -> Prompt:
        model = ModelChoice(provider_id="acme", model_id=self._oracle.model)
        return Prompt(parts=(TextInput(text=text),), agent=self._oracle.agent, model=model)

    async def steer(self, number: int) -> None:
        self._model.answers = [Scripted().says("One moment.").calls("nudge", text=str(number))]
        await self.say(0)

    async def read(self, _: int) -> None:
        self._model.answers = [Scripted().calls("read", filePath=str(self._oracle.place / "pkg/code.py"))]
        nested = self._oracle.place / FILES[1]
        self._model.answers[0].says("Reading.")
        self._model.will_meet = nested if self._oracle.files.get(nested) is not None else None
        await self.say(0)

    async def fail(self, _: int) -> None:
        self._model.answers = [Scripted().fails(401)]
        await self.say(0)
        await self.stage.tk.run(self.session, resume=True)

    async def retry(self, _: int) -> None:
        self._model.answers = [Scripted().fails(529), Scripted().says("At last.")]
        async with anyio.create_task_group() as group:
            group.start_soon(self.say, 0)
            await self.stage.time.asleep(1)
            self.stage.time.advance(60_000)

    async def midnight(self, _: int) -> None:
        self._mint.advance(DAY_MS)

    async def edit(self, number: int) -> None:
        path = self._oracle.place / FILES[number % 2]
        self._count += 1
        self._oracle.files[path] = f"Rule {self._count}."
        write(path, self._oracle.files[path])

    async def unlink(self, number: int) -> None:
        path = self._oracle.place / FILES[number % 2]
        if self._oracle.files.pop(path, None) is not None:
            path.unlink()

    async def empty(self, number: int) -> None:
        path = self._oracle.place / FILES[number % 2]
        if path in self._oracle.files:
            self._oracle.files[path] = ""
            write(path, "")

    async def register(self, number: int) -> None:
        key = KEYS[number % 2]
        if key not in self._oracle.registered:
            self._oracle.registered.add(key)
            self._scopes[key] = self._register(key)

    async def unregister(self, number: int) -> None:
        key = KEYS[number % 2]
        if key in self._oracle.registered:
            self._oracle.registered.remove(key)
            self._scopes.pop(key).close()

    async def set(self, number: int) -> None:
        self._oracle.facts[KEYS[number % 2]].is_now(f"value {number}")

    async def lose(self, number: int) -> None:
        self._oracle.facts[KEYS[number % 2]].sample = Unavailable(reason="no signal")

    async def vanish(self, number: int) -> None:
        key = KEYS[number % 2]
        self._oracle.facts[key].sample = Absent(removal=f"{key} is no more")

    async def restart(self, _: int) -> None:
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        await self._open()

    async def switch(self, number: int) -> None:
        self._oracle.model = ("large", "other")[number % 2]

    async def plan(self, number: int) -> None:
        self._oracle.agent = ("build", "plan")[number % 2]

    async def compact(self, _: int) -> None:
        if self._model.asked:
            await compact(self.stage, self.session)
            self._oracle.is_compacted = True

    async def move(self, number: int) -> None:
        place = self._places[number % 2]
        if place != self._oracle.place:
            self._oracle.place, self._oracle.met = place, []
            await self.stage.tk.move(self.session, place)

    # What must be so.

    async def check(self) -> None:
        """Look at the requests that came since the last look."""
        for number in range(self._checked, len(self._model.asked)):
            request, begins, expected = self._model.asked[number]
            before = self._model.asked[number - 1][0] if number else None
            assert check(request) == {}
            if before is not None and not begins:
                check_extension(before, request)
            measured = (await prefixes(self.stage, self.session))[number]
            assert measured.cause is None or begins, measured
            assert (measured.cause is None) == (reuse_percent(measured) == 100), measured
            if number == len(self._model.asked) - 1:
                await self._check_knowledge(request, expected)
        self._checked = len(self._model.asked)

    async def _check_knowledge(self, request: ModelRequest, expected: dict[str, tuple[str, ...]]) -> None:
        """Baseline and admitted messages, as the request shows them, are what the sources said."""
        now = await epoch(self.stage, self.session)
        assert request.system == tuple(one.text for one in now.baseline)
        stored = [one.info for one in await self.stage.messages(self.session)]
        told = [one for one in stored if isinstance(one, SystemMessage) and one.seq > now.seq]
        assert news(request) == [system_text(one) for one in told]
        updates = [update for message in told for update in message.updates]
        assert known(now, updates) == now.checkpoint, "the checkpoint is what was said"
        effective = {one.key: one.text for one in now.baseline} | {one.key: one.text for one in updates}
        ours = {key: text for key, text in effective.items() if key not in ("core/prompt", "core/environment")}
        mode = ours.pop("core/mode", "")
        assert {key for key in expected if expected[key]} == ours.keys()
        assert [key for key, text in ours.items() if text not in expected[key]] == []
        assert ("plan mode" in mode) == (self._oracle.agent == "plan")
        assert f"acme/{self._oracle.model}" in effective["core/environment"]
        assert f"Working directory: {self._oracle.place}\n" in effective["core/environment"]


def check_extension(before: ModelRequest, after: ModelRequest) -> None:
    """The later request extends the earlier one: as values, and as every provider is sent them."""
    assert (after.tools, after.system) == (before.tools, before.system)
    assert after.messages[: len(before.messages)] == before.messages
    for protocol, body, field, api_id in CODECS:
        endpoint = Endpoint(protocol=protocol, provider_id="acme", base_url="http://localhost:1")
        wires: list[Mapping[str, Any]] = []
        for request in (before, after):
            model = request.model.but(protocol=protocol, api_id=api_id)
            wires.append(body(request.but(model=model), endpoint))
        first, second = (blocks(wire[field]) for wire in wires)
        assert second[: len(first)] == first, protocol
        rest = [{key: value for key, value in wire.items() if key != field} for wire in wires]
        assert uncached(rest[0]) == uncached(rest[1]), protocol


def blocks(messages: list[dict[str, Any]]) -> list[object]:
    """Messages piece by piece: providers join neighbours of one role, and a lone text may stand as a string."""
    found: list[object] = []
    for message in messages:
        place = next((name for name in ("content", "parts") if message.get(name)), None)
        content = message.get(place) if place else None
        pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
        head = {key: value for key, value in message.items() if key != place}
        found.extend((head, uncached(piece)) for piece in pieces or [None])
    return found


def uncached(value: object) -> object:
    """Without cache marks: they say where to cut, and are no part of what is cached."""
    match value:
        case dict():
            return {key: uncached(item) for key, item in value.items() if key != "cache_control"}
        case list():
            return [uncached(item) for item in value]
        case _:
            return value


QUIET = ("midnight", "edit", "unlink", "empty", "register", "unregister", "set", "lose", "vanish", "switch", "plan")
LOUD = ("say", "steer", "read", "fail", "retry", "restart", "compact", "move")
STEP = st.tuples(st.sampled_from(QUIET + LOUD), st.integers(0, 5))
LIFE = st.lists(STEP, min_size=1, max_size=24)


def live(steps: Sequence[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        # Not anyio.run: it refuses while a fixture of the session keeps the plugin's loop open between tests.
        asyncio.run(Life(Path(folder).resolve()).live(steps))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@example(steps=[("register", 0), ("say", 0), ("set", 2), ("say", 0), ("lose", 0), ("compact", 0), ("restart", 0)])
@example(steps=[("register", 0), ("say", 0), ("unregister", 0), ("say", 0), ("register", 0), ("lose", 0), ("say", 0)])
@example(steps=[("edit", 1), ("read", 0), ("edit", 1), ("restart", 0), ("compact", 0), ("say", 0), ("unlink", 1)])
@example(steps=[("edit", 0), ("say", 0), ("midnight", 0), ("fail", 0), ("restart", 0), ("retry", 0), ("steer", 3)])
@example(steps=[("plan", 1), ("say", 0), ("plan", 0), ("say", 0), ("switch", 1), ("say", 0), ("move", 1), ("say", 0)])
@given(steps=LIFE)
def test_inside_an_epoch_every_byte_is_reused_and_the_model_knows_what_the_sources_say(
    steps: list[tuple[str, int]],
) -> None:
    live(steps)


@pytest.mark.soak
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(steps=LIFE)
def test_a_thousand_lives_keep_their_promises(steps: list[tuple[str, int]]) -> None:
    live(steps)
