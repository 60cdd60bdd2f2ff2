"""House rules that are easiest to state about the text of the code, and that nothing else enforces."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/turnkeeper"
TESTS = ROOT / "tests"

FAKERIES = {"mock", "unittest.mock", "pytest_mock"}
PATCHERS = {"monkeypatch", "mocker", "MagicMock", "AsyncMock", "Mock"}
DEADLINES = {"fail_after", "move_on_after"}
YIELDS = {"sleep", "checkpoint"}


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def names_async(text: str) -> Iterator[int]:
    """Lines that hold the word, in code or in prose: a pure module has no reason to."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.search(r"\basync\b", line):
            yield number


def waits_for_time(text: str) -> Iterator[int]:
    """Lines that sleep. ``sleep(0)`` only lets others run, and may."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="sleep") | ast.Attribute(attr="sleep"), args=[ast.Constant(value=0)]):
                continue
            case ast.Call(func=ast.Name(id="sleep") | ast.Attribute(attr="sleep")):
                yield node.lineno


def calls(*names: str) -> Callable[[str], Iterator[int]]:
    """Lines that call one of these, bare or as an attribute."""

    def find(text: str) -> Iterator[int]:
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in names:
                    yield node.lineno

    return find


def polls_without_end(text: str) -> Iterator[int]:
    """Loops that only let others run, outside a deadline: if what they wait for never comes, they never end."""

    def look(node: ast.AST, is_limited: bool) -> Iterator[int]:
        match node:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                is_limited = is_limited or any(names(item.context_expr) & DEADLINES for item in items)
            case ast.While(body=[ast.Expr(value=ast.Await(value=ast.Call(func=called)))]) if names(called) & YIELDS:
                if not is_limited:
                    yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from look(child, is_limited)

    yield from look(ast.parse(text), is_limited=False)


def names(node: ast.AST) -> set[str]:
    """Every name in an expression, bare or as an attribute."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def patches(text: str) -> Iterator[int]:
    """Lines that bring in a mock, or a fixture that replaces what the code under test uses."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=found) if any(alias.name in FAKERIES for alias in found):
                yield node.lineno
            case ast.ImportFrom(module=str(module), names=found) if module in FAKERIES or (
                module == "unittest" and any(alias.name == "mock" for alias in found)
            ):
                yield node.lineno
            case ast.arg(arg=name) | ast.Name(id=name) if name in PATCHERS:
                yield node.lineno


def leaves_its_directory(text: str) -> Iterator[int]:
    """Lines that go above the directory of a test, which all tests of a process share."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="tmp_path"), attr="parent" | "parents"):
                yield node.lineno


def replaces_methods(text: str) -> Iterator[int]:
    """Lines that assign a function of the test to another object, under the name of a method of the source."""
    tree = ast.parse(text)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for target, value in assignments(tree):
        match value:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name not in functions:
                continue
            case ast.Lambda() | ast.Name() | ast.Attribute() if target.attr in methods():
                yield target.lineno


@cache
def methods() -> set[str]:
    """The names of all methods in the source."""
    trees = [ast.parse(file.read_text("utf-8")) for file in modules(SOURCE)]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {
        node.name
        for found in classes
        for node in found.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    }


def writes_private(text: str) -> Iterator[int]:
    """Lines that assign to a private attribute of another object, or to an item of it."""
    for target, _ in assignments(ast.parse(text)):
        if target.attr.startswith("_"):
            yield target.lineno


def assignments(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Every attribute of another object that is assigned to, or an item of it, with the value."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Attribute() as target], value=value)
                | ast.Assign(targets=[ast.Subscript(value=ast.Attribute() as target)], value=value)
            ) if is_foreign(target):
                yield target, value


def is_foreign(target: ast.Attribute) -> bool:
    """Whether an assignment changes another object than the one whose method this is."""
    return not isinstance(target.value, ast.Name) or target.value.id not in ("self", "cls")


