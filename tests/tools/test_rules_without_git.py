"""Rules about files hold in a directory without a repository: their patterns begin at that directory."""

from pathlib import Path

import pytest
from desk import Desk

from turnkeeper.model.permission import Rule
from turnkeeper.tools.tool import Denied

PATCH = "*** Begin Patch\n*** Update File: secrets/k\n@@\n-s3cret\n+x\n*** End Patch"
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "read": ("read", {"filePath": "secrets/k"}),
    "grep": ("grep", {"pattern": "s3cret", "path": "secrets/k"}),
    "list": ("list", {"path": "secrets/below"}),
    "write": ("write", {"filePath": "secrets/k", "content": "x"}),
    "edit": ("edit", {"filePath": "secrets/k", "oldString": "s3cret", "newString": "x"}),
    "multiedit": ("multiedit", {"filePath": "secrets/k", "edits": [{"oldString": "s3cret", "newString": "x"}]}),
    "apply_patch": ("apply_patch", {"patchText": PATCH}),
    "a redirection": ("bash", {"command": "echo x > secrets/k", "description": "x"}),
    "a command that writes": ("bash", {"command": "cd secrets && rm k", "description": "x"}),
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (directory := tmp_path.resolve() / "project").mkdir()
    (directory / "secrets/below").mkdir(parents=True)
    (directory / "secrets/k").write_text("s3cret\n")
    desk = Desk(directory, Path("/"), [Rule(permission="*", pattern="*", action="allow")])
    for permission in ("read", "edit", "list"):
        desk.refuse(permission, "secrets/*")
    return desk


@pytest.mark.parametrize("name", CALLS)
async def test_a_denied_file_is_denied_to_every_tool(desk: Desk, name: str) -> None:
    tool, arguments = CALLS[name]
    desk.know("secrets/k")
    with pytest.raises(Denied):
        await desk.run(tool, **arguments)
    assert (desk.directory / "secrets/k").read_text() == "s3cret\n"


async def test_what_may_not_be_read_is_not_found_by_a_search_around_it(desk: Desk) -> None:
    assert "s3cret" not in (await desk.run("grep", pattern="cret", path=".")).output


async def test_a_file_beside_it_is_asked_for_by_its_path_from_the_directory(desk: Desk) -> None:
    (desk.directory / "notes").write_text("x")
    await desk.run("read", filePath="notes")
    assert desk.asked == [("read", ["notes"], ["*"])]
