"""One call gives the whole state of a session."""

from typing import Any

import anyio
import pytest

from turnkeeper import Invalid, NotFound, Rule, Scripted, Settings, Todo
from turnkeeper.model.status import Busy, Idle

LIMIT_S = 60
TODO = Todo(content="reef", status="pending", priority="high")


async def test_a_state_has_all_that_single_methods_give(opened: Any) -> None:
    model = Scripted().says("West.").usage(input=7, output=2).forever()
    async with opened(model) as tk:
        rule = Rule(permission="bash", pattern="*", action="deny")
        session = await tk.create(title="Wind", permission=(rule,))
        child = await tk.create(parent_id=session.id)
        await tk.set_todos(session.id, [TODO])
        await tk.ask("Wind?", session=session)
        await tk.ask("And now?", session=session)
        state = await tk.state(session.id)
        assert state.session == await tk.get(session.id)
        assert (state.status, state.owner) == (Idle(), None)
        assert state.messages == (await tk.messages(session.id)).items
        assert state.todos == (TODO,)
        assert (state.permissions, state.questions, state.diffs) == ((), (), ())
        assert state.children == (child,)
        assert (state.tokens.input, state.cost) == (14, 0)
        assert (state.rules[0].permission, state.rules[-1]) == ("*", rule)
        assert [one.info.id for one in (await tk.state(session.id, messages=1)).messages] == [
            state.messages[-1].info.id
        ]
        assert (await tk.state(session.id, messages=0)).messages == ()


async def test_the_total_cost_of_a_state_has_every_session_below_it(opened: Any) -> None:
    prices = {
        "options": {"baseURL": "http://127.0.0.1:9"},
        "models": {"m": {"cost": {"input": 1_000_000, "output": 0}}},
    }
    model = Scripted().says("West.").usage(input=1, output=1).forever()
    async with opened(model, config={"provider": {"p": prices}, "model": "p/m"}) as tk:
        session = await tk.create()
        child = await tk.create(parent_id=session.id)
        for one in (session, child, await tk.create(parent_id=child.id)):
            await tk.ask("Wind?", session=one)
        state = await tk.state(session.id)
        assert (state.cost, state.total_cost, [one.id for one in state.children]) == (1, 3, [child.id])


async def test_a_state_names_what_waits_for_the_user(opened: Any, settings: Settings, place: Any) -> None:
    model = Scripted().calls("bash", command="ls", description="Lists").then().says("Done.")
    waiting = Settings(ask=None, titles=False, snapshots=False, environ=settings.environ)
    async with opened(model, settings=waiting, config={"permission": {"bash": "ask"}}) as tk:
        session = await tk.create()
        with anyio.fail_after(LIMIT_S):
            async with tk.subscribe(session_id=session.id) as heard, anyio.create_task_group() as group:
                group.start_soon(lambda: tk.ask("Go.", session=session))
                async for one in heard:
                    if one.type == "permission.asked":
                        break
                state = await tk.state(session.id)
                assert (state.status, state.owner is None) == (Busy(), False)
                [request] = state.permissions
                assert request.permission == "bash"
                await tk.reply(request.id, "once")
        assert (await tk.state(session.id)).permissions == ()


async def test_a_state_of_nothing_is_refused(opened: Any) -> None:
    async with opened(Scripted()) as tk:
        with pytest.raises(NotFound):
            await tk.state("ses_nope")
        with pytest.raises(Invalid):
            await tk.state((await tk.create()).id, messages=-1)
