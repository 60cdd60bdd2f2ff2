"""Everything public is in ``turnkeeper``, and importing that loads nothing of it."""

import ast
import builtins
import collections.abc
import contextlib
import pathlib
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import turnkeeper
import turnkeeper.testing
from turnkeeper.api import named_types

SOURCE = Path(turnkeeper.__file__)


def test_the_table_of_public_names_is_what_the_type_checker_sees() -> None:
    tree = ast.parse(SOURCE.read_text("utf-8"))
    [checked] = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    seen |= dict.fromkeys((one for one in vars(named_types) if not one.startswith("_")), named_types.__name__)
    table = {name: place for place, names in turnkeeper._PLACES.items() for name in names.split()}
    assert table == seen
    assert sorted(turnkeeper.__all__) == sorted([*table, "__version__", "open", "open_sync"])


def test_every_public_name_can_be_loaded() -> None:
    for name in turnkeeper.__all__:
        assert getattr(turnkeeper, name) is not None
    assert set(turnkeeper.__all__) <= set(dir(turnkeeper))


def test_every_value_on_the_reference_page_is_public_under_that_name() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text("utf-8")
    values = page.partition("\n## Values\n")[2].partition("\n## Notifications\n")[0]
    assert set(re.findall(r"^### `(\w+)`$", values, re.MULTILINE)) <= set(turnkeeper.__all__)


def test_every_type_that_the_reference_page_names_is_public() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text("utf-8").partition("\n## Functions\n")[2]
    signatures = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    cells = [cell for row in re.findall(r"^\|.*\|$", page, re.MULTILINE) for cell in re.findall(r"`([^`]+)`", row)]
    texts = [re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", text) for text in (*signatures, *cells)]  # Without strings.
    named = {name for text in texts for name in re.findall(r"\b[A-Z]\w+\b(?!\.)", text)}  # Without file names.
    known = (turnkeeper, turnkeeper.testing, builtins, typing, collections.abc, contextlib, pathlib)
    assert {"LedgerRow", "StreamEvent", "OpenOptions", "Path"} <= named
    assert not sorted(name for name in named if not any(hasattr(module, name) for module in known))


def test_a_misspelt_name_is_an_error_for_the_type_checker_too() -> None:
    with pytest.raises(AttributeError, match="opn_sync"):
        turnkeeper.opn_sync  # type: ignore[attr-defined]  # noqa: B018  # `make check` fails if nothing is to be ignored.


async def test_the_status_of_a_session_can_be_told_by_its_class() -> None:
    async with turnkeeper.open("memory:") as tk:
        status: turnkeeper.Status = await tk.status((await tk.create()).id)
        assert isinstance(status, turnkeeper.StatusIdle)
        assert not isinstance(status, turnkeeper.StatusBusy | turnkeeper.StatusRetrying)


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, turnkeeper; print(sorted(name for name in sys.modules if name.startswith('turnkeeper')))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE.parents[1])},
    )
    assert run.stdout == "['turnkeeper', 'turnkeeper.model', 'turnkeeper.model.version']\n"
    code = "import sys, turnkeeper; print('anyio' in sys.modules, 'msgspec' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE.parents[1])},
    )
    assert run.stdout == "False False\n"
