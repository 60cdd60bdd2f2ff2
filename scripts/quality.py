"""Measure the code by the table of ``docs/quality.md`` and print what a script can measure, as Markdown.

``--write`` puts the figures into that page: into its "Ours" column, and between its two ``measured`` marks.
Rows that need a person, a long run or a diff keep what stands there.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/turnkeeper"
TESTS = ROOT / "tests"
PAGE = ROOT / "docs/quality.md"

FUNCTION_MAX = 60
WALK = (
    *("sessions/prompt", "store/journal", "run/coordinator", "run/drain", "core/next_action"),
    *("run/prepare", "run/boundary", "run/turn", "run/settle", "run/fenced_writer"),
)
"""The modules that ARCHITECTURE lists as the walk of one prompt."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One file of code."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """All lines, blank ones and comments too."""
        return len(self.text.splitlines())


class Figure(NamedTuple):
    """One measured value, the bar it is held against, and the row of the table it belongs to."""

    row: int
    name: str
    value: str
    bar: str
    met: bool


def modules(folder: Path) -> list[Module]:
    """The Python files below a folder."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text("utf-8")
        found.append(Module(path, text, ast.parse(text)))
    return found


def nodes(code: Iterable[Module], matches: Callable[[ast.AST], bool]) -> list[tuple[Module, ast.AST]]:
    """Every matching piece of syntax with its module."""
    return [(module, node) for module in code for node in ast.walk(module.tree) if matches(node)]


def spread(values: list[int]) -> tuple[int, int, int]:
    """Median, ninetieth percentile and maximum."""
    if len(values) < 2:
        return (values or [0])[0], (values or [0])[0], (values or [0])[0]
    return round(median(values)), round(quantiles(values, n=10, method="inclusive")[-1]), max(values)


def sized(row: int, name: str, sizes: list[tuple[int, str]], bar: tuple[int, int, int]) -> list[Figure]:
    """The figures of a spread of sizes, with the largest one named."""
    values = spread([size for size, _ in sizes])
    met = all(value <= limit for value, limit in zip(values, bar, strict=True))
    largest = max(sizes, default=(0, "none"))[1]
    shown, wanted = ("/".join(str(v) for v in vs) for vs in (values, bar))
    return [Figure(row, f"{name}: median/p90/max", f"{shown} ({largest})", f"≤ {wanted}", met)]


def functions(code: list[Module]) -> list[tuple[int, str]]:
    """The length of each function and its name, the docstring and the lines of nested functions included."""
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{module.path.stem}.{node.name}")
        for module, node in nodes(code, lambda node: isinstance(node, Function))
        if isinstance(node, Function)
    ]


def per_thousand(row: int, name: str, count: int, lines: int, bar: float) -> Figure:
    """A count for each thousand lines."""
    rate = 1000 * count / max(lines, 1)
    return Figure(row, f"{name} per kLoC", f"{rate:.1f} ({count})", f"≤ {bar:g}", rate <= bar)


def is_broad_except(node: ast.AST) -> bool:
    """Whether a handler takes in every exception and keeps it. One that cleans up and raises on does not."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    broad = node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
    return broad and not isinstance(node.body[-1], ast.Raise)


def names(*wanted: str) -> Callable[[ast.AST], bool]:
    """Whether a node is one of these names, bare or as an attribute."""
    return lambda node: (
        (isinstance(node, ast.Name) and node.id in wanted)
        or (isinstance(node, ast.Attribute) and node.attr in wanted)
        or (isinstance(node, ast.arg) and node.arg in wanted)
    )


def calls(*wanted: str) -> Callable[[ast.AST], bool]:
    """Whether a node calls one of these."""
    named = names(*wanted)
    return lambda node: isinstance(node, ast.Call) and named(node.func)


