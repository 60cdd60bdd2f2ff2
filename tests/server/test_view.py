"""What the web page reads of one session, now and after any event; and prompts that are taken back."""

from pathlib import Path
from typing import Any

import anyio
from served import DEADLINE_S, Served, served

from turnkeeper.providers.scripted import Scripted


async def talked(server: Served, count: int = 3) -> str:
    """A session with some prompts and their answers."""
    session = await server.session(title="Tide tables")
    for nth in range(count):
        await server.ask(session, f"prompt {nth}")
    return session


async def test_an_outline_has_a_row_for_each_message_with_its_place(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.\n\nIndeed.").forever()) as server:
        session = await talked(server)
        outline = await server.get(f"/tk/session/{session}/outline")
        rows = [row for row in outline["rows"] if row["role"] != "system"]
        assert [(row["role"], row["title"]) for row in rows] == [
            (role, title) for nth in range(3) for role, title in (("user", f"prompt {nth}"), ("assistant", "Yes."))
        ]
        assert (rows[1]["chars"], rows[1]["lines"]) == (len("Yes.\n\nIndeed."), 3)
        seqs = [row["seq"] for row in outline["rows"]]
        assert seqs == sorted(set(seqs))
        later = await server.get(f"/tk/session/{session}/outline", params={"after": seqs[-2]})
        assert later["rows"] == outline["rows"][-1:]


async def test_messages_are_read_next_to_any_seq(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await talked(server)
        path = f"/tk/session/{session}/messages"
        seqs = [row["seq"] for row in (await server.get(f"/tk/session/{session}/outline"))["rows"]]

        async def read(**given: int) -> list[int]:
            return [one["seq"] for one in (await server.get(path, params=given))["items"]]

        assert await read() == seqs
        assert await read(limit=2) == seqs[-2:]
        assert await read(after=seqs[1], limit=2) == seqs[2:4]
        assert await read(before=seqs[3], limit=2) == seqs[1:3]
        await server.get(path, 400, params={"limit": 0})
        await server.get("/tk/session/ses_unknown/messages", 404)


async def test_a_session_is_shown_as_it_was_after_an_event(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await talked(server)
        now = await server.get(f"/tk/session/{session}/state")
        rows = (await server.get(f"/tk/session/{session}/outline"))["rows"]
        middle = [row for row in rows if row["role"] == "user"][2]["seq"] - 1
        then = await server.get(f"/tk/session/{session}/state", params={"at": middle})
        assert (then["seq"], now["session"]["title"]) == (middle, "Tide tables")
        assert then["messages"] < now["messages"]
        assert then["session"]["cost"] <= now["session"]["cost"]
        before = (await server.get(f"/tk/session/{session}/outline", params={"at": middle}))["rows"]
        assert [row["id"] for row in before] == [row["id"] for row in rows if row["seq"] <= middle]
        messages = await server.get(f"/tk/session/{session}/messages", params={"at": middle})
        assert [one["seq"] for one in messages["items"]] == [row["seq"] for row in before]
        await server.get(f"/tk/session/{session}/state", 400, params={"at": now["seq"] + 1})


async def test_a_prompt_that_waits_can_be_taken_back_and_a_begun_one_cannot(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Slow.").hangs()) as server:
        session = await server.session()
        first, second = "msg_first", "msg_second"

        async def prompt(name: str, text: str) -> None:
            body = {"messageID": name, "parts": [{"type": "text", "text": text}], "delivery": "queue"}
            await server.post(f"/session/{session}/prompt_async", body, 204)

        await prompt(first, "begin")
        with anyio.fail_after(DEADLINE_S):
            while not (await server.get(f"/tk/session/{session}/outline"))["rows"]:
                await anyio.sleep(0)
        await prompt(second, "then this")
        [waiting] = (await server.get(f"/tk/session/{session}/state"))["inbox"]
        assert (waiting["delivery"], waiting["message"]["info"]["id"]) == ("queue", second)
        taken: Any = await server.call("DELETE", f"/tk/session/{session}/inbox/{second}")
        assert taken["parts"][0]["text"] == "then this"
        assert (await server.get(f"/tk/session/{session}/state"))["inbox"] == []
        await server.call("DELETE", f"/tk/session/{session}/inbox/{second}", 409)
        await server.call("DELETE", f"/tk/session/{session}/inbox/{first}", 409)
        await server.call("DELETE", f"/tk/session/{session}/inbox/msg_never", 404)
        await server.post(f"/session/{session}/abort")


async def test_what_the_model_is_shown_stands_next_to_what_the_log_holds(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await talked(server, 2)
        shown = await server.get(f"/tk/session/{session}/shown")
        texts = [(one["label"], one["shown"], one["total"], one["state"]) for one in shown["pieces"]]
        assert ("user", 8, 8, "whole") in texts
        assert ("assistant", 4, 4, "whole") in texts
        assert shown["baseline"]
        assert all(one["text"] for one in shown["baseline"])
        piece = next(one for one in shown["pieces"] if one["label"] == "assistant")
        page = await server.get(f"/tk/session/{session}/recall/{piece['handle']}")
        assert (page["text"], page["total"]) == ("Yes.", 4)
        assert piece["excerpt"] == "Yes."


async def test_a_turn_that_failed_is_not_said_to_be_shown_to_the_model(tmp_path: Path) -> None:
    script = Scripted().says("Half an ans").fails(401).then().says("Yes.").forever()
    async with served(tmp_path, script) as server:
        session = await talked(server, 2)
        shown = await server.get(f"/tk/session/{session}/shown")
        told = [(one["state"], one["shown"], one["total"], one["excerpt"]) for one in shown["pieces"]]
        assert told == [
            ("whole", 8, 8, "prompt 0"),
            ("left out", 0, 11, ""),
            ("whole", 8, 8, "prompt 1"),
            ("whole", 4, 4, "Yes."),
        ]
