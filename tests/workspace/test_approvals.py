"""Saved approvals: private, atomic, by project, and revoked by id."""

import json
import os
import stat
import subprocess
import threading
from itertools import count
from pathlib import Path

import pytest

from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.testing.builders import NOW, a_session
from turnkeeper.workspace.approvals import Approvals, ApprovedPlace
from turnkeeper.workspace.project import GLOBAL, identify

LS = Rule(permission="bash", pattern="ls *", action="allow")
READ = Rule(permission="read", pattern="*", action="allow")
HERE = a_session("ses_one")
IN_HERE = ApprovedPlace(HERE.project_id, HERE.directory)


def opened(home: Path, start: int = 0) -> Approvals:
    numbers = count(start)
    return Approvals({"HOME": str(home)}, lambda: NOW, lambda prefix: f"{prefix}_{next(numbers)}")


def test_an_approval_is_seen_by_every_process_and_only_once(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    assert one.rules(IN_HERE) == ()
    one.add(HERE, [LS, READ])
    one.add(HERE, [LS])
    assert other.rules(IN_HERE) == (LS, READ)
    assert [(saved.id, saved.project_id, saved.created) for saved in other.saved()] == [
        ("psv_0", "prj", NOW),
        ("psv_1", "prj", NOW),
    ]
    assert other.revoke("psv_0")
    assert not other.revoke("psv_0")
    assert one.rules(IN_HERE) == (READ,)


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", "-C", str(directory), *identity, *words], check=True, capture_output=True)


def test_an_approval_holds_in_its_repository_or_else_in_its_directory(tmp_path: Path) -> None:
    approvals = opened(tmp_path / "home")
    repository, linked, loose = tmp_path / "repository", tmp_path / "linked", tmp_path / "loose"
    for place in (repository / "sub", loose / "sub"):
        place.mkdir(parents=True)
    git(repository, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "one")
    git(repository, "worktree", "add", "-q", str(linked))

    def rules(directory: Path, project_id: str = "prj") -> tuple[Rule, ...]:
        return approvals.rules(approvals.place(HERE.but(project_id=project_id, directory=str(directory))))

    approvals.add(HERE.but(directory=str(repository)), [LS])
    assert [rules(place) for place in (repository, repository / "sub", linked)] == [(LS,)] * 3
    assert rules(repository, "other") == ()
    approvals.add(HERE.but(project_id=GLOBAL, directory=str(loose)), [READ])
    assert (rules(loose, GLOBAL), rules(loose / "sub", GLOBAL)) == ((READ,), ())
    assert [one.pattern for one in approvals.saved(GLOBAL)] == ["*"]


@pytest.mark.parametrize("kind", ["remembered id", "same history", "pointer"])
async def test_a_forged_repository_borrows_no_approvals(tmp_path: Path, kind: str) -> None:
    approvals, repository, forged = opened(tmp_path / "home"), tmp_path / "repository", tmp_path / "forged"
    repository.mkdir()
    git(repository, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "one")
    place = await identify(repository)
    approvals.add(HERE.but(project_id=place.id, directory=str(repository)), [LS])
    match kind:
        case "remembered id":
            git(tmp_path, "init", "-q", str(forged))
            (forged / ".git/turnkeeper").write_text(place.id)
        case "same history":
            git(tmp_path, "clone", "-q", str(repository), str(forged))
        case _:
            forged.mkdir()
            (forged / ".git").write_text(f"gitdir: {repository / '.git'}\n")
    borrowed = await identify(forged)
    assert borrowed.id == place.id
    assert approvals.rules(approvals.place(HERE.but(project_id=borrowed.id, directory=str(forged)))) == ()


def test_only_their_owner_may_read_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        approvals = opened(tmp_path)
        approvals.add(HERE, [LS])
        approvals.path.chmod(0o644)
        approvals.add(HERE, [READ])
    finally:
        os.umask(before)
    assert stat.S_IMODE(approvals.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(approvals.path.parent.stat().st_mode) == 0o700
    assert [one["permission"] for one in json.loads(approvals.path.read_text())] == ["bash", "read"]
    assert os.listdir(approvals.path.parent) == ["approvals.json"]


def test_two_writers_do_not_undo_each_other(tmp_path: Path) -> None:
    def write(number: int) -> None:
        approvals = opened(tmp_path, number * 100)
        for nth in range(10):
            approvals.add(HERE, [LS.but(pattern=f"{number} {nth}")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(opened(tmp_path).saved()) == 40


@pytest.mark.parametrize("content", ["{", "[1]", '[{"id": "psv_1"}]'])
def test_a_damaged_file_allows_nothing_and_is_left_as_it_is(tmp_path: Path, content: str) -> None:
    approvals = opened(tmp_path)
    approvals.path.parent.mkdir(parents=True)
    approvals.path.write_text(content)
    with pytest.raises(Invalid, match="cannot be read"):
        approvals.rules(IN_HERE)
    with pytest.raises(Invalid, match="cannot be read"):
        approvals.add(HERE, [LS])
    assert approvals.path.read_text() == content


def test_without_a_home_there_are_none_and_none_can_be_saved() -> None:
    approvals = Approvals({}, lambda: NOW, lambda prefix: prefix)
    assert approvals.rules(IN_HERE) == ()
    with pytest.raises(Invalid, match="HOME"):
        approvals.add(HERE, [LS])
