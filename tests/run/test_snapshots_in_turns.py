"""Snapshots in turns: what the calls of a turn did to the files is on record, and costs no turn its answer."""

import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

import turnkeeper
from turnkeeper.api import Turnkeeper
from turnkeeper.model.config import Config
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part, PatchPart, SnapshotPart, StepFinishPart, StepStartPart, ToolPart
from turnkeeper.model.parts.tool import ToolRunning
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import allow_all
from turnkeeper.run.runtime import Settings
from turnkeeper.tools.custom import tool
from turnkeeper.tools.tool import ToolContext
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import Snapshots

DEADLINE_S = 60


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    own = {"HOME": str(tmp_path / "home"), "TURNKEEPER_DATA": str(tmp_path / "data"), "TURNKEEPER_TRUST": "1"}
    return {"PATH": os.environ["PATH"], **own}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "kept.txt").write_text("kept\n")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout


def script(*calls: tuple[str, dict[str, object]]) -> Scripted:
    """Each call in a turn of its own, then an answer."""
    found = Scripted()
    for name, input in calls:
        found = found.calls_raw(name, msgspec.json.encode(input).decode()).then()
    return found.says("Done.")


@asynccontextmanager
async def opened(
    project: Path, environ: dict[str, str], provider: Scripted, **given: object
) -> AsyncIterator[Turnkeeper]:
    settings = Settings(transport=lambda endpoint: provider, titles=False, environ=environ, ask=allow_all)
    settings = msgspec.structs.replace(settings, **given)
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open("memory:", directory=project, settings=settings) as tk:
            yield tk


async def go(tk: Turnkeeper, words: str = "go", session_id: str | None = None) -> str:
    session_id = session_id or (await tk.create()).id
    await tk.prompt(session_id, words)
    await tk.wait(session_id)
    await tk.wait_upkeep(session_id)
    return session_id


async def turns(tk: Turnkeeper, session_id: str) -> list[Sequence[Part]]:
    found = [one async for one in tk.iter_messages(session_id, reverse=False)]
    return [one.parts for one in found if isinstance(one.info, AssistantMessage)]


async def prompt(tk: Turnkeeper, session_id: str) -> UserMessage:
    """The newest prompt."""
    async for one in tk.iter_messages(session_id):
        if isinstance(one.info, UserMessage):
            return one.info
    raise AssertionError("there is no prompt")


async def test_a_turn_records_the_trees_before_and_after_it_and_what_changed(
    project: Path, environ: dict[str, str]
) -> None:
    calls: list[tuple[str, dict[str, object]]] = [
        ("write", {"filePath": "made.txt", "content": "one\n"}),
        ("bash", {"command": "echo more >> made.txt; rm kept.txt"}),
    ]
    async with opened(project, environ, script(*calls)) as tk:
        session_id = await go(tk)
        first, second, last = await turns(tk, session_id)
        made, kept = str(project / "made.txt"), str(project / "kept.txt")
        for parts, files in ((first, (made,)), (second, (kept, made))):
            assert list(map(type, parts)) == [StepStartPart, ToolPart, StepFinishPart, PatchPart]
            start, _, finish, patch = parts
            assert isinstance(start, StepStartPart)
            assert isinstance(finish, StepFinishPart)
            assert isinstance(patch, PatchPart)
            assert (patch.hash, patch.after, patch.files) == (start.snapshot, finish.snapshot, files)
        shadow = await Snapshots(environ, lambda: 0).of(await identify(project), Config())
        assert shadow is not None
        assert isinstance(first[0], StepStartPart)
        assert first[0].snapshot is not None
        assert set(await shadow.files(first[0].snapshot)) == {"kept.txt"}
        assert isinstance(last[-1], StepFinishPart)  # It called nothing, so it has no patch.


