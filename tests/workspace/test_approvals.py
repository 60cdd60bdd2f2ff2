"""Saved approvals: private, atomic, by project, and revoked by id."""

import json
import os
import stat
import threading
from itertools import count
from pathlib import Path

import pytest

from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.testing.builders import NOW, a_session
from turnkeeper.workspace.approvals import Approvals
from turnkeeper.workspace.project import GLOBAL

LS = Rule(permission="bash", pattern="ls *", action="allow")
READ = Rule(permission="read", pattern="*", action="allow")
HERE = a_session("ses_one")


def opened(home: Path, start: int = 0) -> Approvals:
    numbers = count(start)
    return Approvals({"HOME": str(home)}, lambda: NOW, lambda prefix: f"{prefix}_{next(numbers)}")


def test_an_approval_is_seen_by_every_process_and_only_once(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    assert one.rules(HERE) == ()
    one.add(HERE, [LS, READ])
    one.add(HERE, [LS])
    assert other.rules(HERE) == (LS, READ)
    assert [(saved.id, saved.project_id, saved.created) for saved in other.saved()] == [
        ("psv_0", "prj", NOW),
        ("psv_1", "prj", NOW),
    ]
    assert other.revoke("psv_0")
    assert not other.revoke("psv_0")
    assert one.rules(HERE) == (READ,)


def test_an_approval_holds_in_its_project_or_else_in_its_directory(tmp_path: Path) -> None:
    approvals = opened(tmp_path)
    approvals.add(HERE, [LS])
    assert approvals.rules(HERE.but(directory="/home/me/prj/sub")) == (LS,)
    assert approvals.rules(HERE.but(project_id="other")) == ()
    loose = HERE.but(project_id=GLOBAL)
    approvals.add(loose, [READ])
    assert approvals.rules(loose) == (READ,)
    assert approvals.rules(loose.but(directory="/elsewhere")) == ()
    assert [one.pattern for one in approvals.saved(GLOBAL)] == ["*"]


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
        approvals.rules(HERE)
    with pytest.raises(Invalid, match="cannot be read"):
        approvals.add(HERE, [LS])
    assert approvals.path.read_text() == content


def test_without_a_home_there_are_none_and_none_can_be_saved() -> None:
    approvals = Approvals({}, lambda: NOW, lambda prefix: prefix)
    assert approvals.rules(HERE) == ()
    with pytest.raises(Invalid, match="HOME"):
        approvals.add(HERE, [LS])
