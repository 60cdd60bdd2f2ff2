"""A session is compared with itself at two events."""

from pathlib import Path

import pytest
from attempts import AttemptProject, ask, write

from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import shadow

RULE = Rule(permission="bash", pattern="*", action="deny")


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.commit()
    return made


async def test_two_events_are_compared_in_all_that_a_session_has(project: AttemptProject) -> None:
    async with project.opened([[write("a.txt", "1\n")]], [[write("b.txt", "2\n")]]) as tk:
        session_id = (await tk.create(title="Before")).id
        await ask(tk, session_id)
        middle = (await tk.store.queries.state(session_id)).seq
        await tk.rename(session_id, "After")
        await tk.update(session_id, lambda session: session.but(permission=(RULE,)))
        await ask(tk, session_id)
        head = (await tk.store.queries.state(session_id)).seq
        found = await tk.compare(session_id, middle, head)
        assert [(one.name, one.before, one.after) for one in found.fields] == [("title", "Before", "After")]
        assert [(one.change, type(one.message.info)) for one in found.messages] == [
            ("added", UserMessage),
            ("added", AssistantMessage),
            ("added", AssistantMessage),
        ]
        assert found.permissions is not None
        assert found.permissions.added == (RULE,)
        assert found.files is not None
        assert [(one.file, one.status) for one in found.files] == [("b.txt", "added")]
        assert found.tokens is not None
        back = await tk.compare(session_id, head, middle)
        assert back.files is not None
        assert [(one.file, one.status) for one in back.files] == [("b.txt", "deleted")]
        whole = await tk.compare(session_id, 1, head)
        assert whole.files is not None
        assert [one.file for one in whole.files] == ["a.txt", "b.txt"]
        assert whole.context is not None
        assert (whole.context.before, whole.context.after) == (None, 1)
        same = await tk.compare(session_id, head, head)
        assert same.but(files=None) == same.but(files=None, messages=(), fields=(), context=None, permissions=None)
        assert same.files == ()


async def test_files_that_cannot_be_compared_leave_the_rest(project: AttemptProject) -> None:
    async with project.opened([[write("a.txt", "1\n")]]) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        (project.data / shadow.DIRECTORY).rename(project.home / "gone")
        found = await tk.compare(session_id, 1, 3)
        assert found.files is None
        assert "no snapshots of" in (found.files_unknown or "")


async def test_events_that_do_not_exist_are_refused(project: AttemptProject) -> None:
    async with project.opened() as tk:
        session_id = (await tk.create()).id
        for pair in ((0, 1), (1, 2)):
            with pytest.raises(Invalid, match="has no event"):
                await tk.compare(session_id, *pair)
