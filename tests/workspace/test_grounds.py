"""Grounds: an answer holds as long as every folder, file and variable it was found on is as it was."""

import os
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path

import pytest

from turnkeeper.workspace.grounds import Grounds, Variables, standing

NAME = "TURNKEEPER_TEST_VARIABLE"


def of(folder: Path, *files: Path) -> Grounds:
    return Grounds({str(folder): standing.at(str(folder))}, {str(file): standing.stamp(str(file)) for file in files})


def test_they_hold_whatever_else_comes_and_goes(tmp_path: Path) -> None:
    grounds = of(tmp_path, tmp_path / "settings.json")
    assert grounds.hold()
    (tmp_path / "notes.txt").write_text("not asked for")
    assert grounds.hold()


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place / "opencode.json").write_text("{}"),
        lambda place: (place / ".git").mkdir(),
        lambda place: (place / ".turnkeeper").rmdir(),
        lambda place: (place / "settings.json").write_text("{ }"),
        lambda place: (place / "settings.json").unlink(),
        lambda place: (place / "later.json").symlink_to("settings.json"),
        lambda place: place.rename(place.with_name("away")),
    ],
)
def test_they_fall_with_the_first_thing_that_is_not_as_it_was(tmp_path: Path, change: Callable[[Path], object]) -> None:
    place = tmp_path / "place"
    (place / ".turnkeeper").mkdir(parents=True)
    (place / "settings.json").write_text("{}")
    grounds = of(place, place / "settings.json", place / "later.json")
    assert grounds.hold()
    change(place)
    assert not grounds.hold()


def test_another_folder_under_the_same_name_is_another(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    one.mkdir()
    other.mkdir()
    link.symlink_to(one)
    grounds = of(link)
    link.unlink()
    link.symlink_to(other)
    assert not grounds.hold()


@pytest.fixture(params=["the system's", "one's own"])
def environ(request: pytest.FixtureRequest) -> Iterator[MutableMapping[str, str]]:
    """Of the two kinds that there are, one after the other; nobody else knows the variable."""
    chosen = os.environ if request.param == "the system's" else dict(os.environ)
    yield chosen
    chosen.pop(NAME, None)


def test_a_variable_that_is_set_changed_or_gone_is_noticed(environ: MutableMapping[str, str]) -> None:
    variables = Variables(environ, (NAME, "PATH"))
    grounds = Grounds({}, {}, ((variables, variables.now()),))
    assert grounds.hold()
    environ[NAME] = "before"
    assert not grounds.hold()
    grounds = Grounds({}, {}, ((variables, variables.now()),))
    environ[NAME] = "after"
    assert not grounds.hold()
    environ[NAME] = "before"
    assert grounds.hold()
    del environ[NAME]
    assert not grounds.hold()


def test_those_of_two_answers_hold_while_both_do(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    first, second = of(tmp_path, one / "a.json"), of(tmp_path, other / "b.json")
    both = first.joined(second)
    assert both is not None
    assert both.hold()
    (other / "b.json").touch()
    assert first.hold()
    assert not both.hold()


def test_those_that_disagree_are_not_joined(tmp_path: Path) -> None:
    before = of(tmp_path)
    (tmp_path / ".git").mkdir()
    assert before.joined(of(tmp_path)) is None
