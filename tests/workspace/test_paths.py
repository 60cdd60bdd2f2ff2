"""Where files live, as the environment says."""

from pathlib import Path

import pytest

from turnkeeper.workspace import paths

HOME = {"HOME": "/home/ada"}
XDG = HOME | {
    "XDG_DATA_HOME": "/x/data",
    "XDG_CONFIG_HOME": "/x/config",
    "XDG_STATE_HOME": "/x/state",
}


def test_without_xdg_variables_the_usual_places_under_home_are_used() -> None:
    assert [paths.data(HOME), paths.config(HOME), paths.state(HOME)] == [
        Path("/home/ada/.local/share/turnkeeper"),
        Path("/home/ada/.config/turnkeeper"),
        Path("/home/ada/.local/state/turnkeeper"),
    ]


def test_xdg_variables_move_each_place() -> None:
    assert [paths.data(XDG), paths.config(XDG), paths.state(XDG)] == [
        Path("/x/data/turnkeeper"),
        Path("/x/config/turnkeeper"),
        Path("/x/state/turnkeeper"),
    ]


@pytest.mark.parametrize("value", ["", "relative/data"])
def test_an_empty_or_relative_xdg_variable_is_ignored(value: str) -> None:
    assert paths.data(HOME | {"XDG_DATA_HOME": value}) == Path("/home/ada/.local/share/turnkeeper")


@pytest.mark.parametrize(
    ("value", "place"),
    [("/srv/tk", "/srv/tk"), ("~/tk", "/home/ada/tk"), ("~", "/home/ada"), ("here", "here")],
)
def test_the_data_directory_can_be_named(value: str, place: str) -> None:
    assert paths.data(XDG | {"TURNKEEPER_DATA": value}) == Path(place)


def test_naming_our_data_directory_moves_nothing_else() -> None:
    environ = XDG | {"TURNKEEPER_DATA": "/srv/tk"}
    assert paths.data(environ, paths.OPENCODE) == Path("/x/data/opencode")
    assert paths.config(environ) == Path("/x/config/turnkeeper")


def test_a_named_data_directory_needs_no_home() -> None:
    assert paths.data({"TURNKEEPER_DATA": "/srv/tk"}) == Path("/srv/tk")


def test_without_any_home_the_error_says_what_to_set() -> None:
    with pytest.raises(ValueError, match="set TURNKEEPER_DATA"):
        paths.data({})


def test_opencodes_history_is_found_where_opencode_keeps_it() -> None:
    assert paths.opencode_storage(HOME) == Path("/home/ada/.local/share/opencode/storage")
    assert paths.opencode_database(HOME) == Path("/home/ada/.local/share/opencode/opencode.db")
    assert paths.opencode_database(XDG | {"OPENCODE_DB": "other.db"}) == Path("/x/data/opencode/other.db")
    assert paths.opencode_database({"OPENCODE_DB": "/y/z.db"} | HOME) == Path("/y/z.db")
    assert paths.opencode_database(HOME | {"OPENCODE_DB": ":memory:"}) is None
