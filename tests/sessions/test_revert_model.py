"""Random lives of a project with an agent and another writer: what others wrote is never lost by undo or redo."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnkeeper.testing.harness import Stage
from turnkeeper.testing.reverting import opened, record_turn

SESSION = "ses_one"
NAMES = ["a", "b", "sub/c", "sub/deep/d"]
LINES = 9

Edits = list[tuple[str, str, int]]
Act = tuple[str, list[Edits]]

# Much happens in one file, so that changes meet; and most lines stay, so that not all of them do.
names = st.sampled_from(["a"] * 6 + NAMES[1:])
kinds = st.sampled_from(["line"] * 6 + ["make", "delete"])
edits = st.lists(st.tuples(names, kinds, st.integers(0, LINES - 1)), min_size=1, max_size=3)
works = st.tuples(st.just("agent"), st.lists(edits, min_size=1, max_size=3))
acts: st.SearchStrategy[Act] = st.one_of(
    works,
    st.tuples(st.just("others"), st.lists(edits, min_size=1, max_size=1)),
    st.tuples(st.sampled_from(["undo", "undo all"]), st.just([])),
    st.tuples(st.sampled_from(["redo", "redo all"]), st.just([])),
)
lives = st.tuples(works, st.lists(acts, min_size=4, max_size=9)).map(lambda one: [one[0], *one[1]])


class Project:
    """Files in which every line is unique, so that it is known whose it is."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.count = 0
        self.others: dict[str, set[str]] = {name: set() for name in NAMES}
        """The lines that others wrote, and nobody has written over or deleted since."""
        self.before_undo: dict[str, bytes] | None = None
        """The files before the first undo, as long as nobody else has written since."""
        for name in NAMES[:3]:
            self.write(name, [f"{name} {number}" for number in range(LINES)])

    def write(self, name: str, lines: list[str]) -> None:
        path = self.stage.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def files(self) -> dict[str, bytes]:
        paths = {name: self.stage.directory / name for name in NAMES}
        return {name: path.read_bytes() for name, path in paths.items() if path.exists()}

    def lines(self, name: str) -> list[str]:
        return self.files().get(name, b"").decode().splitlines()

    def fresh(self, who: str, count: int = 1) -> list[str]:
        self.count += count
        return [f"{who} {self.count - number}" for number in range(count)]

    def edit(self, who: str, edits: Edits) -> None:
        for name, act, place in edits:
            lines = self.lines(name)
            if act == "delete" and lines:
                (self.stage.directory / name).unlink()
                new = []
            elif act == "line" and lines:
                new = [*lines[: place % len(lines)], *self.fresh(who), *lines[place % len(lines) + 1 :]]
                self.write(name, new)
            else:
                new = self.fresh(who, LINES)
                self.write(name, new)
            self.others[name] = {line for line in new if line in self.others[name] or line not in lines}
            if who != "others":
                self.others[name] &= set(lines)

    def check(self) -> None:
        for name, wanted in self.others.items():
            assert wanted <= set(self.lines(name)), f"lines of others are lost in {name}"
        assert not list(self.stage.directory.rglob(".turnkeeper*"))

    async def act(self, kind: str, steps: list[Edits]) -> None:
        tk = self.stage.tk
        revert = (await tk.get(SESSION)).revert
        messages = await self.stage.messages(SESSION)
        match kind:
            case "agent":
                await tk.runtime.commit_revert(SESSION)  # As any prompt does it.
                await record_turn(
                    self.stage, SESSION, *(lambda _, step=step: self.edit("agent", step) for step in steps)
                )
                self.before_undo = None
            case "others":
                self.edit("others", steps[0])
                self.before_undo = None
            case "redo" if revert is not None:
                await tk.redo(SESSION)
                await self.compare()
            case "redo all" if revert is not None:
                await tk.unrevert(SESSION)
                await self.compare()
            case "undo" | "undo all" if messages and (revert is None or kind == "undo all"):
                await self.undo(messages[0].info.id if kind == "undo all" else None, is_first=revert is None)
            case _:
                pass

    async def undo(self, message_id: str | None, *, is_first: bool) -> None:
        before = self.files()
        planned = await self.stage.tk.undo(SESSION, message_id=message_id, dry_run=True)
        assert self.files() == before, "a dry run has changed something"
        done = await self.stage.tk.undo(SESSION, message_id=message_id)
        assert done.files == planned.files
        for one in done.conflicts:
            assert self.files().get(one.file) == before.get(one.file), "a file in conflict was changed"
        if is_first:
            self.before_undo = before

    async def compare(self) -> None:
        if (await self.stage.tk.get(SESSION)).revert is None and self.before_undo is not None:
            assert self.files() == self.before_undo, "a redo is not byte-identical"


async def live(acts: list[Act]) -> None:
    with TemporaryDirectory() as directory:
        async with opened("memory:", Path(directory)) as stage:
            await stage.session(id=SESSION)
            project = Project(stage)
            for act in acts:
                await project.act(*act)
                project.check()


@pytest.mark.timeout(1800)  # Lives with git take a second each, and fifteen on a very busy machine.
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(lives)
def test_what_others_wrote_is_never_lost_and_a_redo_is_byte_identical(acts: list[Act]) -> None:
    anyio.run(partial(live, acts))


@pytest.mark.soak
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(lives)
def test_in_many_lives_what_others_wrote_is_never_lost(acts: list[Act]) -> None:
    anyio.run(partial(live, acts))
