"""A private file is read only if nobody else can have written it, and only if it is a file."""

import os
from pathlib import Path
from threading import Thread

import pytest

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.auth import AuthFile
from turnkeeper.workspace.private_json import PrivateJson
from turnkeeper.workspace.trust import TrustedDirectories

DEADLINE_S = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "trust.json"
    file.write_text('["/somewhere"]')
    file.chmod(0o600)
    return file


def read(path: Path) -> list[str]:
    return PrivateJson(path, list[str], []).read()


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644])
def test_a_file_that_only_its_owner_can_write_is_read(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert read(path) == ["/somewhere"]


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_refused_with_advice(path: Path, mode: int) -> None:
    file = PrivateJson(path, list[str], [])
    assert file.read() == ["/somewhere"]
    path.chmod(mode)
    with pytest.raises(Invalid, match=r"others can write this file.*chmod 600"):
        file.read()
    with pytest.raises(Invalid, match="chmod 600"):
        TrustedDirectories({"TURNKEEPER_DATA": str(path.parent)}).add(path.parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    os.chown(path, 12_345, -1)
    with pytest.raises(Invalid, match="belongs to another user"):
        read(path)


def test_a_link_to_a_private_file_is_followed(path: Path, tmp_path: Path) -> None:
    (link := tmp_path / "link.json").symlink_to(path)
    assert read(link) == ["/somewhere"]


def test_a_pipe_or_a_directory_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "auth.json", 0o600)
    (folder := tmp_path / "folder.json").mkdir()
    refused: list[str] = []

    def work() -> None:
        for place in (pipe, folder):
            with pytest.raises(Invalid) as refusal:
                AuthFile(place).read()
            refused.append(str(refusal.value))

    # On a thread that the test does not wait for: to read a pipe may take for ever.
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    assert refused == [f"{str(place)!r} is not a regular file" for place in (pipe, folder)]


def test_a_file_that_is_removed_is_empty_and_one_that_comes_back_is_read(path: Path) -> None:
    file = PrivateJson(path, list[str], [])
    assert file.read() == ["/somewhere"]
    path.unlink()
    assert file.read() == []
    path.write_text('["/elsewhere"]')
    path.chmod(0o600)
    assert file.read() == ["/elsewhere"]


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_one_that_is_missing(path: Path, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read(path / "below.json")
    (link := tmp_path / "link.json").symlink_to(link)
    with pytest.raises(Invalid):
        read(link)
