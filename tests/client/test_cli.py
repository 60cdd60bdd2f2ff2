"""The commands through a server: a real ``turnkeeper serve``, and answers like those from the store itself."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_store import Answer, api, command, fill, tk
from workshop import Seat, Shop

import turnkeeper
from turnkeeper.cli import failures
from turnkeeper.client import Client
from turnkeeper.client.errors import Unreachable
from turnkeeper.core.answers import REJECTED
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.session import FileDiff, Summary
from turnkeeper.providers.script import Gate, Script
from turnkeeper.testing.server import ScriptedServer

OFFLINE = ("-m", "offline/tk-1")


def a_shop(place: Path) -> Shop:
    """A small project of somebody who has configured nothing."""
    made = Shop(place / "data", place / "project", place / "home")
    for folder in made:
        folder.mkdir(parents=True)
    (made.project / "tides.py").write_text("def hours(minutes):\n    return minutes / 100\n")
    return made


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return a_shop(tmp_path)


@contextmanager
def process(shop: Shop, more: Mapping[str, str], port: int = 0) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """A server of its own, and its address."""
    started = subprocess.Popen(
        command("serve", "--port", str(port), "--json"),
        env=shop.environ(**more),
        cwd=shop.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    with started:
        try:
            assert started.stdout is not None
            yield started, json.loads(started.stdout.readline())["url"]
        finally:
            started.terminate()


@contextmanager
def serving(shop: Shop, **more: str) -> Iterator[str]:
    """The same; its address is enough."""
    with process(shop, more) as (_, url):
        yield url


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, str]]:
    """One server for the tests that harm nobody else's sessions; its store has a small family."""
    shop = a_shop(tmp_path_factory.mktemp("served"))

    async def begin() -> None:
        async with turnkeeper.open(f"sqlite:{shop.data / 'turnkeeper.db'}", directory=shop.project) as opened:
            await fill(opened)

    asyncio.run(begin())
    with serving(shop) as url:
        yield shop, url


def through(served: tuple[Shop, str], *words: str) -> Answer:
    """A command through the server, whatever the store of this process would be."""
    shop, url = served
    return tk(shop.home / "elsewhere", *words, "--server", url)


def session(served: tuple[Shop, str], title: str) -> str:
    made = through(served, "session", "create", "--title", title, "--directory", str(served[0].project), "--json")
    assert made.code == 0, made.err
    return str(made.json["id"])


