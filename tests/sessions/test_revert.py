"""Revert: history and files are set aside and come back; what others wrote is kept or reported, never lost."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import anyio
import pytest
from confined import unprivileged
from left_behind import DEAD

from turnkeeper.core.revert import EDITED, NO_FILE, NO_TEXT, SAME_LINES
from turnkeeper.core.revert_plan import NO_SNAPSHOTS, UNKNOWN, RevertTarget
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import StepStartPart, TextPart
from turnkeeper.model.parts.tool import RunningTime, ToolRunning
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.session import Summary
from turnkeeper.model.status import BUSY
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.testing.builders import a_call, a_text, a_user, an_assistant, completed
from turnkeeper.testing.harness import Stage
from turnkeeper.testing.reverting import Short, opened, record_turn, repository
from turnkeeper.workspace.owner import this_process
from turnkeeper.workspace.restored_file import second_names
from turnkeeper.workspace.snapshots import ShadowRepository

SESSION = "ses_one"
LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    place = tmp_path / "place"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    (place / "kept").write_text(LINES)
    (place / "doomed").write_text("precious\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    async with opened("memory:", tmp_path) as one:
        await one.session(id=SESSION)
        yield one


def git(place: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environ = {"PATH": os.environ["PATH"], "HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=place, env=environ, check=True, capture_output=True, text=True).stdout


def work(place: Path) -> None:
    """A step that changes, makes and deletes files."""
    (place / "kept").write_text(LINES.replace("line 3\n", "agent 3\n"))
    (place / "sub").mkdir()
    (place / "sub/made").write_text("made\n")
    (place / "doomed").unlink()


def more(place: Path) -> None:
    """A later step."""
    text = (place / "kept").read_text()
    (place / "kept").write_text(text.replace("line 16\n", "agent 16\n"))
    (place / "second").write_text("second\n")


def files(stage: Stage) -> dict[str, str]:
    found = [one for one in stage.directory.rglob("*") if one.is_file() and ".git" not in one.parts]
    return {str(one.relative_to(stage.directory)): one.read_text() for one in found if one.name != "turnkeeper.json"}


BEFORE = {"kept": LINES, "doomed": "precious\n"}


async def test_a_revert_puts_files_and_history_aside_and_brings_both_back(stage: Stage) -> None:
    user, turn = await record_turn(stage, SESSION, work)
    after = files(stage)
    done = await stage.tk.revert(SESSION, turn)
    assert files(stage) == BEFORE
    assert {one.file: one.kind for one in done.files} == {"kept": "restore", "sub/made": "delete", "doomed": "create"}
    revert = done.session.revert
    assert revert is not None
    assert (revert.message_id, revert.part_id, revert.conflicts, revert.files) == (user, None, None, None)
    assert revert.diff is not None
    assert "diff --git a/sub/made b/sub/made\ndeleted file mode 100644" in revert.diff
    assert len(await stage.messages(SESSION)) == 2, "clients hide them; nothing is removed yet"
    again = await stage.tk.unrevert(SESSION)
    assert files(stage) == after
    assert again.session.revert is None
    assert not (stage.directory / "sub/made").is_symlink()
    assert await stage.is_sound(SESSION)


async def test_the_summary_and_the_diffs_say_what_was_set_aside(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    user, *_ = await record_turn(stage, SESSION, more)
    told: list[str] = []
    with closing(stage.tk.bus.listen(lambda one: told.append(getattr(one, "type", "")))):
        done = await stage.tk.revert(SESSION, user)
    assert done.session.summary is not None
    summary = done.session.summary
    assert (summary.additions, summary.deletions, summary.files) == (2, 1, 2)
    assert [one.file for one in await stage.tk.diffs(SESSION)] == ["kept", "second"]
    assert told == [
        *("session.status", "session.updated", "session.diff", "session.updated"),
        *("session.status", "session.idle"),
    ]
    await stage.tk.unrevert(SESSION)
    assert [one.file for one in await stage.tk.diffs(SESSION)] == ["doomed", "kept", "second", "sub/made"]


async def test_nothing_is_said_to_be_undone_if_what_was_set_aside_touched_no_file(stage: Stage) -> None:
    first, *_ = await record_turn(stage, SESSION, work)
    await stage.tk.revert(SESSION, first)
    whole = (await stage.tk.unrevert(SESSION)).session.summary  # Now it is recorded.
    (user,) = await record_turn(stage, SESSION)  # No step of it has a snapshot, as when the model calls no tool.
    done = await stage.tk.revert(SESSION, user)
    assert (done.session.summary, await stage.tk.diffs(SESSION)) == (Summary(additions=0, deletions=0, files=0), ())
    again = await stage.tk.unrevert(SESSION)
    assert (again.session.summary, whole and whole.files) == (whole, 3)


async def test_a_dry_run_says_what_would_happen_and_does_nothing(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    after, events = files(stage), await stage.events(SESSION)
    planned = await stage.tk.revert(SESSION, user, dry_run=True)
    assert (planned.is_plan, files(stage), await stage.events(SESSION)) == (True, after, events)
    done = await stage.tk.revert(SESSION, user)
    assert done.files == planned.files


async def test_what_others_wrote_since_is_merged_kept_or_reported(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    text = (stage.directory / "kept").read_text()
    (stage.directory / "kept").write_text(text.replace("line 18\n", "mine 18\n"))
    (stage.directory / "sub/made").write_text("made\nand mine\n")
    (stage.directory / "doomed").write_text("a new one\n")
    (stage.directory / "new").write_text("mine\n")
    done = await stage.tk.undo(SESSION)
    assert files(stage) == {
        "kept": LINES.replace("line 18\n", "mine 18\n"),
        "sub/made": "made\nand mine\n",
        "doomed": "a new one\n",
        "new": "mine\n",
    }
    assert {one.file: one.kind for one in done.files} == {
        "kept": "merged",
        "sub/made": "conflict",
        "doomed": "conflict",
    }
    assert {one.file: one.reason for one in done.conflicts}["sub/made"] == EDITED
    assert done.session.revert is not None
    assert done.session.revert.conflicts == ("doomed", "sub/made")
    await stage.tk.redo(SESSION)
    expected = LINES.replace("line 3\n", "agent 3\n").replace("line 18\n", "mine 18\n")
    assert (stage.directory / "kept").read_text() == expected


async def test_the_same_lines_are_a_conflict_and_the_file_stays(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    (stage.directory / "kept").write_text(LINES.replace("line 3\n", "mine 3\n"))
    done = await stage.tk.undo(SESSION)
    assert [(one.file, one.reason) for one in done.conflicts] == [("kept", SAME_LINES)]
    assert (stage.directory / "kept").read_text() == LINES.replace("line 3\n", "mine 3\n")


async def test_a_redo_keeps_what_others_wrote_after_the_undo(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    (stage.directory / "kept").write_text(LINES.replace("line 18\n", "mine 18\n"))
    (stage.directory / "doomed").write_text("changed\n")
    done = await stage.tk.redo(SESSION)
    assert {one.file: one.kind for one in done.files} == {
        "kept": "merged",
        "sub/made": "create",
        "doomed": "conflict",
    }
    assert "mine 18" in (stage.directory / "kept").read_text()
    assert (stage.directory / "doomed").read_text() == "changed\n"
    assert done.session.revert is None


async def test_undo_goes_back_prompt_by_prompt_and_redo_forth(stage: Stage) -> None:
    first, *_ = await record_turn(stage, SESSION, work)
    middle = files(stage)
    second, *_ = await record_turn(stage, SESSION, more)
    last = files(stage)
    states = []
    for move in (stage.tk.undo, stage.tk.undo, stage.tk.redo, stage.tk.redo):
        session = (await move(SESSION)).session
        states.append((session.revert.message_id if session.revert is not None else None, files(stage)))
    assert states == [(second, middle), (first, BEFORE), (second, middle), (None, last)]
    with pytest.raises(Invalid, match="nothing to redo"):
        await stage.tk.redo(SESSION)
    await stage.tk.undo(SESSION)
    await stage.tk.undo(SESSION)
    with pytest.raises(Invalid, match="nothing to undo"):
        await stage.tk.undo(SESSION)


async def test_what_others_wrote_between_two_undos_survives_both_and_the_redo(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    await record_turn(stage, SESSION, more)
    last = files(stage)
    await stage.tk.undo(SESSION)
    mine = (stage.directory / "kept").read_text().replace("line 9\n", "mine 9\n")
    (stage.directory / "kept").write_text(mine)
    await stage.tk.undo(SESSION)
    assert files(stage) == {**BEFORE, "kept": LINES.replace("line 9\n", "mine 9\n")}
    await stage.tk.unrevert(SESSION)
    assert files(stage) == {**last, "kept": last["kept"].replace("line 9\n", "mine 9\n")}


async def test_a_part_inside_a_message_is_a_point_and_its_step_goes_whole(stage: Stage) -> None:
    _, turn = await record_turn(stage, SESSION, work)
    parts = (await stage.tk.message(SESSION, turn)).parts
    done = await stage.tk.revert(SESSION, turn, part_id=parts[2].id)
    assert done.session.revert is not None
    assert (done.session.revert.message_id, done.session.revert.part_id) == (turn, parts[2].id)
    assert files(stage) == BEFORE
    await stage.say(SESSION, "Go on")
    await stage.tk.wait(SESSION)
    left = await stage.tk.message(SESSION, turn)
    assert [part.id for part in left.parts] == [part.id for part in parts[:2]]


async def test_the_next_prompt_removes_what_was_set_aside_before_it_is_added(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    user, turn = await record_turn(stage, SESSION, more)
    await stage.tk.undo(SESSION)
    told: list[str] = []
    with closing(stage.tk.bus.listen(lambda one: told.append(getattr(one, "type", "")))):
        await stage.ask(SESSION, "Something else")
    kinds = [one.info for one in await stage.messages(SESSION)]
    assert not {user, turn} & {one.id for one in kinds}
    assert [type(one) for one in kinds] == [UserMessage, AssistantMessage, UserMessage, AssistantMessage]
    assert told.index("message.removed") < told.index("message.updated")
    assert (await stage.tk.get(SESSION)).revert is None
    assert isinstance(stage.provider, Short)
    assert len(stage.provider.requests[-1].messages) == 3 + 1, "the model is not shown what was undone"
    assert (stage.directory / "second").exists() is False
    assert await stage.is_sound(SESSION)
    with pytest.raises(Invalid, match="nothing to redo"):
        await stage.tk.redo(SESSION)


async def test_a_command_and_a_compaction_remove_what_was_set_aside_too(stage: Stage) -> None:
    await stage.ask(SESSION, "Hello")
    user, _ = await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    await stage.tk.shell(SESSION, "true")
    assert user not in {one.info.id for one in await stage.messages(SESSION)}
    second, _ = await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    await stage.tk.compact(SESSION, force=True)
    assert second not in {one.info.id for one in await stage.messages(SESSION)}
    assert (await stage.tk.get(SESSION)).revert is None


async def test_a_run_removes_what_was_set_aside_before_a_model_is_asked(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    await record_turn(stage, SESSION)
    await stage.tk.revert(SESSION, user)
    assert (await stage.tk.run(SESSION)).kind == "rested"
    assert await stage.messages(SESSION) == []
    assert isinstance(stage.provider, Short)
    assert stage.provider.requests == []


async def test_a_note_removes_what_was_set_aside_too(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    await stage.tk.prompt(SESSION, Prompt(parts=(TextInput(text="Mind this"),), no_reply=True))
    assert user not in {one.info.id for one in await stage.messages(SESSION)}


async def test_the_second_generation_keeps_the_message(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    done = await stage.tk.stage_revert(SESSION, user)
    assert done.session.revert is not None
    assert files(stage) == BEFORE
    assert [one["path"] for one in done.session.revert.files or ()] == ["doomed", "kept", "sub/made"]
    await stage.tk.commit_revert(SESSION)
    assert [one.info.id for one in await stage.messages(SESSION)] == [user]
    assert files(stage) == BEFORE
    events = await stage.events(SESSION)
    assert [one for one in events if isinstance(one, e.RevertCommitted)] == [e.RevertCommitted(message_id=user)]
    await stage.tk.commit_revert(SESSION)
    assert await stage.events(SESSION) == events, "there is nothing to commit"


async def test_the_second_generation_can_leave_files_alone(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    after = files(stage)
    done = await stage.tk.stage_revert(SESSION, user, files=False)
    assert (files(stage), done.files) == (after, ())
    assert done.session.revert is not None
    await stage.ask(SESSION, "Once more")
    assert (await stage.messages(SESSION))[0].info.id == user, "a prompt keeps the message, too"


async def test_a_revert_that_leaves_files_alone_brings_back_what_an_earlier_one_put_back(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    later, _ = await record_turn(stage, SESSION, more)
    after = files(stage)
    await stage.tk.stage_revert(SESSION, user)
    assert files(stage) == BEFORE
    await stage.tk.stage_revert(SESSION, later)
    assert "second" not in files(stage)
    assert files(stage)["sub/made"] == "made\n"
    await stage.tk.stage_revert(SESSION, later, files=False)
    assert files(stage) == after


async def test_prompts_that_were_admitted_after_the_message_go_with_it(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    waiting = a_user(SESSION, stage.mint.message_id())
    parts = (a_text(waiting, stage.mint.part_id(), "And then this"),)
    await stage.tk.store.journal.append(SESSION, e.PromptAdmitted(message=waiting, parts=parts, delivery="queue"))
    await stage.tk.stage_revert(SESSION, user)
    await stage.tk.commit_revert(SESSION)
    view = await stage.tk.store.journal.view(SESSION)
    assert view.inbox == ()
    assert [one.info.id for one in await stage.messages(SESSION)] == [user]


async def test_an_unknown_message_is_refused_and_a_running_session_is_busy(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    after = files(stage)
    with pytest.raises(NotFound, match="msg_unknown"):
        await stage.tk.revert(SESSION, "msg_unknown")
    with pytest.raises(NotFound, match="msg_unknown"):
        await stage.tk.stage_revert(SESSION, "msg_unknown")
    with pytest.raises(NotFound, match="ses_unknown"):
        await stage.tk.revert("ses_unknown", user)
    await stage.tk.store.journal.append(
        SESSION, e.StatusChanged(status=BUSY, owner=this_process().but(runtime="another"))
    )
    for dry_run in (True, False):
        with pytest.raises(Busy):
            await stage.tk.revert(SESSION, user, dry_run=dry_run)
        with pytest.raises(Busy):
            await stage.tk.unrevert(SESSION, dry_run=dry_run)
    assert files(stage) == after


async def test_without_snapshots_the_history_is_set_aside_and_the_problem_is_said(tmp_path: Path) -> None:
    async with opened("memory:", tmp_path) as one:
        await one.session(id=SESSION)
        user, _ = await record_turn(one, SESSION, lambda place: (place / "made").write_text("made"))
        (one.directory / "turnkeeper.json").write_text(
            (one.directory / "turnkeeper.json").read_text().replace('"snapshot":true', '"snapshot":false')
        )
        done = await one.tk.undo(SESSION)
        assert (done.problem, done.files) == (NO_SNAPSHOTS, ())
        assert done.session.revert is not None
        assert (done.session.revert.message_id, done.session.revert.snapshot) == (user, None)
        assert (one.directory / "made").exists()
        assert (await one.tk.redo(SESSION)).session.revert is None


async def cut_off(stage: Stage, message_id: str) -> None:
    """A revert that a process began and did not get far with."""
    planned = await stage.tk.runtime.reverts.plan(SESSION, RevertTarget(message_id=message_id))
    await stage.tk.store.journal.append(
        SESSION, e.RestoreBegun(root=planned.root, files=planned.files, revert=planned.revert)
    )
    (stage.directory / "sub/made").unlink()


Move = Callable[[Stage], Awaitable[object]]
MOVES: dict[str, tuple[Move, bool]] = {
    "a prompt": (lambda stage: stage.ask(SESSION, "Go on"), True),
    "a note": (lambda stage: stage.tk.prompt(SESSION, Prompt(parts=(TextInput(text="x"),), no_reply=True)), True),
    "a command": (lambda stage: stage.tk.shell(SESSION, "true"), True),
    "recovery": (lambda stage: stage.tk.recover(), True),
    "a run": (lambda stage: stage.tk.run(SESSION, resume=True), True),
    "an undo": (lambda stage: stage.tk.undo(SESSION), True),
    "a redo": (lambda stage: stage.tk.redo(SESSION), False),
}


@pytest.mark.parametrize("move", MOVES)
async def test_a_revert_that_was_cut_off_is_reported_and_finished_by_whatever_comes_next(
    stage: Stage, move: str
) -> None:
    await record_turn(stage, SESSION)
    user, _ = await record_turn(stage, SESSION, work)
    after = files(stage)
    await cut_off(stage, user)
    [problem] = (await stage.tk.doctor()).problems
    assert (problem.kind, problem.is_damage) == ("unfinished revert", False)
    act, is_undone = MOVES[move]
    await act(stage)
    assert files(stage) == (BEFORE if is_undone else after)
    assert await stage.is_sound(SESSION)


async def test_a_revert_that_cannot_be_finished_is_refused_in_words_until_it_can(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    await cut_off(stage, user)
    half, settings = files(stage), stage.directory / "turnkeeper.json"
    on = settings.read_text()
    settings.write_text(on.replace('"snapshot":true', '"snapshot":false'))
    with pytest.raises(Conflict, match="was cut off, and cannot be finished now"):
        await stage.ask(SESSION, "Go on")
    await stage.tk.runtime.failover.recover()
    assert files(stage) == half
    settings.write_text(on)
    await stage.ask(SESSION, "Go on")
    assert files(stage) == BEFORE
    assert await stage.is_sound(SESSION)


async def test_two_prompts_at_once_both_come_after_the_revert(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    async with anyio.create_task_group() as group:
        for text in ("one", "two"):
            group.start_soon(stage.say, SESSION, text)
    await stage.tk.wait(SESSION)
    texts = [part.text for one in await stage.messages(SESSION) for part in one.parts if isinstance(part, TextPart)]
    assert sorted(set(texts)) == ["Yes.", "one", "two"]


async def test_the_users_repository_is_not_touched(stage: Stage) -> None:
    def repository() -> list[object]:
        place = stage.directory
        return [
            git(place, "for-each-ref"),
            git(place, "ls-files", "--stage"),
            git(place, "fsck", "--full", "--strict"),
            git(place, "count-objects", "-v"),
            (place / ".git/HEAD").read_text(),
            (place / ".git/config").read_text(),
            sorted(str(one) for one in (place / ".git").rglob("*")),
        ]

    await record_turn(stage, SESSION, work)
    before = repository()
    await stage.tk.undo(SESSION)
    assert repository() == before
    await stage.tk.redo(SESSION)
    assert repository() == before


async def test_modes_and_links_come_back(stage: Stage) -> None:
    (stage.directory / "tool").write_text("#!/bin/sh\n")
    (stage.directory / "link").symlink_to("kept")

    def change(place: Path) -> None:
        (place / "tool").chmod(0o755)
        (place / "link").unlink()
        (place / "link").symlink_to("doomed")

    await record_turn(stage, SESSION, change)
    await stage.tk.undo(SESSION)
    assert os.readlink(stage.directory / "link") == "kept"
    assert not os.access(stage.directory / "tool", os.X_OK)
    await stage.tk.redo(SESSION)
    assert os.readlink(stage.directory / "link") == "doomed"
    assert os.access(stage.directory / "tool", os.X_OK)


async def test_what_an_undo_puts_back_is_not_the_change_of_a_command_of_another_session(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    shadow = await repository(stage)

    async def opened() -> ShadowRepository:
        return shadow

    async with anyio.create_task_group() as group:
        turn = TurnSnapshots("ses_two", opened, group, anyio.sleep)
        turn.begin()
        async with turn.call("prt_1"):
            await stage.tk.undo(SESSION)
            (stage.directory / "by-two").write_text("two\n")
        found = await turn.finish()
    assert found is not None
    assert found.files == (str(stage.directory / "by-two"),)
    assert [one.partition(" (")[0] for one in found.unrecorded] == ["doomed", "kept", "sub/made"]


async def test_a_file_that_was_made_with_a_link_to_it_goes_and_comes_back(stage: Stage) -> None:
    def change(place: Path) -> None:
        (place / "target").write_text("made\n")
        (place / "link").symlink_to("target")

    await record_turn(stage, SESSION, change)
    await stage.tk.undo(SESSION)
    assert not os.path.lexists(stage.directory / "link")
    assert not (stage.directory / "target").exists()
    await stage.tk.redo(SESSION)
    assert (stage.directory / "link").read_text() == "made\n"


@pytest.mark.parametrize("is_tracked", [True, False])
async def test_a_private_file_comes_back_private(stage: Stage, is_tracked: bool) -> None:
    key = stage.directory / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    (stage.directory / "script").write_text("#!/bin/sh\n")
    (stage.directory / "script").chmod(0o700)
    if is_tracked:
        git(stage.directory, "add", "-A")

    def change(place: Path) -> None:
        key.unlink()
        (place / "script").unlink()
        (place / "made").write_text("also secret\n")
        (place / "made").chmod(0o640)

    def modes() -> dict[str, int]:
        found = [stage.directory / name for name in ("key", "script", "made")]
        return {one.name: one.stat().st_mode & 0o777 for one in found if one.exists()}

    await record_turn(stage, SESSION, change)
    await stage.tk.undo(SESSION)
    assert modes() == {"key": 0o600, "script": 0o700}
    await stage.tk.redo(SESSION)
    assert modes() == {"made": 0o640}
    await stage.tk.undo(SESSION)
    assert modes() == {"key": 0o600, "script": 0o700}


async def test_what_a_turn_changed_whose_process_was_killed_stays_and_the_undo_says_so(stage: Stage) -> None:
    shadow = await repository(stage)
    before = await shadow.capture(SESSION)
    user = a_user(SESSION, "msg_1")
    turn = an_assistant(SESSION, "msg_2", user.id)
    running = a_call(turn, "prt_3", ToolRunning(input={"command": "make"}, time=RunningTime(start=1)), tool="bash")
    start = StepStartPart(id="prt_2", session_id=SESSION, message_id=turn.id, snapshot=before)
    await stage.tk.store.journal.append(
        SESSION,
        e.MessageRecorded(message=user, parts=(a_text(user, "prt_1", "Do it"),)),
        e.StatusChanged(status=BUSY, owner=DEAD),
        e.TurnStarted(message=turn),
        e.PartRecorded(part=start),
        e.PartRecorded(part=running),
    )
    work(stage.directory)
    (stage.directory / "mine").write_text("written after the kill\n")
    await stage.tk.runtime.failover.recover()
    found = files(stage)
    planned = await stage.tk.undo(SESSION, dry_run=True)
    done = await stage.tk.undo(SESSION)
    assert (planned.problem, done.problem) == (UNKNOWN.format("msg_2"),) * 2
    assert (done.files, files(stage)) == ((), found)
    assert done.session.revert is not None


def unwritable(name: str) -> Callable[[Stage], AbstractContextManager[None]]:
    """Files cannot take the place of this one: what is found beside it is in the way, as a full disk is."""

    @contextmanager
    def block(stage: Stage) -> Iterator[None]:
        temporary, _ = second_names(name)
        blocking = (stage.directory / name).parent / temporary
        blocking.mkdir(parents=True)
        (blocking / "x").write_text("")
        yield
        (blocking / "x").unlink()
        blocking.rmdir()

    return block


async def test_a_redo_that_could_not_write_a_file_can_be_said_again(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    after = files(stage)
    await stage.tk.undo(SESSION)
    with unwritable("kept")(stage):
        done = await stage.tk.redo(SESSION)
        assert [one.file for one in done.conflicts] == ["kept"]
        assert done.session.revert is None
    assert files(stage) == {**after, "kept": LINES}
    assert await stage.is_sound(SESSION)
    again = await stage.tk.redo(SESSION)
    assert [(one.file, one.kind) for one in again.files] == [("kept", "restore")]
    assert files(stage) == after
    with pytest.raises(Invalid, match="nothing to redo"):
        await stage.tk.redo(SESSION)
    await stage.tk.undo(SESSION)
    assert files(stage) == BEFORE


async def test_the_next_prompt_ends_what_a_redo_could_not_write(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    await stage.tk.undo(SESSION)
    with unwritable("kept")(stage):
        await stage.tk.redo(SESSION)
    await stage.ask(SESSION, "Go on")
    with pytest.raises(Invalid, match="nothing to redo"):
        await stage.tk.redo(SESSION)
    assert len(await stage.messages(SESSION)) == 4, "the history came back, and stays"
    assert await stage.is_sound(SESSION)


async def test_a_file_that_a_second_undo_could_not_write_comes_back_by_two_redos(stage: Stage) -> None:
    await record_turn(stage, SESSION, lambda place: (place / "kept").write_text("v2\n"))
    await record_turn(stage, SESSION, lambda place: (place / "kept").write_text("v3\n"))
    await stage.tk.undo(SESSION)
    with unwritable("kept")(stage):
        assert (await stage.tk.undo(SESSION)).conflicts
    assert (stage.directory / "kept").read_text() == "v2\n"
    await stage.tk.redo(SESSION)
    assert (stage.directory / "kept").read_text() == "v2\n"
    await stage.tk.redo(SESSION)
    assert (stage.directory / "kept").read_text() == "v3\n"


async def test_an_undo_that_could_not_write_a_file_can_be_said_again(stage: Stage) -> None:
    first, *_ = await record_turn(stage, SESSION)
    user, *_ = await record_turn(stage, SESSION, work)
    after = files(stage)
    with unwritable("kept")(stage):
        done = await stage.tk.undo(SESSION)
    assert [one.file for one in done.conflicts] == ["kept"]
    again = await stage.tk.undo(SESSION)
    assert again.session.revert is not None
    assert again.session.revert.message_id == user, "it goes no further before it is done"
    assert files(stage) == BEFORE
    once_more = await stage.tk.undo(SESSION)
    assert once_more.session.revert is not None
    assert once_more.session.revert.message_id == first
    await stage.tk.unrevert(SESSION)
    assert files(stage) == after


async def test_a_revert_that_was_cut_off_stays_open_while_the_directory_is_away(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    await cut_off(stage, user)
    half = files(stage)
    away = stage.directory.with_name("away")
    stage.directory.rename(away)
    for move in (stage.tk.redo, stage.tk.undo, stage.tk.unrevert):
        with pytest.raises(Conflict, match="is not there"):
            await move(SESSION)
    assert not stage.directory.exists()
    stage.directory.symlink_to("away")
    with pytest.raises(Conflict, match="has become a link"):
        await stage.tk.redo(SESSION)
    stage.directory.unlink()
    away.rename(stage.directory)
    assert files(stage) == half
    await stage.tk.undo(SESSION)
    assert files(stage) == BEFORE


def test_an_undo_in_a_directory_that_may_not_be_entered_is_refused(tmp_path: Path) -> None:
    def make(place: Path) -> None:
        (place / "made").write_text("made\n")

    async def undo_in_closed_directory() -> None:
        (tmp_path / "place").mkdir()
        async with opened("memory:", tmp_path) as one:
            await one.session(id=SESSION)
            await record_turn(one, SESSION, make)
            (tmp_path / "place").chmod(0)
            with pytest.raises(Conflict, match="or may not be entered"):
                await one.tk.undo(SESSION)
            (tmp_path / "place").chmod(0o700)
            await one.tk.undo(SESSION)

    unprivileged(lambda: anyio.run(undo_in_closed_directory))
    assert not (tmp_path / "place/made").exists()


@pytest.mark.parametrize("closed", ["folder", "folder/one"])
def test_a_file_that_may_not_be_read_is_left_and_the_others_are_put_back(tmp_path: Path, closed: str) -> None:
    def edit(place: Path) -> None:
        (place / "folder/one").write_text("new\n")
        (place / "other").write_text("new\n")

    async def undo() -> list[tuple[str, str | None]]:
        place = tmp_path / "place"
        (place / "folder").mkdir(parents=True)
        for name in ("folder/one", "other"):
            (place / name).write_text("old\n")
        async with opened("memory:", tmp_path) as one:
            await one.session(id=SESSION)
            await record_turn(one, SESSION, edit)
            (place / closed).chmod(0)
            found = await one.tk.undo(SESSION)
            (place / closed).chmod(0o700)
        assert ((place / "folder/one").read_text(), (place / "other").read_text()) == ("new\n", "old\n")
        return [(file.file, file.reason) for file in found.files if file.kind == "conflict"]

    assert unprivileged(lambda: anyio.run(undo)) == [("folder/one", NO_FILE)]


async def test_what_was_undone_waits_while_the_directory_is_away(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    after = files(stage)
    await stage.tk.undo(SESSION)
    away = stage.directory.with_name("away")
    stage.directory.rename(away)
    for dry_run in (True, False):
        with pytest.raises(Conflict, match="is not there"):
            await stage.tk.redo(SESSION, dry_run=dry_run)
    away.rename(stage.directory)
    await stage.tk.redo(SESSION)
    assert files(stage) == after


async def test_what_was_cut_off_is_finished_before_anything_else_and_counted(stage: Stage) -> None:
    user, _ = await record_turn(stage, SESSION, work)
    after = files(stage)
    await cut_off(stage, user)
    planned = await stage.tk.undo(SESSION, dry_run=True)
    done = await stage.tk.undo(SESSION)
    assert {one.file for one in done.files} == {one.file for one in planned.files} == {"kept", "doomed", "sub/made"}
    redo = await stage.tk.runtime.reverts.plan_clear(SESSION)
    await stage.tk.store.journal.append(SESSION, e.RestoreBegun(root=redo.root, files=redo.files))
    (stage.directory / "doomed").unlink()
    undone = await stage.tk.undo(SESSION)
    assert undone.session.revert is not None
    assert files(stage) == BEFORE, "the redo was finished, and then undone"
    await stage.tk.store.journal.append(SESSION, e.RestoreBegun(root=redo.root, files=redo.files))
    (stage.directory / "doomed").unlink()
    done = await stage.tk.redo(SESSION)
    assert (len(done.files), done.session.revert) == (3, None)
    assert files(stage) == after


@pytest.mark.parametrize("is_outside", [True, False])
async def test_a_folder_that_took_the_place_of_a_link_comes_back(stage: Stage, is_outside: bool) -> None:
    target = stage.directory / "../elsewhere" if is_outside else stage.directory / "t"
    target.mkdir()
    (target / "x").write_text("x\n")
    link = stage.directory / "link"
    link.symlink_to(target)

    def change(_: Path) -> None:
        link.unlink()
        link.mkdir()
        (link / "y").write_text("important\n")
        (link / "x").write_text("also\n")

    await record_turn(stage, SESSION, change)
    after = files(stage)
    for _ in range(2):
        await stage.tk.undo(SESSION)
        assert os.readlink(link) == str(target)
        assert {one.name: one.read_text() for one in target.iterdir()} == {"x": "x\n"}
        done = await stage.tk.redo(SESSION)
        assert (files(stage), done.conflicts) == (after, ())
        assert not link.is_symlink()


async def test_a_file_behind_a_link_of_others_is_a_conflict(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    made = stage.directory / "sub"
    made.rename(stage.directory / "moved")
    made.symlink_to("moved")
    done = await stage.tk.undo(SESSION)
    assert {one.file: one.reason for one in done.conflicts} == {"sub/made": NO_FILE}
    assert (stage.directory / "moved/made").read_text() == "made\n"


async def test_a_binary_file_is_said_to_be_no_text(stage: Stage) -> None:
    await record_turn(stage, SESSION, lambda place: (place / "kept").write_bytes(b"\0agent"))
    (stage.directory / "kept").write_bytes(b"\0mine")
    done = await stage.tk.undo(SESSION)
    assert [(one.file, one.reason) for one in done.conflicts] == [("kept", NO_TEXT)]


async def test_a_pipe_that_a_turn_put_in_the_place_of_a_file_is_named(stage: Stage) -> None:
    def change(place: Path) -> None:
        (place / "kept").unlink()
        os.mkfifo(place / "kept")

    await record_turn(stage, SESSION, change)
    done = await stage.tk.undo(SESSION)
    assert [(one.file, one.reason) for one in done.conflicts] == [("kept", NO_FILE)]


async def test_turns_without_snapshots_are_named(stage: Stage) -> None:
    user, turn = a_user(SESSION, "msg_1"), an_assistant(SESSION, "msg_2", "msg_1", finish="stop")
    start = StepStartPart(id="prt_2", session_id=SESSION, message_id=turn.id)
    call = a_call(turn, "prt_3", completed(), tool="bash")
    await stage.tk.store.journal.append(
        SESSION,
        e.MessageRecorded(message=user, parts=(a_text(user, "prt_1", "Do it"),)),
        e.MessageRecorded(message=turn, parts=(start, call)),
    )
    done = await stage.tk.undo(SESSION)
    assert done.problem == UNKNOWN.format("msg_2")


async def test_files_of_another_directory_are_named(stage: Stage, tmp_path: Path) -> None:
    await record_turn(stage, SESSION, work)
    copy = tmp_path / "copy"
    shutil.copytree(stage.directory, copy)
    await stage.tk.move(SESSION, str(copy))
    done = await stage.tk.undo(SESSION)
    assert done.files == ()
    assert done.problem is not None
    assert str(stage.directory / "kept") in done.problem


async def test_a_session_whose_directory_became_a_link_is_refused(stage: Stage) -> None:
    await record_turn(stage, SESSION, work)
    stage.directory.rename(stage.directory.with_name("copy"))
    stage.directory.symlink_to("copy")
    for dry_run in (True, False):
        with pytest.raises(Conflict, match="has become a link"):
            await stage.tk.undo(SESSION, dry_run=dry_run)
