"""The figures of docs/quality.md count what they say they count."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quality", ROOT / "scripts/quality.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


quality = load()


def module(text: str) -> object:
    return quality.Module(Path("example.py"), text, ast.parse(text))


def test_a_spread_is_median_ninetieth_percentile_and_maximum() -> None:
    assert quality.spread(list(range(1, 12))) == (6, 10, 11)


@pytest.mark.parametrize("sizes", [[], [7]])
def test_a_spread_of_one_value_is_that_value(sizes: list[int]) -> None:
    assert quality.spread(sizes) == (sum(sizes),) * 3


def test_a_function_is_as_long_as_from_its_signature_to_its_last_line() -> None:
    text = "def f():\n    x = 1\n\n    return x\n\n\nclass C:\n    async def g(self): ...\n"
    assert quality.functions([module(text)]) == [(4, "example.f"), (1, "example.g")]


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("except Exception:\n    pass", 1),
        ("except BaseException as error:\n    print(error)", 1),
        ("except:\n    pass", 1),
        ("except ValueError:\n    pass", 0),
        ("except BaseException:\n    undo()\n    raise", 0),
    ],
)
def test_a_broad_handler_counts_unless_it_raises_on(handler: str, expected: int) -> None:
    code = [module(f"try:\n    f()\n{handler}\n")]
    assert len(quality.nodes(code, quality.is_broad_except)) == expected


def test_a_branch_is_whatever_decides_which_way_to_go() -> None:
    text = (
        "if a:\n    b = 1 if c else 2\nelif d:\n    pass\nfor e in f:\n    pass\nmatch g:\n    case 1:\n        pass\n"
    )
    assert len(quality.nodes([module(text)], quality.is_branch)) == 4


def test_names_are_counted_in_code_and_not_in_strings() -> None:
    code = [module("from typing import Any, cast\nx: Any = cast(int, 'Any cast')\n")]
    assert len(quality.nodes(code, quality.names("Any"))) == 1
    assert len(quality.nodes(code, quality.calls("cast"))) == 1


def test_comments_that_silence_the_type_checker_are_counted() -> None:
    assert quality.ignores([module("x = 1  # type: ignore[misc]\ny = 2\n")]) == 1


def test_a_page_gets_its_figures_and_keeps_what_a_person_wrote() -> None:
    page = (
        "| 1 | **First hour** | how | best | bar | by hand | - | - |\n"
        "| 2 | **File size** | how | best | bar | - | - | worse |\n"
        "<!-- measured -->\nold\n<!-- /measured -->\n"
        "<!-- missed -->\n<!-- /missed -->\n"
    )
    filled = quality.fill(page, [quality.Figure(2, "lines", "9", "≤ 10", True)])
    assert filled == (
        "| 1 | **First hour** | how | best | bar | by hand | - | - |\n"
        "| 2 | **File size** | how | best | bar | lines 9 | - | worse |\n"
        "<!-- measured -->\n"
        "| # | Figure | Ours | Bar | Met |\n|---|---|---|---|---|\n| 2 | lines | 9 | ≤ 10 | yes |\n"
        "<!-- /measured -->\n"
        "<!-- missed -->\nNothing.\n<!-- /missed -->\n"
    )


def test_what_misses_its_bar_is_listed() -> None:
    page = "<!-- missed -->\nold\n<!-- /missed -->\n"
    filled = quality.fill(page, [quality.Figure(2, "lines", "11", "≤ 10", False)])
    assert filled == "<!-- missed -->\n- row 2, lines: 11; the bar is ≤ 10\n<!-- /missed -->\n"