async def test_the_changes_of_a_prompt_and_of_its_session_are_summarised_and_told(
    project: Path, environ: dict[str, str]
) -> None:
    provider = script(("write", {"filePath": "a.txt", "content": "1\n2\n"}))
    more = provider.then().calls_raw("write", '{"filePath": "b.txt", "content": "3\\n"}').then().says("Done.")
    async with opened(project, environ, more) as tk:
        heard: list[Notification] = []
        listener = tk.bus.listen(lambda one: heard.append(one) if isinstance(one, Notification) else None)
        session_id = await go(tk)
        session = await tk.get(session_id)
        assert session.summary is not None
        assert (session.summary.additions, session.summary.deletions, session.summary.files) == (2, 0, 1)
        told = [one for one in heard if one.type == "session.diff"]
        [diffs] = [one.properties["diff"] for one in told]
        assert isinstance(diffs, tuple)
        assert [diff.file for diff in diffs] == ["a.txt"]
        summary = (await prompt(tk, session_id)).summary
        assert summary is not None
        assert [(diff.file, diff.additions, diff.status) for diff in summary.diffs] == [("a.txt", 2, "added")]
        await go(tk, "more", session_id)
        session = await tk.get(session_id)
        assert session.summary is not None
        assert (session.summary.additions, session.summary.files) == (3, 2)
        summary = (await prompt(tk, session_id)).summary
        assert summary is not None
        assert [diff.file for diff in summary.diffs] == ["b.txt"]
        listener.close()
        assert not (await tk.doctor()).problems


async def test_what_the_user_edits_while_a_call_waits_for_permission_is_not_the_turn_s(
    project: Path, environ: dict[str, str]
) -> None:
    (project / "turnkeeper.json").write_text('{"permission": {"edit": "ask"}}')

    async def edit_then_allow(request: PermissionRequest) -> Reply:
        (project / "kept.txt").write_text("edited by the user\n")
        return Reply(answer="once")

    provider = script(("write", {"filePath": "made.txt", "content": "one\n"}))
    async with opened(project, environ, provider, ask=edit_then_allow) as tk:
        first, _ = await turns(tk, await go(tk))
        [patch] = [part for part in first if isinstance(part, PatchPart)]
        assert patch.files == (str(project / "made.txt"),)
        assert isinstance(first[0], StepStartPart)
        assert first[0].snapshot == patch.hash


async def test_a_turn_that_was_stopped_has_its_patch(project: Path, environ: dict[str, str]) -> None:
    provider = script(("bash", {"command": "echo x > made.txt; echo ready; sleep 600"}))
    async with opened(project, environ, provider) as tk:
        session_id = (await tk.create()).id
        async with tk.subscribe() as heard:
            await tk.prompt(session_id, "go")
            async for one in heard:
                part = one.properties.get("part") if isinstance(one, Notification) else None
                state = part.state if isinstance(part, ToolPart) else None
                if isinstance(state, ToolRunning) and "ready" in str(state.metadata):
                    break
        await tk.stop(session_id)
        [parts] = await turns(tk, session_id)
        [patch] = [part for part in parts if isinstance(part, PatchPart)]
        assert patch.files == (str(project / "made.txt"),)


