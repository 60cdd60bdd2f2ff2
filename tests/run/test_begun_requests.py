"""Requests that are begun before their turn is on record: nothing is asked that is not, and nothing is left open."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from turnkeeper.model import event as e
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.status import BUSY, Owner
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage


class Forward(Scripted):
    """A script that can be sent most of a request before it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        """How each answer was asked for."""
        self.begun: list[Half] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """What happens before the turn is on record."""
        self.turn_on_record: Callable[[], str | None] = lambda: None
        self._turn_before: str | None = None

    async def begin(self, request: ModelRequest) -> "Half | None":
        """Take in most of a request."""
        self._turn_before = self.turn_on_record()
        if self.meanwhile is not None:
            await self.meanwhile()
        self.begun.append(Half(self, request))
        return self.begun[-1]

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Be asked in one go."""
        self.asked.append("whole")
        return super().stream(request)

    def finish(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Be sent the end."""
        assert self.turn_on_record() not in (None, self._turn_before)
        self.asked.append("end")
        return super().stream(request)


class Half:
    """Most of a request."""

    def __init__(self, script: Forward, request: ModelRequest) -> None:
        self._script, self._request = script, request
        self.is_dropped = False

    def stream(self) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Send the end."""
        return self._script.finish(self._request)

    def drop(self) -> None:
        """Never send it."""
        self.is_dropped = True


async def watched(stage: Stage, script: Forward) -> str:
    """A session of which the script knows the turn that is on record."""
    session = await stage.session()

    def turn_on_record() -> str | None:
        view = stage.tk.store.journal.held(session)
        return view.turn.message.id if view is not None and view.turn is not None else None

    script.turn_on_record = turn_on_record
    return session


async def test_the_end_is_sent_when_the_turn_is_on_record(play: Play) -> None:
    script = Forward()
    script.calls("echo", text="hi").then().says("Done.")
    async with play(script) as stage:
        session = await watched(stage, script)
        await stage.ask(session, "go")
        assert script.asked == ["end", "end"]
        assert [one.is_dropped for one in script.begun] == [True, True]
        assert await stage.is_sound(session)


async def test_a_turn_that_could_not_be_recorded_is_never_asked(play: Play) -> None:
    script = Forward()
    script.says("Never.")
    async with play(script) as stage:
        session = await watched(stage, script)
        store, elsewhere = stage.tk.store, Owner(host="elsewhere", pid=1, started="")

        async def lose_the_session() -> None:
            fence = await store.engine.fence(session) + 1
            await store.journal.append(session, e.StatusChanged(status=BUSY, owner=elsewhere), fence=fence)

        script.meanwhile = lose_the_session
        await stage.say(session, "go")
        outcome = await stage.tk.wait(session)
        assert (outcome.kind, "stale" in outcome.reason) == ("refused", True)
        assert (script.asked, [one.is_dropped for one in script.begun]) == ([], [True])


async def test_who_is_asked_again_is_asked_in_one_go(play: Play) -> None:
    script = Forward()
    script.cuts().then().says("Done.")
    async with play(script, in_a_hurry=True) as stage:
        session = await watched(stage, script)
        await stage.ask(session, "go")
        assert (script.asked, len(script.begun)) == (["end", "whole"], 1)


async def test_what_goes_wrong_before_the_turn_is_on_record_is_met_again_in_it(play: Play) -> None:
    """A bug where requests are made must not leave a session that never says why it does not answer."""
    script = Forward()
    script.says("Done.")

    async def break_down() -> None:
        raise RuntimeError("this cannot be put together")

    script.meanwhile = break_down
    async with play(script) as stage:
        session = await watched(stage, script)
        await stage.ask(session, "go")
        assert (script.asked, script.begun) == (["whole"], [])
        assert await stage.is_sound(session)
