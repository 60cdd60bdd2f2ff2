"""Folders: what stands in them is looked up again when something came or went, and only then."""

import os
from pathlib import Path

import pytest

from turnkeeper.workspace.folders import KEPT_NS, SETTLED_COARSE_NS, SETTLED_NS, Folders

FINE_NS = 1_700_000_000_500_000_000
COARSE_NS = 1_700_000_000_000_000_000
"""A whole second: a file system that writes such times may know no others."""


class Watched:
    """A folder whose times are what the test says, whatever comes and goes in it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.now = self.modified = self.changed = FINE_NS
        self.inode = 1
        self.folders = Folders(("a.json", ".git"), lambda: self.now, self._stat)

    def _stat(self, folder: str) -> os.stat_result:
        assert folder == str(self.place)
        times = {"st_mtime_ns": self.modified, "st_ctime_ns": self.changed}
        return os.stat_result((0o040755, self.inode, 1, 1, 0, 0, 0, 0, 0, 0), times)

    @property
    def present(self) -> tuple[str, ...]:
        return self.folders.present(str(self.place))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_only_the_names_asked_for_are_seen(tmp_path: Path) -> None:
    folders = Folders(("a.json", ".git"))
    assert folders.present(str(tmp_path)) == ()
    (tmp_path / "a.json").touch()
    (tmp_path / "b.json").touch()
    assert folders.present(str(tmp_path)) == ("a.json",)
    (tmp_path / "a.json").unlink()
    assert folders.present(str(tmp_path)) == folders.present(str(tmp_path / "none")) == ()


def test_a_link_that_leads_nowhere_is_there(watched: Watched) -> None:
    (watched.place / ".git").symlink_to("nowhere")
    assert watched.present == (".git",)


def test_a_folder_that_has_settled_is_looked_through_once(watched: Watched) -> None:
    watched.now += SETTLED_NS + 1
    assert watched.present == ()
    (watched.place / "a.json").touch()
    assert watched.present == (), "its times are the same, so it was not looked through"


@pytest.mark.parametrize("passed", [KEPT_NS, -1])
def test_no_answer_is_kept_for_long_for_some_file_systems_tell_of_nothing(watched: Watched, passed: int) -> None:
    watched.now += 2 * SETTLED_NS
    assert watched.present == ()
    (watched.place / "a.json").touch()
    watched.now += KEPT_NS - 1
    assert watched.present == ()
    watched.now += passed - KEPT_NS + 1
    assert watched.present == ("a.json",), "and a clock that was set back is not waited for"


@pytest.mark.parametrize("what", ["modified", "changed", "inode"])
def test_whatever_tells_of_a_change_has_it_looked_through_again(watched: Watched, what: str) -> None:
    watched.now += 2 * SETTLED_NS
    assert watched.present == ()
    (watched.place / "a.json").touch()
    setattr(watched, what, getattr(watched, what) + 1)
    assert watched.present == ("a.json",)


@pytest.mark.parametrize("what", ["modified", "changed"])
def test_a_folder_that_changed_a_moment_ago_is_not_trusted(watched: Watched, what: str) -> None:
    """What comes in the same moment leaves the same times."""
    watched.now += 2 * SETTLED_NS
    setattr(watched, what, watched.now - SETTLED_NS)
    assert watched.present == ()
    (watched.place / "a.json").touch()
    assert watched.present == ("a.json",)


def test_times_in_whole_seconds_need_longer(watched: Watched) -> None:
    watched.modified = watched.changed = COARSE_NS
    watched.now = COARSE_NS + SETTLED_COARSE_NS
    assert watched.present == ()
    (watched.place / "a.json").touch()
    assert watched.present == ("a.json",)
    watched.now += 1
    assert watched.present == ("a.json",)
    (watched.place / ".git").mkdir()
    assert watched.present == ("a.json",), "now it has settled"


def test_folders_are_the_same_until_their_times_tell_otherwise(watched: Watched) -> None:
    watched.now += 2 * SETTLED_NS
    before = {str(watched.place): watched.folders.at(str(watched.place))}
    (watched.place / "a.json").touch()
    assert watched.folders.same(before), "its times are the same, so it was not looked through"
    watched.now += KEPT_NS
    assert not watched.folders.same(before), "and believed for long they are not"


def test_a_folder_in_which_something_else_came_is_the_same(watched: Watched) -> None:
    before = {str(watched.place): watched.folders.at(str(watched.place))}
    (watched.place / "b.json").touch()
    watched.modified += 1
    assert watched.folders.same(before)
    (watched.place / "a.json").touch()
    watched.modified += 1
    assert not watched.folders.same(before)


def test_a_folder_that_is_not_there_is_the_same_until_it_is(tmp_path: Path) -> None:
    folders, later = Folders(("a.json",)), tmp_path / "later"
    before = {str(later): folders.at(str(later))}
    assert folders.same(before)
    later.mkdir()
    assert not folders.same(before)
