"""Symbols: where the functions, classes and constants of a source text are, and which of them a name means."""

import warnings

import pytest

from turnkeeper.text.symbols import CLASS, FUNCTION, METHOD, VARIABLE, Symbol, find, nearest, symbols

PYTHON = '''"""Tides."""
import os

LIMIT: int = 3
low, (high, *rest) = 1, (2, 3)
table["x"] = 1


@decorated(
    "twice",
)
class Tide:
    """A tide."""

    height = 1.0

    @property
    def hours(self):
        return [
            1,
        ]

    @hours.setter
    def hours(self, value):
        local = value

        def inner():
            pass

        return inner


async def hours():
    "\\d is no escape"


if os.name == "nt":
    def only_there(): pass
else:
    def only_there():
        try:
            class Deep: ...
        finally:
            pass
'''


def test_python_is_found_with_decorators_and_nesting() -> None:
    found = [(one.name, one.kind, one.first, one.last) for one in symbols(".py", PYTHON)]
    assert found == [
        ("LIMIT", VARIABLE, 4, 4),
        ("low", VARIABLE, 5, 5),
        ("high", VARIABLE, 5, 5),
        ("rest", VARIABLE, 5, 5),
        ("Tide", CLASS, 9, 30),
        ("Tide.height", VARIABLE, 15, 15),
        ("Tide.hours", METHOD, 17, 21),
        ("Tide.hours", METHOD, 23, 30),
        ("Tide.hours.inner", FUNCTION, 27, 28),
        ("hours", FUNCTION, 33, 34),
        ("only_there", FUNCTION, 38, 38),
        ("only_there", FUNCTION, 40, 44),
        ("only_there.Deep", CLASS, 42, 42),
    ]


def test_a_text_with_warnings_is_parsed_in_silence() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert symbols(".pyi", PYTHON)
    assert told == []


def test_shell_functions_are_found() -> None:
    text = "#!/bin/bash\ndeploy() {\n  echo one\n}\n\nfunction tidy-up {\n  inner() { :; }\n}\ndeploy\n"
    assert symbols(".sh", text) == (
        Symbol(("deploy",), FUNCTION, 2, 4),
        Symbol(("tidy-up",), FUNCTION, 6, 8),
        Symbol(("inner",), FUNCTION, 7, 7),
    )


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "def broken(:\n"),
        (".py", "def old():\r    pass\r"),
        (".py", "x = " + "(" * 100_000),
        (".py", "x = " + "-" * 100_000 + "1"),
        (".py", "def null(): pass\0"),
        (".sh", "if then fi ("),
        (".rs", "fn main() {}"),
        ("", "def f(): pass"),
    ],
)
def test_what_is_not_understood_has_no_symbols(suffix: str, text: str) -> None:
    assert symbols(suffix, text) == ()


def named(*names: str) -> list[Symbol]:
    return [Symbol(tuple(name.split(".")), FUNCTION, line, line) for line, name in enumerate(names, start=1)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", [3]),
        ("App.run", [1]),
        ("App::run", [1]),
        ("stop", [2, 4]),
        ("Job.stop", [4]),
        ("pp.run", []),
        ("Run", []),
        ("twice", [5, 6]),
    ],
)
def test_a_whole_name_is_meant_before_the_end_of_one(name: str, expected: list[int]) -> None:
    known = named("App.run", "App.stop", "run", "Job.stop", "twice", "twice")
    assert [one.first for one in find(known, name)] == expected


def test_the_nearest_names_are_whole_ones() -> None:
    known = named("App.run_all", "App.stop", "resume")
    assert nearest(known, "runall") == ("App.run_all",)
    assert nearest(known, "zzz") == ()
