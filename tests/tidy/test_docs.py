"""The checker of documents finds what it is there to find. What it finds in the project fails ``make check``."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

RECORD = "# 1. A choice\n\n## Context\n\nWhy.\n\n## Decision\n\nWhat.\n\n## Consequence\n\nSo.\n"
GLOSSARY = (
    "| Word | Usual term | Meaning | Avoid |\n|---|---|---|---|\n"
    "| **Log** | event log | a session's events | `event store`, stream |\n"
)
TREE = """\
# Layers

Add `store/engines/<name>.py`; `core/notify.py` says what is told.

```text
turnkeeper/
  app.py             together with journal.py
  model/             words
    event.py
  core/
    notify.py        told

  cli/               commands
    server/          and more
```
"""
COMMANDS = """
from cyclopts import App

app = App()
session = App(name="session")
app.command(session)
session.command(lambda: None, name="list")
session.command(lambda: None, name="load")
app.command(lambda: None, name="doctor")
"""
EVENTS = "class SessionCreated: ...\nclass PartRecorded: ...\nEvent = SessionCreated | PartRecorded\n"

Write = Callable[[str, str], Path]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "scripts/check_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_docs = load()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project whose documents are in order."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for name in check_docs.STANDING:
        (tmp_path / name).write_text(f"# {name}\n")
    write(tmp_path, "CONTEXT.md", GLOSSARY)
    write(tmp_path, "ARCHITECTURE.md", TREE)
    write(tmp_path, "docs/adr/README.md", "- [A choice](0001-a-choice.md)\n")
    write(tmp_path, "docs/adr/0001-a-choice.md", RECORD)
    for name in ("app.py", "journal.py", "core/notify.py"):
        write(tmp_path, f"src/turnkeeper/{name}", '"""A module."""\n')
    write(tmp_path, "src/turnkeeper/model/event.py", EVENTS)
    write(tmp_path, "docs/reference/events.md", "- `SessionCreated`\n- `PartRecorded`\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def problems(root: Path) -> list[str]:
    return [problem for check in check_docs.CHECKS for problem in check(root)]


def test_documents_in_order_have_no_problem(project: Path) -> None:
    assert problems(project) == []


def test_a_missing_standing_document_is_found(project: Path) -> None:
    (project / "CHANGELOG.md").unlink()
    assert problems(project) == ["CHANGELOG.md: missing"]


def test_a_broken_link_is_found(project: Path) -> None:
    write(project, "README.md", "See [the log](docs/log.md) and ![a picture](docs/picture.svg).\n")
    assert problems(project) == [
        "README.md: broken link docs/log.md",
        "README.md: broken link docs/picture.svg",
    ]


def test_a_link_to_a_missing_heading_is_found(project: Path) -> None:
    write(project, "ARCHITECTURE.md", TREE + "\n## The `append` walk\n\n## The `append` walk\n")
    good = "[a](ARCHITECTURE.md#the-append-walk) [b](ARCHITECTURE.md#the-append-walk-1)"
    write(project, "README.md", f"{good} [c](ARCHITECTURE.md#engines) [d](#nowhere)\n")
    assert problems(project) == [
        "README.md: no such heading ARCHITECTURE.md#engines",
        "README.md: no such heading #nowhere",
    ]


def test_links_in_code_and_to_other_sites_are_left_alone(project: Path) -> None:
    write(project, "README.md", "`[a](b)`\n\n```\n[c](d)\n```\n\n[e](https://example.org/x) [f](mailto:a@b.c)\n")
    assert problems(project) == []


def test_a_decision_record_outside_the_index_is_found(project: Path) -> None:
    write(project, "docs/adr/0002-another.md", RECORD.replace("# 1.", "# 2."))
    assert problems(project) == ["docs/adr/0002-another.md: expected once in docs/adr/README.md, found 0 times"]


@pytest.mark.parametrize("heading", ["## Context", "## Decision", "## Consequence"])
def test_a_decision_record_without_a_heading_is_found(project: Path, heading: str) -> None:
    write(project, "docs/adr/0001-a-choice.md", RECORD.replace(heading, "Text."))
    assert len(problems(project)) == 1
    assert "docs/adr/0001-a-choice.md: expected exactly the headings" in problems(project)[0]


def test_a_gap_in_the_numbers_of_records_is_found(project: Path) -> None:
    (project / "docs/adr/0001-a-choice.md").unlink()
    write(project, "docs/adr/README.md", "- [A choice](0003-a-choice.md)\n")
    write(project, "docs/adr/0003-a-choice.md", RECORD)
    assert problems(project) == ["docs/adr/0003-a-choice.md: expected a name like 0001-title.md"]


def test_a_layer_that_the_architecture_does_not_name_is_found(project: Path) -> None:
    write(project, "src/turnkeeper/client/__init__.py", '"""The client."""\n')
    assert problems(project) == ["ARCHITECTURE.md: client is not named"]


def test_a_module_that_the_architecture_names_and_nobody_wrote_is_found(project: Path) -> None:
    (project / "src/turnkeeper/journal.py").unlink()
    assert problems(project) == ["ARCHITECTURE.md: there is no journal.py"]


def test_a_word_without_a_meaning_is_found(project: Path) -> None:
    write(project, "CONTEXT.md", GLOSSARY + "| **Seq** | number |  | offset |\n")
    assert problems(project) == ["CONTEXT.md: Seq has no meaning"]


def test_a_word_explained_twice_is_found(project: Path) -> None:
    write(project, "CONTEXT.md", GLOSSARY + "| **Log** | log | again | |\n")
    assert problems(project) == ["CONTEXT.md: Log is explained twice"]


def test_a_context_without_glossary_is_found(project: Path) -> None:
    write(project, "CONTEXT.md", "# Words\n")
    assert problems(project) == ["CONTEXT.md: no glossary found"]


def test_a_refused_word_in_the_source_is_found_with_its_line(project: Path) -> None:
    write(project, "src/turnkeeper/journal.py", '"""The log."""\n# An event store.\n')
    assert problems(project) == ["src/turnkeeper/journal.py:2: 'event store'; the word is Log"]


def test_a_name_that_says_nothing_is_found(project: Path) -> None:
    write(project, "src/turnkeeper/journal.py", "class LogManager: ...\n")
    assert problems(project) == ["src/turnkeeper/journal.py:1: 'Manager'; name what it does"]


@pytest.mark.parametrize(
    ("word", "line", "expected"),
    [
        ("Manager", "class SessionManager:", True),
        ("Manager", "class Management:", False),
        ("Manager", "from contextlib import AbstractAsyncContextManager", False),
        ("utils", "from turnkeeper import text_utils", True),
        ("utils", "the ututils", False),
        ("TODO", "x = 1  # TODO: more", True),
        ("TODO", "TODOWRITE = 1; _TODO_MARKS = 2", False),
        ("utils", "from email.utils import parsedate_to_datetime", False),
        ("reducer", "Reducers", False),
        ("reducer", "def my_Reducer(", True),
    ],
)
def test_a_refused_word_is_found_as_a_whole_word_of_a_name(word: str, line: str, *, expected: bool) -> None:
    assert check_docs.occurs(word, line) is expected


@pytest.mark.parametrize("folder", ["work", "root", "home/alice"])
def test_a_path_of_one_machine_is_found(project: Path, folder: str) -> None:
    write(project, "docs/notes.txt", f"line one\ncopied from /{folder}/project\n")
    assert problems(project) == ["docs/notes.txt:2: a path of one machine"]


def test_the_example_user_and_relative_paths_are_no_machine_path(project: Path) -> None:
    write(project, "docs/notes.txt", "/home/user/weather, at/{}/here, ~/{}/x\n".format("work", "root"))
    assert problems(project) == []


def test_a_registry_address_is_found(project: Path) -> None:
    page = "sim" + "ple"
    write(project, "requirements.txt", "--{}-{} https://example.org/{}\n".format("index", "url", page))
    assert problems(project) == ["requirements.txt:1: a registry address"]


def test_an_example_that_runs_a_command_in_the_reader_s_shell_is_found(project: Path) -> None:
    write(
        project,
        "docs/run.md",
        "turnkeeper run 'now `make`'\n" + "turnkeeper run -c {}now run `make`{}\n".format('"', '"'),
    )
    assert problems(project) == ["docs/run.md:2: backticks in double quotes, which the reader's shell runs"]


def test_a_file_that_is_not_text_is_not_looked_into(project: Path) -> None:
    (project / "data.bin").write_bytes(b"\0 /work" + b"/x")
    assert problems(project) == []


def test_an_undocumented_event_is_found(project: Path) -> None:
    write(project, "docs/reference/events.md", "- `SessionCreated`\n- PartRecorded without marks\n")
    assert problems(project) == ["docs/reference/events.md: event `PartRecorded` is not documented"]


def test_a_longer_name_does_not_document_a_shorter_one(project: Path) -> None:
    write(project, "docs/reference/events.md", "- `SessionCreatedTwice`\n- `PartRecorded`\n")
    assert problems(project) == ["docs/reference/events.md: event `SessionCreated` is not documented"]


def test_a_module_of_events_without_the_union_is_found(project: Path) -> None:
    write(project, "src/turnkeeper/model/event.py", "class SessionCreated: ...\n")
    assert len(problems(project)) == 1
    assert "declares no union named Event" in problems(project)[0]


def test_an_undocumented_environment_variable_is_found(project: Path) -> None:
    write(project, "src/turnkeeper/app.py", 'DATA = "TURNKEEPER_DATA"\nSTORE = "TURNKEEPER_STORE"\n')
    write(project, "docs/reference/environment.md", "| `TURNKEEPER_DATA` | where |\n")
    assert problems(project) == [
        "docs/reference/environment.md: environment variable `TURNKEEPER_STORE` is not documented"
    ]


def test_an_undocumented_notification_is_found(project: Path) -> None:
    write(project, "src/turnkeeper/core/notify.py", 'said = ("message.part.updated", "not.one", "session.")\n')
    assert problems(project) == [
        "docs/reference/notifications.md: notification `message.part.updated` is not documented"
    ]


def test_an_undocumented_setting_is_found_by_its_path(project: Path) -> None:
    config = """