READING = [
    ("session", "list", "--all"),
    ("session", "list", "--search", "wind"),
    ("session", "list", "--limit", "1"),
    ("session", "show", "{root}"),
    ("session", "messages", "{root}"),
    ("session", "messages", "{root}", "--limit", "1"),
    ("session", "todo", "{root}"),
    ("session", "children", "{root}"),
    ("session", "status", "{root}"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_what_is_read_through_a_server_is_what_the_store_says(common: tuple[Shop, str], words: tuple[str, ...]) -> None:
    [root] = tk(common[0].data, "session", "list", "--search", "Wind over the bay", "--json").json["items"]
    asked = [root["id"] if word == "{root}" else word for word in words]
    near, far = tk(common[0].data, *asked, "--json"), through(common, *asked, "--json")
    assert (far.code, without_places(far.json)) == (0, without_places(near.json)), far.err
    assert through(common, *asked).code == 0


def without_places(value: object) -> object:
    """The same without places in the log, and cursors that only a store has: servers tell neither."""
    if isinstance(value, dict):
        return {name: without_places(one) for name, one in value.items() if name not in ("seq", "nth", "raw", "newer")}
    return [without_places(one) for one in value] if isinstance(value, list) else value


def test_the_diff_of_a_session_is_shown_through_a_server_without_looking_at_snapshots(common: tuple[Shop, str]) -> None:
    session_id = session(common, "Changed")
    lines = "".join(f" line {number}\n" for number in range(1, 20))
    diff = FileDiff(
        file="a.txt", patch=f"@@ -1,19 +1,20 @@\n{lines}+more\n", additions=1, deletions=0, status="modified"
    )
    changed = e.SummaryRecorded(summary=Summary(additions=1, deletions=0, files=1), diffs=(diff,))
    api(common[0].data, lambda opened: opened.store.journal.append(session_id, changed))
    near, far = tk(common[0].data, "session", "diff", session_id), through(common, "session", "diff", session_id)
    assert (far.code, far.out) == (0, near.out)
    assert far.out.endswith("@@ -17,3 +17,4 @@\n line 17\n line 18\n line 19\n+more\n")
    refused = through(common, "session", "diff", session_id, "--from", "1")
    assert (refused.code, "a comparison of two moments needs a store" in refused.err) == (2, True)


def test_sessions_are_named_by_beginnings_and_slugs(common: tuple[Shop, str]) -> None:
    session_id = session(common, "Named")
    shown = through(common, "session", "show", session_id, "--json").json
    assert through(common, "session", "show", shown["slug"], "--json").json == shown
    assert through(common, "session", "show", session_id[:-4], "--json").json == shown
    missing = through(common, "session", "show", "ses_nowhere")
    assert (missing.code, "there is no session 'ses_nowhere'" in missing.err) == (1, True)
    several = through(common, "session", "show", session_id[:8])
    assert (several.code, "may be any of these" in several.err) == (1, True)


def test_a_session_lives_its_life_through_a_server(common: tuple[Shop, str]) -> None:
    session_id = session(common, "A life")
    assert tk(common[0].data, "session", "show", session_id, "--json").json["title"] == "A life"
    assert through(common, "session", "rename", session_id, "Another", "--json").json["title"] == "Another"
    assert "archived" in through(common, "session", "archive", session_id, "--json").json["time"]
    assert "archived" not in through(common, "session", "restore", session_id, "--json").json["time"]
    child = through(common, "session", "create", "--parent", session_id, "--json").json["id"]
    fork = through(common, "session", "fork", session_id, "--json").json
    assert fork["title"].startswith("Another (fork")
    assert through(common, "session", "fork", session_id, "--at", "1", "--json").json["title"] == "A life (fork #1)"
    elsewhere = through(common, "session", "fork", session_id, "--worktree", str(common[0].home / "new"))
    assert (elsewhere.code, "has no snapshot of files to restore" in elsewhere.err) == (1, True)
    assert "Nothing was open" in through(common, "session", "abort", session_id).out
    removed = through(common, "session", "delete", session_id, "--yes", "--json").json
    assert [one["id"] for one in removed["items"]] == [child, session_id]
    assert tk(common[0].data, "session", "show", session_id).code == 1


REFUSED = [
    ("session", "search", "wind"),
    ("session", "recall", "calm-otter", "abcd"),
    ("session", "context", "calm-otter"),
    ("session", "move", "calm-otter", "."),
    ("session", "resume", "calm-otter"),
    ("session", "recover"),
    ("session", "compact", "calm-otter"),
    ("session", "messages", "calm-otter", "--context"),
    ("session", "messages", "calm-otter", "--after", "x"),
    ("session", "fork", "calm-otter", "--directory", "."),
    ("session", "export", "calm-otter"),
    ("import", "opencode"),
    ("stats",),
    ("doctor",),
    ("db", "path"),
    ("auth", "list"),
    ("serve",),
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_no_server_does_is_refused_with_what_to_do(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = tk(tmp_path, *words, "--server", "http://127.0.0.1:1")
    assert done.code == 2, done
    assert "needs a store, and http://127.0.0.1:1 is a server" in done.err
    assert "without --server" in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_a_server_unless_a_store_is_named(common: tuple[Shop, str]) -> None:
    shop, url = common
    far = shop.process("session", "list", "--all", "--json", TURNKEEPER_SERVER=url, TURNKEEPER_DATA="/nowhere")
    assert far.returncode == 0, far.stderr
    assert json.loads(far.stdout)["items"] != []
    near = shop.process("session", "list", "--json", "--data", str(shop.home), TURNKEEPER_SERVER="http://127.0.0.1:1")
    assert (near.returncode, json.loads(near.stdout)["items"]) == (0, [])
    both = tk(shop.home, "session", "list", "--server", url, "--store", "memory:")
    assert (both.code, "not both" in both.err) == (2, True)


def test_nobody_at_the_address_and_no_address_at_all_are_said(tmp_path: Path) -> None:
    away = tk(tmp_path, "session", "list", "--server", "http://127.0.0.1:1", "--json")
    assert (away.code, json.loads(away.err)["error"]["name"]) == (1, "Unreachable")
    wrong = tk(tmp_path, "session", "list", "--server", "somewhere")
    assert (wrong.code, "http://HOST:PORT" in wrong.err) == (2, True)


def test_a_password_comes_from_the_environment(shop: Shop) -> None:
    with serving(shop, OPENCODE_SERVER_PASSWORD="hunter2") as url:
        without = shop.process("session", "list", "--server", url)
        assert (without.returncode, "TURNKEEPER_SERVER_PASSWORD" in without.stderr) == (1, True)
        for name in ("OPENCODE_SERVER_PASSWORD", "TURNKEEPER_SERVER_PASSWORD"):
            known = shop.process("session", "list", "--server", url, **{name: "hunter2"})
            assert (known.returncode, "hunter2" in known.stdout + known.stderr) == (0, False)


# Runs.


def test_a_run_through_a_server_writes_what_a_run_here_writes(common: tuple[Shop, str], shop: Shop) -> None:
    words = ("read tides.py, then run `echo high`",)
    far = common[0].run(*words, "--server", common[1])
    near = shop.run(*words)
    assert (far.code, far.out) == (near.code, near.out) == (0, near.out), far.err
    assert "→ read tides.py" in far.err
    assert "$ echo high" in far.err
    assert "offline/tk-1 · 3 turns" in far.err


def test_json_lines_through_a_server_are_those_of_a_run_here(common: tuple[Shop, str], shop: Shop) -> None:
    words = ("--format", "json", "--thinking", "read tides.py, then run `echo high`")
    far, near = common[0].run(*words, "--server", common[1]), shop.run(*words)
    assert kinds(far) == kinds(near)


def kinds(done: Answer) -> list[tuple[str, object]]:
    lines = [json.loads(line) for line in done.out.splitlines()]
    return [(one["type"], one["part"].get("text", one["part"].get("tool"))) for one in lines]


def test_a_run_goes_on_in_a_session_a_fork_of_it_or_the_newest(common: tuple[Shop, str]) -> None:
    shop, url = common
    (shop.project / "sub").mkdir(exist_ok=True)
    place = ("--dir", str(shop.project / "sub"))
    assert shop.run(*place, "--title", "First", "hello", "--server", url).code == 0
    assert shop.run(*place, "-c", "and again", "--server", url).code == 0
    [first] = through(common, "session", "list", "--directory", place[1], "--json").json["items"]
    assert shop.run(*place, "-c", "--fork", "in a copy", "--server", url).code == 0
    forked = through(common, "session", "list", "--directory", place[1], "--json").json["items"]
    assert [one["title"] for one in forked] == ["First (fork #1)", "First"]
    lengths = [len(shop.messages(one["id"])) for one in (first, forked[0])]
    assert lengths[1] == lengths[0] + 2


def test_a_command_of_the_user_runs_on_the_server(common: tuple[Shop, str]) -> None:
    session_id = session(common, "Command")
    done = common[0].process("run", "-s", session_id, "!echo from the shell", "--server", common[1])
    assert done.returncode == 0, done.stderr
    assert "from the shell" in done.stderr


def test_a_session_is_compacted_on_the_server(common: tuple[Shop, str]) -> None:
    session_id = session(common, "Compacted")
    assert common[0].process("run", "-s", session_id, "read tides.py", "--server", common[1]).returncode == 0
    done = through(common, "session", "compact", session_id, "--force", "--json")
    assert (done.code, "read tides.py" in done.json["summary"]) == (0, True)


def test_questions_are_answered_at_the_terminal(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "asking")
    shop.configure(permission={"bash": "ask"})
    said = "run `echo hi > made.txt`, then run `echo ho >> made.txt`"
    with shop.terminal("run", *OFFLINE, said, "--server", common[1]) as seat:
        assert "? Run a command?\n  echo hi > made.txt\n" in asked(seat)
        seat.types("y\n")
        assert "echo ho >> made.txt" in asked(seat)
        seat.types("y\n")
        assert seat.end() == 0, seat.shown
    assert (shop.project / "made.txt").read_text() == "hi\nho\n"


def test_a_question_that_another_client_answers_is_not_asked_any_more(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "elsewhere-answered")
    shop.configure(permission={"bash": "ask"})

    async def allow() -> None:
        async with Client(common[1], directory=shop.project) as client:
            [waiting] = await client.permissions()
            await client.reply(waiting.id, "once")

    with shop.terminal("run", *OFFLINE, "run `echo hi > made.txt`", "--server", common[1]) as seat:
        asked(seat)
        asyncio.run(allow())
        assert seat.end() == 0, seat.shown
    assert (shop.project / "made.txt").read_text() == "hi\n"


def asked(seat: Seat) -> str:
    seat.read_until("or say what to do instead\n> ")
    return seat.shown


def test_where_nobody_can_be_asked_the_answer_is_no_unless_all_is_allowed(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "refusing")
    shop.configure(permission={"bash": "ask"})
    refused = shop.run("run `echo hi > made.txt`", "--server", common[1])
    assert (refused.code, "there is no terminal to ask on" in refused.err) == (1, True), refused
    assert not (shop.project / "made.txt").exists()
    allowed = shop.run("--auto", "run `echo hi > made.txt`", "--server", common[1])
    assert (allowed.code, (shop.project / "made.txt").read_text()) == (0, "hi\n"), allowed


def test_where_nobody_can_be_asked_the_model_is_told_so_and_not_that_a_user_refused(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "nobody")
    shop.configure(permission={"bash": "ask"})
    place = ("--dir", str(shop.project), "--server", common[1])
    shop.run("run `echo hi > made.txt`", *place)
    [call] = tool_calls(common, shop)
    assert call["state"]["error"] == REJECTED["nobody"]


def test_a_run_without_a_user_answers_nothing_that_waited_before_and_leaves_its_prompt(
    common: tuple[Shop, str],
) -> None:
    shop = a_shop(common[0].home / "waiting")
    shop.configure(permission={"bash": "ask"})

    async def asked() -> tuple[str, str]:
        async with Client(common[1], directory=shop.project) as client, client.subscribe() as heard:
            session_id = (await client.create()).id
            await client.prompt_async(session_id, "run `echo hi > made.txt`")
            async for one in heard:
                if isinstance(one, Notification) and one.type == "permission.asked":
                    break
            [request] = await client.permissions()
            return session_id, request.id

    async def allow() -> None:
        async with Client(common[1], directory=shop.project) as client:
            [request] = await client.permissions()
            assert request.id == request_id
            await client.reply(request.id, "once")
            await client.wait(session_id)
            assert len((await client.messages(session_id)).items) >= 4

    session_id, request_id = anyio.run(asked)
    waiting = shop.process("run", "and then?", "-s", session_id, "--server", common[1])
    assert (waiting.returncode, "a call waits for an answer" in waiting.stderr) == (1, True), waiting
    anyio.run(allow)
    assert (shop.project / "made.txt").read_text() == "hi\n"


def tool_calls(common: tuple[Shop, str], shop: Shop) -> list[dict[str, Any]]:
    """The tool calls of the one session of a project."""
    [found] = through(common, "session", "list", "--directory", str(shop.project), "--json").json["items"]
    messages = through(common, "session", "messages", found["id"], "--json").json["items"]
    return [part for message in messages for part in message["parts"] if part["type"] == "tool"]


def test_an_undo_through_a_server_lists_files_and_conflicts_as_on_a_store(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "undoing")
    place = ("--dir", str(shop.project), "--server", common[1])
    assert shop.run("--auto", "run `echo hi > made.txt; echo ho > other.txt`", *place).code == 0
    [found] = through(common, "session", "list", "--directory", str(shop.project), "--json").json["items"]
    (shop.project / "other.txt").write_text("mine\n")
    planned = through(common, "session", "undo", found["id"], "--dry-run")
    listed = (
        "- made.txt  is deleted: it changed while a command ran\n! other.txt  stays as it is: others changed it since"
    )
    assert listed in planned.out, planned
    assert (planned.code, (shop.project / "made.txt").exists()) == (1, True)
    done = through(common, "session", "undo", found["id"], "--yes")
    assert (done.code, (shop.project / "made.txt").exists()) == (1, False), done
    assert listed in done.err
    assert "1 file changed; 1 file stays as it is. Redo brings back" in done.err
    again = through(common, "session", "redo", found["id"], "--yes", "--json")
    assert (again.code, again.json["files"][0]["kind"]) == (0, "create"), again
    assert (shop.project / "made.txt").read_text() == "hi\n"


def test_a_prompt_that_the_server_refuses_leaves_no_empty_session(common: tuple[Shop, str]) -> None:
    shop = a_shop(common[0].home / "keyless")
    before = through(common, "session", "list", "--all", "--json").json["items"]
    refused = shop.run("-m", "anthropic/claude-sonnet-4-5", "hello", "--server", common[1])
    assert (refused.code, "turnkeeper auth login anthropic" in refused.err) == (1, True), refused
    assert through(common, "session", "list", "--all", "--json").json["items"] == before


def keys(provider: ScriptedServer) -> dict[str, str]:
    """What a server needs to ask the scripted provider."""
    named = {"anthropic": {"options": {"baseURL": provider.url}}}
    config = {"model": "anthropic/claude-sonnet-4-5", "provider": named}
    return {"ANTHROPIC_API_KEY": "k", "TURNKEEPER_CONFIG_CONTENT": json.dumps(config)}


def texts(shop: Shop) -> list[str]:
    """The texts of the newest session."""
    parts = [part for one in shop.messages(shop.sessions()[0]["id"]) for part in one["parts"]]
    return [one["text"] for one in parts if one["type"] == "text"]


async def test_ctrl_c_stops_the_session_on_the_server_and_keeps_what_was_said(shop: Shop) -> None:
    script = Script().titles("T").says("Half an answer. ").waits(Gate())
    async with ScriptedServer(script) as provider:
        with serving(shop, **keys(provider)) as url, shop.terminal("run", "hello", "--server", url) as seat:
            await anyio.to_thread.run_sync(seat.read_until, "Half an answer.")
            seat.process.send_signal(signal.SIGINT)
            assert await anyio.to_thread.run_sync(seat.end) == 130, seat.shown
            status = await anyio.to_thread.run_sync(lambda: through((shop, url), "session", "status", "--json"))
            assert status.json == {"items": []}
        assert await anyio.to_thread.run_sync(texts, shop) == ["hello", "Half an answer. "]


async def test_a_run_outlives_a_server_that_is_killed_and_started_again(shop: Shop) -> None:
    gate = Gate()
    script = Script().titles("T").says("So much was said that it is on the disk. " * 100).waits(gate)
    async with ScriptedServer(script.then().says("Asked again.")) as provider:
        given = keys(provider)
        with process(shop, given) as (killed, url):
            async with await anyio.open_process(
                command("run", "hello", "--server", url), env=shop.environ(), cwd=shop.project, stdin=subprocess.DEVNULL
            ) as run:
                await gate.wait_reached()
                killed.kill()
                await anyio.to_thread.run_sync(killed.wait)
                with process(shop, given, int(url.rpartition(":")[2])):
                    assert run.stdout is not None
                    shown = b"".join([piece async for piece in run.stdout]).decode()
                    code = await run.wait()
        prompt, *answers = await anyio.to_thread.run_sync(texts, shop)
        assert (prompt, shown.split()) == ("hello", " ".join(answers).split())
        assert (code, bool(shown)) == ((0 if answers == ["Asked again."] else 130), True)


def test_what_several_tasks_find_wrong_is_told_once_and_a_bug_among_it_is_a_bug() -> None:
    away = Unreachable("no server answers")
    several = ExceptionGroup("", [away, ExceptionGroup("", [Unreachable("nor here")])])
    assert failures.problem(several) == failures.CliFailure("Unreachable", "no server answers", failures.REFUSED)
    assert failures.problem(ExceptionGroup("", [away, LookupError("a bug")])) is None