def keeps_a_loop(text: str) -> Iterator[int]:
    """Async fixtures that outlive a test: their loop stays in the thread, and no later test can run another in it."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.AsyncFunctionDef(decorator_list=decorators):
                for one in decorators:
                    match one:
                        case ast.Call(func=called, keywords=given) if "fixture" in names(called) and any(
                            word.arg == "scope" for word in given
                        ):
                            yield node.lineno


class Rule(NamedTuple):
    """What must not occur, where, and an example that breaks it."""

    name: str
    find: Callable[[str], Iterator[int]]
    where: tuple[Path, ...]
    broken: str
    kept: str
    except_in: tuple[Path, ...] = ()


RULES = (
    Rule(
        "the model and the core decide and never wait",
        names_async,
        (SOURCE / "model", SOURCE / "text", SOURCE / "core"),
        broken="async def f(): ...",
        kept="asynchronous = 1",
    ),
    Rule(
        "only the command line prints",
        calls("print"),
        (SOURCE,),
        broken="print(1)",
        kept='text = "print(1)"',
        except_in=(SOURCE / "cli",),
    ),
    Rule(
        "every task belongs to a task group",
        calls("create_task", "ensure_future"),
        (SOURCE,),
        broken="asyncio.create_task(f())",
        kept="group.start_soon(f)",
        # The engine contract cancels appends by hand, as a caller outside any task group might.
        # A task group would wait for a tool, or a hook of a plugin, that ignores cancellation.
        except_in=(SOURCE / "testing", SOURCE / "run" / "abandon.py", SOURCE / "outside_code" / "threads.py"),
    ),
    Rule(
        "tests wait for an event, never for time",
        waits_for_time,
        (TESTS, SOURCE / "testing"),
        broken="import time\ntime.sleep(0.1)",
        kept='run("sleep 60"); anyio.sleep(0)',
    ),
    Rule(
        "a loop that waits has a deadline",
        polls_without_end,
        (TESTS, SOURCE / "testing"),
        broken="async def wait():\n    while not ready:\n        await anyio.sleep(0)",
        kept="async def wait():\n  with fail_after(9):\n    while not ready:\n      await anyio.sleep(0)",
    ),
    Rule(
        "tests use what we ship",
        patches,
        (TESTS, SOURCE / "testing"),
        broken="from unittest import mock\nfrom unittest.mock import patch\ndef test(monkeypatch): ...",
        kept="def test(tmp_path): ...",
    ),
    Rule(
        "tests stay in their own directory",
        leaves_its_directory,
        (TESTS,),
        broken="def test(tmp_path): (tmp_path.parent / 'turnkeeper.json').touch()",
        kept="def test(tmp_path): (tmp_path / 'turnkeeper.json').touch()",
    ),
    Rule(
        "tests replace no method of a live object",
        replaces_methods,
        (TESTS, SOURCE / "testing"),
        broken="def counted(): ...\nstore.engine.read = counted",
        kept="class Counting(Engine):\n    def __init__(self):\n        self._count = 0",
    ),
    Rule(
        "tests write no private field of another object",
        writes_private,
        (TESTS, SOURCE / "testing"),
        broken="server.service._parts[hub] = ours",
        kept="server.service.give(hub, ours)",
    ),
    Rule(
        "a fixture that outlives a test keeps no loop",
        keeps_a_loop,
        (TESTS,),
        broken='@pytest.fixture(scope="session")\nasync def whole(): ...',
        kept='@pytest.fixture(scope="session")\ndef whole(): ...\n@pytest.fixture\nasync def part(): ...',
    ),
)


def breaches(rule: Rule) -> list[str]:
    files = [file for folder in rule.where for file in modules(folder)]
    return [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if not any(file.is_relative_to(folder) for folder in rule.except_in)
        for line in sorted(rule.find(file.read_text("utf-8")))
    ]


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_the_code_keeps_the_rule(rule: Rule) -> None:
    assert breaches(rule) == []


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_the_rule_finds_what_breaks_it_and_nothing_else(rule: Rule) -> None:
    assert list(rule.find(rule.broken))
    assert list(rule.find(rule.kept)) == []


@pytest.mark.parametrize("folder", sorted({folder for rule in RULES for folder in rule.where}), ids=lambda f: f.name)
def test_the_rules_look_at_folders_that_hold_modules(folder: Path) -> None:
    assert modules(folder)


def test_every_module_says_in_its_first_line_what_it_is() -> None:
    silent = [file for file in modules(SOURCE) if not ast.get_docstring(ast.parse(file.read_text("utf-8")))]
    assert [str(file.relative_to(ROOT)) for file in silent] == []
