"""What a client does is the same over HTTP and in memory: one suite, run over both."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from lines import WAYS, pair

from turnkeeper.client import Client
from turnkeeper.client.errors import Unreachable
from turnkeeper.client.values import SessionEvent
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Busy, Conflict, Forbidden, Invalid, NotFound
from turnkeeper.model.session import SessionModel
from turnkeeper.model.status import Busy as BusyStatus
from turnkeeper.model.status import Idle
from turnkeeper.model.todo import Todo
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.public import public
from turnkeeper.server.service import ServerOptions

pytestmark = pytest.mark.parametrize("way", WAYS)


async def test_a_session_is_created_with_all_that_was_given(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, server, _):
        parent = await client.create(title="Parent")
        made = await client.create(
            id="ses_mine",
            parent_id=parent.id,
            title="Child",
            agent="plan",
            model=SessionModel(id="large", provider_id="acme"),
            metadata={"ticket": 7},
            permission=(Rule(permission="bash", pattern="*", action="deny"),),
        )
        assert made == await client.get("ses_mine") == await server.stage.tk.get("ses_mine")
        assert made.metadata == {"ticket": 7}
        assert await client.create(id="ses_mine", title="Another") == made
        assert [one.id for one in await client.children(parent.id)] == ["ses_mine"]


async def test_a_label_is_given_once_or_twice_the_same(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, server, _):
        for given in ({"label": "a"}, {"metadata": {"label": "a"}}, {"label": "a", "metadata": {"label": "a"}}):
            made = await client.create(**given)
            assert (await server.stage.tk.get(made.id)).label == "a"
        for said in ("b", 7):
            with pytest.raises(Invalid, match=f"the label 'a' and metadata.label {said!r} contradict each other"):
                await client.create(label="a", metadata={"label": said})
        assert len((await client.list()).items) == 3


async def test_a_session_works_in_the_directory_that_was_named(way: str, tmp_path: Path) -> None:
    (tmp_path / "über uns").mkdir()
    async with pair(way, tmp_path) as (client, _, __):
        made = await client.create(directory=tmp_path / "über uns")
        assert made.directory == str(tmp_path / "über uns")
        assert (await client.list(directory=tmp_path / "über uns")).items == (made,)
        assert (await client.list(directory=tmp_path)).items == ()


async def test_all_sessions_are_listed_in_pages_newest_first(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, server, _):
        made = []
        for number in range(5):
            server.stage.mint.advance(10)
            made.append((await client.create(title=f"Session {number}")).id)
        child = await client.create(parent_id=made[0])
        await client.archive(made[1])
        first = await client.list(limit=2)
        second = await client.list(limit=2, after=first.older)
        assert [one.id for one in (*first.items, *second.items)] == [made[4], made[3], made[2], made[0]]
        assert second.older is None
        everything = await client.list(roots=False, archived=True)
        assert {one.id for one in everything.items} == {*made, child.id}
        assert [one.id for one in (await client.list(parent_id=made[0])).items] == [child.id]
        assert [one.id for one in (await client.list(search="session 3")).items] == [made[3]]
        ours = await client.list(project_id=child.project_id)
        assert [one.id for one in ours.items] == [made[4], made[3], made[2], made[0]]


async def test_a_session_is_renamed_changed_archived_and_restored(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, server, _):
        session_id = (await client.create(title="Old")).id
        assert (await client.rename(session_id, "New")).title == "New"
        changed = await client.update(session_id, metadata={"a": 1})
        assert (changed.title, changed.metadata) == ("New", {"a": 1})
        assert (await client.archive(session_id)).time.archived is not None
        assert (await client.list()).items == ()
        restored = await client.restore(session_id)
        assert restored.time.archived is None
        assert restored == await server.stage.tk.get(session_id)


async def test_what_is_removed_is_gone_with_its_descendants_children_first(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        root = await client.create()
        child = await client.create(parent_id=root.id)
        grandchild = await client.create(parent_id=child.id)
        assert [one.id for one in await client.children(root.id, recursive=True)] == [child.id, grandchild.id]
        assert await client.remove(root.id) == [grandchild, child, root]
        for one in (root, child, grandchild):
            with pytest.raises(NotFound):
                await client.get(one.id)


async def test_a_prompt_is_answered_and_its_history_is_read(way: str, tmp_path: Path) -> None:
    provider = Scripted().says("I look.").calls("echo", text="x").then().says("It is x.")
    async with pair(way, tmp_path, provider) as (client, server, _):
        session_id = (await client.create(title="T")).id
        answer = await client.prompt(session_id, "what is it?")
        assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["It is x."]
        page = await client.messages(session_id)
        assert [type(one.info) for one in page.items] == [UserMessage, AssistantMessage, AssistantMessage]
        assert page.items[-1] == answer == await client.message(session_id, answer.info.id)
        [call] = [part for part in page.items[1].parts if isinstance(part, ToolPart)]
        assert call.tool == "echo"
        assert len(server.stage.provider.requests) == 2  # type: ignore[attr-defined] # It is the script.


async def test_history_is_read_in_pages_from_the_newest_back(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("yes").forever()) as (client, _, __):
        session_id = (await client.create(title="T")).id
        for number in range(3):
            await client.prompt(session_id, f"prompt {number}")
        whole = (await client.messages(session_id)).items
        read: list[MessageWithParts] = []
        page = await client.messages(session_id, limit=2)
        while True:
            read[:0] = page.items
            if page.older is None:
                break
            page = await client.messages(session_id, limit=2, before=page.older)
        assert tuple(read) == whole
        assert len(whole) == 6


async def test_a_prompt_that_is_sent_twice_under_one_id_is_admitted_once(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("once").then().says("twice")) as (client, _, __):
        session_id = (await client.create(title="T")).id
        prompt = Prompt(message_id="msg_mine", parts=(TextInput(text="hello"),))
        assert await client.prompt(session_id, prompt) == await client.prompt(session_id, prompt)
        with pytest.raises(Conflict):
            await client.prompt(session_id, prompt.but(parts=(TextInput(text="something else"),)))


async def test_a_prompt_that_is_not_waited_for_is_safe_and_can_be_waited_for(way: str, tmp_path: Path) -> None:
    gate = Gate()
    async with pair(way, tmp_path, Scripted().waits(gate).says("done")) as (client, _, __):
        session_id = (await client.create(title="T")).id
        message_id = await client.prompt_async(session_id, "hello")
        assert isinstance((await client.message(session_id, message_id)).info, UserMessage)
        await gate.wait_reached()
        assert isinstance(await client.status(session_id), BusyStatus)
        assert list(await client.statuses()) == [session_id]
        gate.open()
        await client.wait(session_id)
        assert isinstance(await client.status(session_id), Idle)


async def test_a_session_is_stopped_and_keeps_what_was_said(way: str, tmp_path: Path) -> None:
    gate = Gate()
    async with pair(way, tmp_path, Scripted().says("half").waits(gate)) as (client, _, __):
        session_id = (await client.create(title="T")).id
        assert await client.stop(session_id) is False
        await client.prompt_async(session_id, "hello")
        await gate.wait_reached()
        with pytest.raises(Busy):
            await client.shell(session_id, "true")
        assert await client.stop(session_id) is True
        last = (await client.messages(session_id)).items[-1]
        assert [part.text for part in last.parts if isinstance(part, TextPart)] == ["half"]


async def test_a_command_of_the_user_is_run(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        session_id = (await client.create(title="T")).id
        done = await client.shell(session_id, "echo from here")
        [call] = [part for part in done.parts if isinstance(part, ToolPart)]
        assert "from here" in getattr(call.state, "output", "")


async def test_a_session_is_forked_before_a_message(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("yes").forever()) as (client, _, __):
        session_id = (await client.create(title="T")).id
        await client.prompt(session_id, "one")
        second = await client.prompt_async(session_id, "two")
        await client.wait(session_id)
        fork = await client.fork(session_id, message_id=second)
        assert len((await client.messages(fork.id)).items) == 2
        assert len((await client.messages((await client.fork(session_id)).id)).items) == 4
        with pytest.raises(Invalid):
            await client.fork(session_id, directory=tmp_path)


async def test_todos_and_changes_are_read(way: str, tmp_path: Path) -> None:
    todos = (Todo(content="Read", status="pending", priority="high"),)
    async with pair(way, tmp_path) as (client, server, _):
        session_id = (await client.create(title="T")).id
        await server.stage.tk.set_todos(session_id, todos)
        assert await client.todos(session_id) == todos
        assert await client.diffs(session_id) == ()


async def test_a_session_is_compacted(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("an answer").forever()) as (client, _, __):
        session_id = (await client.create(title="T")).id
        await client.prompt(session_id, "hello")
        await client.compact(session_id)
        await client.prompt(session_id, "and now?")
        await client.compact(session_id, model="acme/other")
        infos = [one.info for one in (await client.messages(session_id)).items]
        summaries = [one for one in infos if isinstance(one, AssistantMessage) and one.summary]
        assert [one.model_id for one in summaries] == ["large", "other"]


async def test_a_question_is_heard_listed_and_answered(way: str, tmp_path: Path) -> None:
    provider = Scripted().calls("asks", text="the secret").then().says("thanks")
    async with pair(way, tmp_path, provider, config={"permission": {"asks": "ask"}}) as (client, _, __):
        session_id = (await client.create(title="T")).id
        async with client.subscribe(session_id=session_id) as heard:
            await client.prompt_async(session_id, "go")
            async for one in heard:
                if one.type == "permission.asked":
                    break
            [asked] = await client.permissions()
            assert (asked.session_id, asked.patterns) == (session_id, ("the secret",))
            await client.reply(asked.id, "once")
            await client.wait(session_id)
        assert await client.permissions() == ()
        with pytest.raises(NotFound):
            await client.reply(asked.id, "once")
        last = (await client.messages(session_id)).items[-1]
        assert [part.text for part in last.parts if isinstance(part, TextPart)] == ["thanks"]


async def test_a_subscriber_hears_the_values_that_one_in_the_process_hears(way: str, tmp_path: Path) -> None:
    provider = Scripted().thinks("hm").says("Hello.").calls("echo", text="x").then().says("Bye.")
    async with pair(way, tmp_path, provider) as (client, server, _):
        session_id = (await client.create(title="T")).id
        inside: list[object] = []
        far: list[object] = []
        async with (
            server.stage.tk.subscribe(session_id=session_id) as near,
            client.subscribe(session_id=session_id) as heard,
        ):
            await client.prompt(session_id, "go")
            heard.close()
            near.close()
            inside = [_comparable(one) async for one in near]
            far = [_comparable(one) async for one in heard]
        assert far == [one for one in inside if one is not None]


def _comparable(one: Notification | Delta) -> object:
    """What of it a client can know; None for what clients of the first generation are not told."""
    if isinstance(one, Delta):
        return one
    said = dict(one.properties)
    if isinstance(said.get("info"), SystemMessage):
        return None
    if isinstance(info := said.get("info"), UserMessage | AssistantMessage):
        said["info"] = public(info)
    if isinstance(part := said.get("part"), BasePart):
        said["part"] = public(part)
    return one.type, one.session_id, one.directory, one.id, said


async def test_all_sessions_can_be_listened_to_at_once(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __), client.subscribe() as heard:
        one, other = await client.create(title="One"), await client.create(title="Other")
        found = [await anext(heard), await anext(heard)]
        assert [(each.type, each.session_id) for each in found] == [
            ("session.created", one.id),
            ("session.created", other.id),
        ]
        assert isinstance(found[0], Notification)
        assert found[0].properties["info"] == one
        heard.close()
        assert [each async for each in heard] == []


async def _all_of(events: AsyncIterator[SessionEvent]) -> None:
    with anyio.fail_after(60):
        async for _ in events:
            pass


async def test_the_durable_events_of_a_session_are_replayed_and_followed(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("yes").forever()) as (client, _, __):
        session_id = (await client.create(title="T")).id
        await client.prompt(session_id, "one")
        past, has_more = await client.history(session_id, limit=100)
        assert has_more is False
        assert past[0].type == "session.next.prompt.admitted"
        tail = client.events(session_id, after=past[2].number)
        try:
            replayed = [await anext(tail) for _ in past[3:]]
            assert replayed == list(past[3:])
            await client.prompt_async(session_id, "two")
            new = await anext(tail)
            assert (new.type, new.number > past[-1].number) == ("session.next.prompt.admitted", True)
            await client.remove(session_id)
            with pytest.raises(NotFound, match=session_id):
                await _all_of(tail)
        finally:
            await tail.aclose()  # type: ignore[attr-defined] # A generator has it.


async def test_what_is_refused_is_raised_as_it_was(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        session_id = (await client.create(title="T")).id
        with pytest.raises(NotFound, match="ses_nowhere"):
            await client.get("ses_nowhere")
        with pytest.raises(NotFound, match="msg_nowhere"):
            await client.message(session_id, "msg_nowhere")
        with pytest.raises(NotFound):
            await client.status("ses_nowhere")
        with pytest.raises(Invalid):
            await client.messages(session_id, limit=2, before="no cursor")
        with pytest.raises(Invalid):
            await client.list(directory=tmp_path, project_id="p")
        with pytest.raises(NotFound):
            async with client.subscribe(session_id="ses_nowhere"):
                pass


async def test_a_password_lets_in_who_knows_it_and_nobody_else(way: str, tmp_path: Path) -> None:
    options = ServerOptions(password="hunter2", username="otter", environ={"HOME": str(tmp_path)})
    async with pair(way, tmp_path, options=options, username="otter", password="hunter2") as (client, _, __):
        assert (await client.create(title="T")).title == "T"
        async with client.subscribe() as heard:
            heard.close()
    wrong: list[dict[str, Any]] = [{"password": "wrong", "username": "otter"}, {"password": "hunter2"}, {}]
    for given in wrong:
        async with pair(way, tmp_path, options=options, **given) as (client, _, __):
            with pytest.raises(Forbidden, match="TURNKEEPER_SERVER_PASSWORD"):
                await client.list()
            with pytest.raises(Forbidden, match="TURNKEEPER_SERVER_PASSWORD"):
                async with client.subscribe():
                    pass


async def test_several_listen_while_several_are_prompted(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path, Scripted().says("a few words", pieces=3).forever()) as (client, _, __):
        made = [(await client.create(title=f"T{number}")).id for number in range(4)]
        said: dict[str, str] = {}

        async def one(session_id: str) -> None:
            async with client.subscribe(session_id=session_id) as heard:
                await client.prompt(session_id, "go")
                heard.close()
                said[session_id] = "".join([each.delta async for each in heard if isinstance(each, Delta)])

        async with anyio.create_task_group() as group:
            for session_id in made:
                group.start_soon(one, session_id)
        assert said == dict.fromkeys(made, "a few words")


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_of_nothing_is_refused(way: str, tmp_path: Path, limit: int) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        session_id = (await client.create(title="T")).id
        with pytest.raises(Invalid, match="at least one"):
            await client.messages(session_id, limit=limit)


async def test_arguments_of_the_wrong_type_are_refused_as_by_the_library(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        session_id = (await client.create(title="T")).id
        untyped: Any = client
        wrong: list[Callable[[], Awaitable[object]]] = [
            lambda: untyped.get(None),
            lambda: untyped.get({}),
            lambda: client.get(""),
            lambda: client.get("\ud800"),
            lambda: untyped.prompt(session_id, None),
            lambda: client.prompt(session_id, "\ud800"),
            lambda: client.rename(session_id, "\ud800"),
            lambda: untyped.shell(session_id, None),
            lambda: untyped.create(agent=b"x"),
            lambda: untyped.create(metadata={7: "seven"}),
            lambda: client.create(metadata={"n": float("nan")}),
            lambda: untyped.create(metadata={"n": object()}),
        ]
        for act in wrong:
            with pytest.raises(Invalid):
                await act()


async def test_a_client_that_is_closed_says_so(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (_, server, url):
        async with Client(url) if url else Client.in_memory(server.app) as closed:
            session_id = (await closed.create(title="T")).id
        with pytest.raises(Unreachable, match="this client is closed"):
            await closed.get(session_id)
        with pytest.raises(Unreachable, match="this client is closed"):
            await anext(closed.events(session_id))


async def test_a_message_that_is_not_there_is_not_removed(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        session_id = (await client.create(title="T")).id
        with pytest.raises(NotFound):
            await client.remove_message(session_id, "msg_nope")


async def test_agents_and_models_of_a_directory_are_listed(way: str, tmp_path: Path) -> None:
    async with pair(way, tmp_path) as (client, _, __):
        agents = {one.name: one.mode for one in await client.agents(directory=tmp_path)}
        assert agents["build"] == "primary"
        assert agents["general"] == "subagent"
        assert "offline/tk-1" in await client.models(directory=tmp_path)