@pytest.mark.parametrize("broken", ["no git", "switched off", "no room for it"])
async def test_without_snapshots_a_turn_runs_all_the_same(
    project: Path, environ: dict[str, str], broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    match broken:
        case "no git":
            environ["PATH"] = "/nowhere"
        case "switched off":
            (project / "turnkeeper.json").write_text('{"snapshot": false}')
        case _:
            data = Path(environ["TURNKEEPER_DATA"])
            data.mkdir(parents=True)
            (data / "snapshot").write_text("in the way")
    provider = script(("write", {"filePath": "made.txt", "content": "one\n"}))
    async with opened(project, environ, provider) as tk:
        first, _ = await turns(tk, await go(tk))
        assert list(map(type, first)) == [StepStartPart, ToolPart, StepFinishPart]
        assert (project / "made.txt").read_text() == "one\n"
    warnings = [one for one in caplog.records if "snapshot" in one.getMessage()]
    assert len(warnings) == (broken != "switched off")


async def test_the_repository_of_the_user_is_left_alone(project: Path, environ: dict[str, str]) -> None:
    def state() -> tuple[str, str, bytes]:
        index = (project / ".git/index").read_bytes()
        return git(project, "for-each-ref"), git(project, "config", "--list"), index

    before = state()
    async with opened(project, environ, script(("write", {"filePath": "made.txt", "content": "one\n"}))) as tk:
        await go(tk)
    assert state() == before
    assert git(project, "status", "--porcelain") == "?? made.txt\n"
    git(project, "fsck", "--strict")


async def test_a_call_that_runs_after_a_restart_has_a_patch_of_its_own(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    (project / "turnkeeper.json").write_text('{"permission": {"edit": "ask"}}')
    provider = script(("write", {"filePath": "made.txt", "content": "one\n"}))
    settings = Settings(transport=lambda endpoint: provider, titles=False, environ=environ, ask=None)
    store = f"sqlite:{tmp_path / 'store.db'}"
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open(store, directory=project, settings=settings) as tk, tk.subscribe() as heard:
            session_id = (await tk.create()).id
            await tk.prompt(session_id, "go")
            async for one in heard:
                if one.type == "permission.asked":
                    break
        (project / "kept.txt").write_text("edited while nothing ran\n")
        async with turnkeeper.open(store, directory=project, settings=settings) as tk:
            [request] = await tk.permissions()
            await tk.reply(request.id, "once")
            await tk.run(session_id)
            await tk.wait_upkeep(session_id)
            first, _ = await turns(tk, session_id)
            [patch] = [part for part in first if isinstance(part, PatchPart)]
            assert patch.files == (str(project / "made.txt"),)
            assert patch.hash in [part.snapshot for part in first if isinstance(part, SnapshotPart)]
            session = await tk.get(session_id)
            assert session.summary is not None
            assert session.summary.files == 1


async def test_what_is_kept_for_a_session_goes_with_it(project: Path, environ: dict[str, str]) -> None:
    provider = script(("write", {"filePath": "made.txt", "content": "one\n"}))
    async with opened(project, environ, provider) as tk:
        session_id = await go(tk)
        kept = list(Path(environ["TURNKEEPER_DATA"]).glob(f"snapshot/*/*/refs/turnkeeper/{session_id}/*"))
        assert len(kept) == 2
        await tk.remove(session_id)
        assert not any(file.exists() for file in kept)


@pytest.mark.parametrize("action", ["allow", "ask"])
async def test_the_snapshot_before_a_call_is_durable_before_the_call_acts(
    project: Path, environ: dict[str, str], action: str
) -> None:
    (project / "turnkeeper.json").write_text(f'{{"permission": {{"look": "{action}"}}}}')
    seen: list[str | None] = []
    opened_store: list[Turnkeeper] = []

    @tool
    async def look(context: ToolContext) -> str:
        """Read what is on record."""
        [parts] = await turns(opened_store[0], context.session_id)
        seen.extend(part.snapshot for part in parts if isinstance(part, StepStartPart))
        return "seen"

    async def edit_then_allow(request: PermissionRequest) -> Reply:
        (project / "kept.txt").write_text("edited by the user\n")
        return Reply(answer="once")

    given = {"tools": lambda: (look,), "ask": edit_then_allow}
    async with opened(project, environ, script(("look", {})), **given) as tk:
        opened_store.append(tk)
        first, _ = await turns(tk, await go(tk))
        assert isinstance(first[0], StepStartPart)
        assert first[0].snapshot is not None
        assert seen == [first[0].snapshot]


async def test_a_prompt_that_is_answered_at_once_and_reads_only_costs_no_snapshot(
    project: Path, environ: dict[str, str]
) -> None:
    async def never(seconds: float) -> None:
        await anyio.sleep_forever()

    async with opened(project, environ, script(("read", {"filePath": "kept.txt"})), sleep=never) as tk:
        first, last = await turns(tk, await go(tk))
        assert list(map(type, first)) == [StepStartPart, ToolPart, StepFinishPart]
        assert isinstance(last[-1], StepFinishPart)
    assert not (Path(environ["TURNKEEPER_DATA"]) / "snapshot").exists()