class Setting: ...
class Options(Setting):
    key: str | None = field(default=None, name="apiKey")
class Price(Setting):
    input: float
class Provider(Price):
    options: Options = Options()
    own: dict = field(default={}, name="$own")
class Config(Setting):
    model: str
    provider: dict[str, Provider] = {}
"""
    write(project, "src/turnkeeper/model/config.py", config)
    write(project, "docs/reference/config.md", "`model`, `provider` and `provider.*.options`\n")
    assert check_docs.check_references(project) == [
        "docs/reference/config.md: setting `provider.*.input` is not documented",
        "docs/reference/config.md: setting `provider.*.options.apiKey` is not documented",
    ]


def test_a_documented_event_that_is_gone_is_found(project: Path) -> None:
    write(project, "docs/reference/events.md", "| `SessionCreated` | |\n| `PartRecorded` | |\n| `PartLost` | |\n")
    assert problems(project) == ["docs/reference/events.md: there is no event `PartLost`"]


def test_an_undocumented_protocol_is_found(project: Path) -> None:
    table = 'PROVIDERS: Final = {\n    "smoke": _smoke,\n    "flags": _flags,\n}\n'
    write(project, "src/turnkeeper/providers/__init__.py", table)
    write(project, "docs/reference/providers.md", "`smoke`\n")
    assert check_docs.check_references(project) == ["docs/reference/providers.md: protocol `flags` is not documented"]


def a_command_line(project: Path, commands: str) -> None:
    for name in ("__init__.py", "cli/__init__.py"):
        write(project, f"src/turnkeeper/{name}", "")
    write(project, "src/turnkeeper/cli/commands.py", commands)
    write(project, "ARCHITECTURE.md", TREE.replace("and more\n", "and more\n    commands.py\n"))


def test_an_undocumented_command_is_found(project: Path) -> None:
    a_command_line(project, COMMANDS)
    write(project, "docs/reference/commands.md", "`turnkeeper session list [--all]` and `doctor`\n")
    assert check_docs.check_references(project) == [
        "docs/reference/commands.md: command `session load` is not documented"
    ]


def test_a_command_line_that_does_not_start_is_found(project: Path) -> None:
    a_command_line(project, "raise ImportError('no cyclopts')\n")
    [problem] = problems(project)
    assert "the program does not list its commands: ImportError: no cyclopts" in problem


def test_a_derived_page_that_differs_from_the_code_is_found(project: Path) -> None:
    write(project, "scripts/reference.py", "print('events.md: differs')\nraise SystemExit(1)\n")
    assert problems(project) == ["events.md: differs"]


def test_a_page_of_commands_that_differs_from_them_is_found(project: Path) -> None:
    write(project, "scripts/command_reference.py", "print('commands.md: differs')\nraise SystemExit(1)\n")
    assert problems(project) == ["commands.md: differs"]


def test_a_writer_of_pages_that_fails_is_found(project: Path) -> None:
    write(project, "scripts/reference.py", "raise ImportError('no such value')\n")
    assert problems(project) == ["ImportError: no such value"]


def test_an_output_that_was_not_pasted_is_found(project: Path) -> None:
    shown = "<!-- output: tk db path -->\n```\nstore.db\n```\n"
    write(project, "README.md", shown + "<!-- output: tk session list -->\n```\n```\n")
    assert problems(project) == ["README.md: the output of 'tk session list' has not been pasted"]


def test_the_checker_exits_with_one_and_prints_the_problem(project: Path) -> None:
    write(project, "README.md", "[gone](gone.md)\n")
    command = [sys.executable, str(ROOT / "scripts/check_docs.py"), str(project)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.splitlines() == ["README.md: broken link gone.md", "documents: 9 checks, 1 problems"]
