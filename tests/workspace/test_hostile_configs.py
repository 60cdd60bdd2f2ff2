"""Files of settings from anybody: reading one ends, and a mistake is an error that names the file."""

import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pytest

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files
from turnkeeper.workspace.config import load, sources
from turnkeeper.workspace.trust import FilesAtStart

MEGABYTE: Final = 1024 * 1024
DIGITS: Final = "1" * 5000

LARGE: Final = "one large file many times"

JSON: Final[dict[str, str | bytes]] = {
    "nothing but commas and comments": ",/**/x" * (MEGABYTE // 6),
    "commas and comments in an array": "[" + "1,/**/" * (MEGABYTE // 6) + "]",
    "a string of quotes without an end": '"' + '\\"' * (MEGABYTE // 2 - 8),
    "a quote on each line": '"\n' * (MEGABYTE // 2),
    "arrays in arrays": "[" * MEGABYTE,
    "objects in objects": '{"a":' * (MEGABYTE // 5),
    "closed arrays in arrays": '{"model": ' + "[" * 5000 + "]" * 5000 + "}",
    "deep agents": '{"agent": {"a": {"options": ' + '{"a":' * 300 + "1" + "}" * 300 + "}}}",
    "a long number": f'{{"compaction": {{"reserved": {DIGITS}}}}}',
    "a long float": f'{{"agent": {{"build": {{"temperature": {DIGITS}.5}}}}}}',
    "half a character": '{"model": "\\ud800/x", "instructions": ["\\udfff"]}',
    "half a character as a key": '{"agent": {"\\ud800": {"description": "x"}}, "\\udc00": 1}',
    "bytes that are no UTF-8": b'{"model": "\xff\xfe"}',
    "UTF-16": '{"model": "a/b"}'.encode("utf-16"),
    "zero bytes": b"\0" * 4096,
    "a zero in a text": '{"model": "a\\u0000b", "shell": "/bin/\\u0000sh", "instructions": ["a\\u0000b"]}',
    "a thousand keys twice": "{" + ",".join(f'"k{n % 500}": {n}' for n in range(1000)) + "}",
    "a list of everything": "[" + ",".join(["null"] * 100_000) + "]",
    "not an object": '"model"',
    "more than a megabyte": '{"model": "' + "x" * MEGABYTE + '"}',
    "an address of itself": '{"model": "{file:opencode.json}"}',
    "a file that names a pipe": '{"model": "{file:pipe}"}',
    "a file that names a directory": '{"model": "{file:.}"}',
    "a file that names a device": '{"model": "{file:/dev/zero}"}',
    "a reference with a zero": '{"model": "{file:a\\u0000b}"}',
    LARGE: '{"instructions": [' + ",".join(['"{file:large}"'] * 100) + "]}",
    "a reference in a reference": '{"model": "{env:{env:HOME}}"}',
    "a reference that closes the text": '{"model": "{env:QUOTES}"}',
}
TOML: Final[dict[str, str]] = {
    "a long number": f"[compaction]\nreserved = {DIGITS}\n",
    "arrays in arrays": "a = " + "[" * 100_000,
    "tables in tables": "[" + "a." * 5000 + "a]\nb = 1\n",
    "an escape in a key": '"\\U0001F600" = 1\n[agent."\\u0041\\U00000042"]\ndescription = "x"\n',
    "half a character": 'model = "\\ud800"\n',
    LARGE: "instructions = [" + ",".join(['"{file:large}"'] * 100) + "]\n",
}
MARKDOWN: Final[dict[str, str | bytes]] = {
    "a long number": f"---\nsteps: {DIGITS}\n---\nYou work.\n",
    "deep": "---\na: " + "[" * 5000 + "\n---\nx\n",
    "no UTF-8": b"---\ndescription: \xff\n---\n\xfe\n",
}


class Den:
    """A project that is trusted, so that everything in it is looked at."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.project.mkdir()
        os.mkfifo(self.project / "pipe")
        (self.project / "large").write_bytes(b"x" * (MEGABYTE - 8))
        self.environ = {"HOME": str(root), "TURNKEEPER_TRUST": "1", "QUOTES": '"}, {"a'}

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def load(self, path: Path, **environ: str) -> None:
        """Read everything; either it holds, or an error names the file."""
        given = {**self.environ, **environ}
        found = sources(self.project, self.project, given, at_start=FilesAtStart(2**63))
        for source in found:
            assert all(str(path) in told or "_" in told for told in (*source.errors, *source.warnings))
        named = "|".join(re.escape(name) for name in (str(path), *environ))
        errors = [one for source in found for one in source.errors]
        with pytest.raises(Invalid, match=named) if errors else nullcontext():
            load(self.project, self.project, given, at_start=FilesAtStart(2**63))


@pytest.fixture
def den(tmp_path: Path) -> Den:
    return Den(tmp_path.resolve())


@pytest.mark.parametrize("name", JSON)
def test_any_json_is_read_or_refused(den: Den, name: str) -> None:
    den.load(den.put("opencode.json", JSON[name]))


@pytest.mark.parametrize("name", TOML)
def test_any_toml_is_read_or_refused(den: Den, name: str) -> None:
    den.load(den.put(".turnkeeper/config.toml", TOML[name].replace("{file:large}", "{file:../large}")))


@pytest.mark.parametrize("name", MARKDOWN)
def test_any_agent_file_is_read_or_skipped(den: Den, name: str) -> None:
    den.load(den.put(".opencode/agent/a.md", MARKDOWN[name]))


@pytest.mark.parametrize("name", [name for name, text in JSON.items() if isinstance(text, str) and len(text) < 200_000])
@pytest.mark.parametrize("variable", ["OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"])
def test_any_variable_is_read_or_refused(den: Den, name: str, variable: str) -> None:
    text = JSON[name]
    assert isinstance(text, str)
    den.load(den.project, **{variable: text})


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path)


def nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [pipe, loop, nowhere, device, Path.mkdir])
@pytest.mark.parametrize(
    "name", ["opencode.json", ".turnkeeper/config.toml", ".opencode/agent/a.md", ".claude/skills/a"]
)
def test_what_is_no_file_is_refused_and_nothing_waits_for_it(den: Den, make: Callable[[Path], None], name: str) -> None:
    path = den.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    den.load(path)


def test_a_pipe_that_took_the_place_of_a_file_after_the_look_is_not_waited_for(den: Den) -> None:
    with pytest.raises(Invalid, match="not a regular file"):
        files.open_file(den.project / "pipe")


@pytest.mark.parametrize(
    ("name", "text"), [("opencode.json", JSON[LARGE]), ("turnkeeper.toml", TOML[LARGE])], ids=["json", "toml"]
)
def test_settings_do_not_become_larger_than_memory(den: Den, name: str, text: str) -> None:
    path = den.put(name, text)
    with pytest.raises(Invalid, match=rf"{path}: with the files .* more than 16,777,216 characters"):
        load(den.project, den.project, den.environ, at_start=FilesAtStart(2**63))
