"""An argument of a wrong type is refused by its name, before anything is opened or written."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import anyio
import pytest

import turnkeeper
from turnkeeper import Agent, Invalid, Prompt, Refusal, Scripted, TextInput, Turnkeeper

# ``Any`` throughout: the tests pass what the type checker would refuse, as a program without one does.
DEADLINE_S = 60


class Thing:
    """A value that nothing takes."""

    def __repr__(self) -> str:
        return "<thing>"


VALUES: tuple[Any, ...] = (5, None, [], [5], [None], {}, {5: 5}, b"bytes", "text", True, 1.5, Thing())

FITS: dict[type, str] = {
    int: "int|float",
    float: "float",
    bool: "bool",
    type(None): "None",
    list: "Sequence|Iterable|tuple|DamagedNames",
    dict: "Mapping|Iterable|Failed",
    str: "str|Path|Absence|PermissionAnswer|ExportLayout|ProgramName|Recovery",
}
"""The words of an annotation that a value of this type is right for. Other words for text have tests of their own."""

FILLED = "DamagedNames|Failed"
"""What a method adds to. What it holds already is no concern of the method."""

GIVEN: dict[str, Any] = {
    "after": 1,
    "answer": "once",
    "approval_id": "apr_1",
    "before": 1,
    "command": "true",
    "component": turnkeeper.component("acme/wind")(lambda: "west"),
    "directory": Path(),
    "editor": lambda session: session,
    "file": "a.txt",
    "given": None,
    "handle": "r0123456789",
    "left": (),
    "name": "init",
    "notification": None,
    "part": None,
    "part_id": "prt_1",
    "path": "a.json",
    "program": "codex",
    "prompt": "Hi",
    "query": "words",
    "receive": lambda one: None,
    "request_id": "per_1",
    "secret": "secret",
    "seq": 1,
    "share_id": "share",
    "title": "Sound",
    "todos": (),
    "words": "words",
}
"""A right value for each argument that has no default."""

METHODS = {
    name: inspect.signature(method)
    for name, method in inspect.getmembers(Turnkeeper, inspect.isfunction)
    if not name.startswith("_")
}
ARGUMENTS = [(name, one) for name, signature in METHODS.items() for one in list(signature.parameters)[1:]]


def is_right(value: Any, annotation: object) -> bool:
    """Whether a value is of an annotated type, by the words of the annotation."""
    words = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    while "[" in words:
        words = re.sub(r"\[[^][]*\]", "", words)
    is_filled = isinstance(value, list | dict) and bool(value) and not re.search(FILLED, words)
    return not is_filled and bool(re.search(rf"\b({FITS.get(type(value), 'nothing')})\b", words))


async def called(method: Any, given: dict[str, Any]) -> None:
    """Call a method of any kind, up to its first result."""
    found = method(**given)
    if isinstance(found, Awaitable):
        await found
    elif isinstance(found, AsyncIterator):
        await anext(found, None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
async def test_a_method_names_the_argument_that_is_wrong(name: str, argument: str, opened: Any, place: Path) -> None:
    async with opened(Scripted()) as tk:
        session_id = (await tk.create()).id
        note = await tk.prompt(session_id, Prompt(parts=(TextInput(text="A note"),), no_reply=True))
        known = {**GIVEN, "session_id": session_id, "message_id": note.message_id, "target": place / "out"}
        before, parameters = await tk.store.queries.state(session_id), METHODS[name].parameters
        required = list(parameters)[1:]
        given = {one: known[one] for one in required if parameters[one].default is inspect.Parameter.empty}
        wrong: list[str] = []
        for value in VALUES:
            if is_right(value, parameters[argument].annotation):
                continue
            with anyio.fail_after(DEADLINE_S):
                try:
                    await called(getattr(tk, name), {**given, argument: value})
                except (Refusal, TypeError) as error:
                    if not re.search(rf"\b{argument.replace('_', '[ _]')}", str(error)):
                        wrong.append(f"{value!r}: {error!r}")
                except Exception as error:
                    wrong.append(f"{value!r}: {error!r}")
                else:
                    wrong.append(f"{value!r} is taken")
        assert wrong == []
        assert await tk.store.queries.state(session_id) == before
        assert [one.id for one in (await tk.list()).items] == [session_id]
        assert list(place.iterdir()) == []


OPENING = inspect.signature(turnkeeper.open).parameters
OPENINGS = [(name, value) for name, one in OPENING.items() for value in VALUES if not is_right(value, one.annotation)]
ENTRIES: list[tuple[str, Any]] = [
    ("tools", ("text",)),
    ("tools", [Thing()]),
    ("components", [Thing()]),
    ("components", [lambda: "west"]),
    ("agents", [Thing()]),
    ("agents", {"reviewer": Agent("reviewer")}),
    ("config", {"model": Thing()}),
    ("config", [("model", "acme/large")]),
    ("provider", Scripted),
    ("settings", turnkeeper.Settings),
    ("mint", turnkeeper.Mint),
]


@pytest.mark.parametrize(("name", "value"), [*OPENINGS, *ENTRIES])
def test_what_is_given_to_open_is_refused_by_its_name(name: str, value: Any, tmp_path: Path) -> None:
    given: Any = {"store": f"sqlite:{tmp_path / 'store.db'}", name: value}
    with pytest.raises((Invalid, TypeError), match=rf"\b{name.removesuffix('s')}"):
        turnkeeper.open(**given)
    with pytest.raises((Invalid, TypeError), match=rf"\b{name.removesuffix('s')}"):
        turnkeeper.open_sync(**given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [{"prompt": 5}, {"prompt": None}, {"session": 5}, {"agent": []}, {"tools": "text"}])
async def test_one_question_with_a_wrong_argument_opens_no_store(given: dict[str, Any], tmp_path: Path) -> None:
    asked: Any = turnkeeper.ask
    [name] = given
    with pytest.raises(Invalid, match=rf"^{name} is "):
        await asked(**{"prompt": "Hi", "store": f"sqlite:{tmp_path / 'store.db'}", **given})
    assert list(tmp_path.iterdir()) == []
