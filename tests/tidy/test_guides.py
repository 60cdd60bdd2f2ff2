"""The guides are true: what they add to a copy of the package works, with no other edit."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs/guides").glob("add-*.md"))
FOLLOWED = [*GUIDES, *(ROOT / f"docs/guides/{name}.md" for name in ("tools", "python", "agents", "skills", "mcp"))]
BLOCK = re.compile(r"<!-- (file|change|test|run|prints)(?:: (\S+))? -->\n```\w+\n(.*?)```", re.DOTALL)


class Step(NamedTuple):
    """One marked block of a guide."""

    kind: str
    path: str
    text: str


def steps(guide: str) -> list[Step]:
    return [Step(kind, path, text) for kind, path, text in BLOCK.findall(guide)]


def changed(before: str, diff: str) -> str:
    """A text after a diff without line numbers; each hunk must fit one place."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines()
        old = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
        new = "\n".join(line[1:] for line in lines if line[:1] in (" ", "+"))
        assert before.count(old) == 1, f"the guide changes what is not there once: {old!r}"
        before = before.replace(old, new)
    return before


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package, in a place of its own."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "work").mkdir()
    return tmp_path


def python(house: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    environment = {**kept, "HOME": str(house), "PYTHONPATH": str(house / "src")}
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, cwd=house / "work", env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("guide", FOLLOWED, ids=lambda guide: guide.stem)
def test_a_guide_followed_word_for_word_works(guide: Path, house: Path) -> None:
    printed = ""
    for step in steps(guide.read_text("utf-8")):
        target = house / step.path
        match step.kind:
            case "file":
                assert not target.exists()
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(step.text)
            case "change":
                target.write_text(changed(target.read_text("utf-8"), step.text))
            case "test":
                target.parent.mkdir(exist_ok=True)
                target.write_text(step.text)
                run = python(house, "-m", "pytest", "-q", "--rootdir", str(house), str(target))
                assert run.returncode == 0, run.stdout
            case "run":
                run = python(house, "-c", step.text)
                assert run.returncode == 0, run.stderr
                assert run.stderr == ""
                printed = run.stdout
            case "prints":
                assert printed == step.text


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_adds_one_module_changes_one_and_shows_what_comes_of_it(guide: Path) -> None:
    found = steps(guide.read_text("utf-8"))
    modules = [step.path for step in found if step.kind == "file" and step.path.endswith(".py")]
    assert (len(modules), [step.kind for step in found if step.kind in ("change", "run", "prints")]) == (
        1,
        ["change", "run", "prints"],
    )


def test_the_copy_is_what_runs(house: Path) -> None:
    run = python(house, "-c", "import turnkeeper; print(turnkeeper.__file__)")
    assert run.stdout == f"{house / 'src/turnkeeper/__init__.py'}\n"


def test_without_its_line_in_the_table_the_thing_is_not_there(house: Path) -> None:
    guide = steps((ROOT / "docs/guides/add-an-engine.md").read_text("utf-8"))
    for step in guide:
        if step.kind == "file" and step.path.endswith(".py"):
            (house / step.path).write_text(step.text)
    [code] = [step.text for step in guide if step.kind == "run"]
    assert "cannot tell which store 'tally:here' is" in python(house, "-c", code).stderr


PUBLIC = {"turnkeeper", "turnkeeper.testing", "turnkeeper.client", "turnkeeper.server"}
"""What programs import. The guides that add to the package itself, ``add-*``, show its inner modules."""
IMPORTED = re.compile(r"^\s*(?:from|import) (turnkeeper[\w.]*)", re.MULTILINE)
USED = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page not in GUIDES and "adr" not in page.parts]


def test_what_the_guides_use_is_imported_from_public_modules() -> None:
    shown = {page.name: "\n".join(SHOWN.findall(page.read_text("utf-8"))) for page in USED}
    deep = {name: sorted({*IMPORTED.findall(text)} - PUBLIC) for name, text in shown.items()}
    assert {name: found for name, found in deep.items() if found} == {}


PAGES = [ROOT / "docs/guides/server.md", ROOT / "docs/reference/python.md"]
SIGNATURE = re.compile(r"(await )?(tk|script|turnkeeper(\.testing)?)\.")
SHOWN = re.compile(r"```python\n(.*?)```", re.DOTALL)
GIVEN = """\
from turnkeeper.api import Turnkeeper
from turnkeeper.client import Client
from turnkeeper.model.session import Session
"""


def as_program(shown: str) -> str:
    """An example that goes on from where another one ended, as a program: what it uses is given to it."""
    imports = "".join(line for line in shown.splitlines(keepends=True) if line.startswith(("from ", "import ")))
    rest = "".join(line for line in shown.splitlines(keepends=True) if not line.startswith(("from ", "import ")))
    body = textwrap.indent(rest, "    ")
    return f"{GIVEN}{imports}\n\nasync def main(client: Client, tk: Turnkeeper, session: Session) -> None:\n{body}"


def examples() -> dict[str, str]:
    """The programs of the guides, and what pages show that is not a signature."""
    found: dict[str, str] = {}
    for guide in FOLLOWED:
        for step in steps(guide.read_text("utf-8")):
            if step.kind == "run":
                found[f"{guide.stem}_{len(found)}"] = step.text
            elif step.path.startswith("work/"):
                found[f"{guide.stem}_{Path(step.path).stem}"] = step.text
    for page in PAGES:
        shown = [one for one in SHOWN.findall(page.read_text("utf-8")) if not SIGNATURE.match(one)]
        found |= {f"{page.stem}_{number}": as_program(one) for number, one in enumerate(shown, 1)}
    return found


def test_what_the_guides_show_passes_a_strict_type_checker(tmp_path: Path) -> None:
    for name, text in examples().items():
        (tmp_path / f"{name.replace('-', '_')}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    names = sorted(str(path) for path in tmp_path.glob("*.py"))
    run = subprocess.run([*command, *names], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == f"Success: no issues found in {len(names)} source files\n"


def test_an_application_in_memory_is_made_as_the_guide_says(house: Path) -> None:
    [shown] = [one for one in SHOWN.findall(PAGES[0].read_text("utf-8")) if "Client.in_memory" in one]
    given = "None, None, None"  # The example makes all that it uses.
    run = python(house, "-c", f"{as_program(shown)}\nimport anyio\nanyio.run(main, {given})")
    assert (run.stdout, run.stderr) == ("Wind over the bay\n", "")


@pytest.mark.parametrize("diff", [" no such line\n+new\n", " same\n+new\n"])
def test_a_change_that_fits_no_place_or_two_is_refused(diff: str) -> None:
    with pytest.raises(AssertionError, match="not there once"):
        changed("same\nother\nsame\n", diff)