def contracts() -> tuple[int, int, bool]:
    """How many layer contracts there are, how many exceptions they list, and whether all are kept."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    exceptions = sum(len(contract.get("ignore_imports", [])) for contract in settings["contracts"])
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [linter, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": "src"},
        check=False,
    )
    return len(settings["contracts"]), exceptions, run.returncode == 0


def walk(code: list[Module]) -> Figure:
    """How much code there is on the way of one prompt, without blank lines, comments and docstrings."""
    named = {SOURCE / f"{name}.py" for name in WALK}
    lines = sum(code_lines(module) for module in code if module.path in named)
    return Figure(1, "lines of code of one prompt's walk", f"{lines} in {len(WALK)} files", "≤ 1600", lines <= 1600)


def code_lines(module: Module) -> int:
    """The lines of a module without blank lines, comments and docstrings."""
    said = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in said
        for number, line in enumerate(module.text.splitlines(), 1)
    )


def is_branch(node: ast.AST) -> bool:
    """Whether a piece of syntax decides which way to go."""
    return isinstance(node, ast.If | ast.IfExp | ast.While | ast.match_case | ast.ExceptHandler)


def branching(code: list[Module]) -> Figure:
    """How much the layer decides that should only do."""
    running = [m for m in code if m.path.relative_to(SOURCE).parts[0] == "run"]
    rate = 100 * len(nodes(running, is_branch)) / max(sum(m.lines for m in running), 1)
    return Figure(6, "branches in run per 100 lines", f"{rate:.1f}", "< 6", rate < 6)


def contract_tests(code: list[Module]) -> int:
    """The promises of an engine that are tests."""
    suite = [m for m in code if "engine_contract" in m.path.parts]
    return len(nodes(suite, lambda node: isinstance(node, Function) and node.name.startswith("test_")))


def refused_words() -> int:
    """Words that the glossary refuses, found in the source by the checker of documents."""
    spec = spec_from_file_location("check_docs", ROOT / "scripts/check_docs.py")
    assert spec is not None
    assert spec.loader is not None
    checker = module_from_spec(spec)
    spec.loader.exec_module(checker)
    return len(checker.check_glossary(ROOT))


def commit_sizes() -> list[int]:
    """Changed lines of each commit, data, lock files and merges aside."""
    log = subprocess.run(
        [
            "git",
            "log",
            "--no-merges",
            "--numstat",
            "--format=format:commit",
            "--",
            ".",
            ":!*.lock",
            ":!tests/golden",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    sizes: list[int] = []
    for line in log.stdout.splitlines():
        if line == "commit":
            sizes.append(0)
        elif (found := re.match(r"(\d+)\t(\d+)\t", line)) and sizes:
            sizes[-1] += int(found[1]) + int(found[2])
    return sizes


def bodies() -> tuple[int, int]:
    """How many commits say why in their body, of how many."""
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%b%x00"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = log.stdout.split("\0")[:-1]
    return sum(1 for body in found if body.strip()), len(found)


def sentences(tests: list[Module]) -> tuple[int, int]:
    """How many test names have at least four words, of how many."""
    found = [
        node.name
        for _, node in nodes(tests, lambda node: isinstance(node, Function))
        if isinstance(node, Function) and node.name.startswith("test_")
    ]
    return sum(1 for name in found if name.count("_") >= 4), len(found)


def measure() -> list[Figure]:
    """Every figure a script can find."""
    code, tests = modules(SOURCE), modules(TESTS)
    lines, test_lines = sum(m.lines for m in code), sum(m.lines for m in tests)
    pure = [m for m in code if m.path.relative_to(SOURCE).parts[0] in ("model", "text", "core")]
    lengths = functions(code)
    long = sorted((length, name) for length, name in lengths if length > FUNCTION_MAX)
    longest = f" ({', '.join(f'{name} {length}' for length, name in reversed(long))})" if long else ""
    count, exceptions, kept = contracts()
    impure = len(nodes(pure, lambda n: isinstance(n, ast.AsyncFunctionDef | ast.Await)))
    escapes = len(nodes(pure, names("Any", "cast"))) + ignores(pure)
    undocumented = [m.path for m in code if not ast.get_docstring(m.tree)]
    said, named = sentences(tests)
    refused = refused_words()
    promises = sum(len(re.findall(r"\b(?:TODO|FIXME|XXX)\b", m.text)) for m in code)
    sizes = commit_sizes()
    with_body, commits = bodies()
    # The engine contract cancels appends by hand, so the test kit is not held to the rule about tasks.
    runtime = [m for m in code if m.path.relative_to(SOURCE).parts[0] != "testing"]
    free = len(nodes(runtime, calls("create_task", "ensure_future")))
    sleeping = [node for _, node in nodes(tests, calls("sleep")) if not yields(node)]
    mocks = len(nodes(tests, names("mock", "Mock", "MagicMock", "AsyncMock", "monkeypatch", "mocker")))
    return [
        Figure(0, "source: modules, lines", f"{len(code)}, {lines}", "", True),
        Figure(0, "tests: modules, lines", f"{len(tests)}, {test_lines}", "", True),
        Figure(0, "tests to source", f"{test_lines / max(lines, 1):.2f}", "", True),
        walk(code),
        *sized(2, "lines of a file", [(m.lines, str(m.path.relative_to(SOURCE))) for m in code], (100, 250, 400)),
        *sized(3, "lines of a function", lengths, (9, 25, 60)),
        Figure(3, f"functions over {FUNCTION_MAX} lines", f"{len(long)} of {len(lengths)}{longest}", "0", not long),
        Figure(4, "contracts", f"{count}, {'kept' if kept else 'BROKEN'}", "all kept", kept),
        Figure(4, "exceptions to contracts", str(exceptions), "0", exceptions == 0),
        Figure(6, "waiting in model and core", str(impure), "0", impure == 0),
        branching(code),
        Figure(7, "refused words in the source", str(refused), "0", refused == 0),
        Figure(8, "TODO, FIXME, XXX", str(promises), "0", promises == 0),
        Figure(8, "modules without a docstring", str(len(undocumented)), "0", not undocumented),
        per_thousand(9, "except Exception", len(nodes(code, is_broad_except)), lines, 0.3),
        Figure(10, "free tasks", str(free), "0", free == 0),
        per_thousand(11, "Any", len(nodes(code, names("Any"))), lines, 1),
        per_thousand(11, "type: ignore", ignores(code), lines, 0.2),
        per_thousand(11, "cast", len(nodes(code, calls("cast"))), lines, 0.2),
        Figure(11, "Any, cast, ignore in model and core", str(escapes), "0", escapes == 0),
        Figure(12, "test names that are sentences", f"{said} of {named}", "all", said == named),
        Figure(12, "mocks and patches in tests", str(mocks), "0", mocks == 0),
        Figure(12, "sleeps in tests", str(len(sleeping)), "0", not sleeping),
        Figure(13, "promises of an engine that are tests", str(contract_tests(code)), "", True),
        Figure(14, "guides that are executed", str(len(list((ROOT / "docs/guides").glob("add-*.md")))), "", True),
        Figure(14, "decision records", str(len(list((ROOT / "docs/adr").glob("0*.md")))), "", True),
        Figure(
            15,
            "changed lines of a commit, median",
            str(round(median(sizes or [0]))),
            "≤ 150",
            median(sizes or [0]) <= 150,
        ),
        Figure(15, "commits with a body", f"{with_body} of {commits}", "all", with_body == commits),
    ]


def yields(node: ast.AST) -> bool:
    """Whether a call is ``sleep(0)``, which only lets others run."""
    return isinstance(node, ast.Call) and [ast.unparse(argument) for argument in node.args] == ["0"]


def ignores(code: list[Module]) -> int:
    """Comments that silence the type checker."""
    return sum(len(re.findall(r"#\s*type:\s*ignore", module.text)) for module in code)


def table(figures: list[Figure]) -> str:
    """The figures as Markdown."""
    rows = [f"| {f.row or ''} | {f.name} | {f.value} | {f.bar} | {verdict(f)} |" for f in figures]
    return "\n".join(["| # | Figure | Ours | Bar | Met |", "|---|---|---|---|---|", *rows])


def verdict(figure: Figure) -> str:
    """Whether the bar is met, where there is one."""
    return ("yes" if figure.met else "**no**") if figure.bar else ""


def fill(page: str, figures: list[Figure]) -> str:
    """The page with the figures in their places."""
    page = re.sub(
        r"(<!-- measured -->\n).*?(<!-- /measured -->)",
        lambda found: f"{found[1]}{table(figures)}\n{found[2]}",
        page,
        flags=re.DOTALL,
    )
    missed = "\n".join(f"- row {f.row}, {f.name}: {f.value}; the bar is {f.bar}" for f in figures if not f.met)
    page = re.sub(
        r"(<!-- missed -->\n).*?(<!-- /missed -->)",
        lambda found: f"{found[1]}{missed or 'Nothing.'}\n{found[2]}",
        page,
        flags=re.DOTALL,
    )
    lines = page.split("\n")
    for number, line in enumerate(lines):
        cells = line.split(" | ")
        if not (row := re.match(r"\| (\d+) \| \*\*", line)) or len(cells) != 8:
            continue
        ours = [f"{f.name} {f.value}" for f in figures if f.row == int(row[1])]
        if ours:
            cells[5] = "; ".join(ours)
        lines[number] = " | ".join(cells)
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the figures; with ``--write``, put them into the page too."""
    figures = measure()
    print(table(figures))
    if "--write" in arguments:
        PAGE.write_text(fill(PAGE.read_text("utf-8"), figures), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
