"""Places that the user of the server may not enter: what they are named in is refused or told, and is no defect."""

import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from confined import unprivileged
from served import Served, served

from turnkeeper.providers.scripted import Scripted


@contextmanager
def closed(place: Path) -> Iterator[None]:
    place.chmod(0)
    try:
        yield
    finally:
        place.chmod(0o700)


def with_server(directory: Path, work: Callable[[Served], Awaitable[Any]]) -> Any:
    """What work returns that uses the server of an ordinary user."""

    async def serving() -> Any:
        async with served(directory, Scripted().says("Read.")) as server:
            return await work(server)

    return unprivileged(lambda: anyio.run(serving))


@pytest.mark.parametrize("name", ["locked", "locked/inner"])
def test_a_session_in_a_directory_that_may_not_be_entered_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "locked/inner").mkdir(parents=True)
    with closed(tmp_path / "locked"):
        params = {"directory": str(tmp_path / name)}
        answer = with_server(tmp_path, lambda server: server.post("/session", {}, 400, params=params))
    assert answer["data"]["message"] == (
        f"{str(tmp_path / name)!r} may not be entered by this user; change the permissions, or name another"
    )


@pytest.mark.parametrize("mime", ["text/plain", "image/png", "application/x-directory"])
def test_an_attached_file_that_may_not_be_reached_is_told_to_the_model(tmp_path: Path, mime: str) -> None:
    (tmp_path / "locked").mkdir()
    file = tmp_path / "locked/file"
    file.write_text("hidden")

    async def work(server: Served) -> Any:
        part = {"type": "file", "mime": mime, "url": file.as_uri()}
        body = {"parts": [{"type": "text", "text": "read it"}, part]}
        session = await server.session()
        await server.post(f"/session/{session}/message", body)
        return await server.get(f"/session/{session}/message")

    with closed(tmp_path / "locked"):
        asked, _ = with_server(tmp_path, work)
    said = [part["text"] for part in asked["parts"] if part["type"] == "text"]
    assert said[2].removesuffix(".") == f"The read tool failed: {str(file)!r}: Permission denied"


def test_a_folder_of_plans_that_may_not_be_entered_stops_no_turn(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *identity, "commit", "-qm", "begin", "--allow-empty"], cwd=tmp_path, check=True)
    (tmp_path / ".opencode/plans").mkdir(parents=True)

    async def work(server: Served) -> Any:
        return await server.ask(await server.session(), "look", agent="plan")

    with closed(tmp_path / ".opencode/plans"):
        answer = with_server(tmp_path, work)
    assert [part["text"] for part in answer["parts"] if part["type"] == "text"] == ["Read."]


def test_a_repository_that_may_not_be_read_is_named_to_the_client(tmp_path: Path) -> None:
    (tmp_path / "project/.git").mkdir(parents=True)
    with closed(tmp_path / "project/.git"):
        params = {"directory": str(tmp_path / "project")}
        answer = with_server(tmp_path, lambda server: server.post("/session", {}, 403, params=params))
    assert answer["name"] == "ForbiddenError"
    assert answer["data"]["message"].startswith(f"{tmp_path}/project/.git/")
    assert "Permission denied; check the path and its permissions" in answer["data"]["message"]
