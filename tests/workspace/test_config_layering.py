"""Files, hosts, variables and the program are layers: the strongest wins, and is named with its line."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnkeeper.core.provenance import MISSING, at
from turnkeeper.workspace import auth, well_known
from turnkeeper.workspace.auth import WellKnown
from turnkeeper.workspace.config import LoadedSettings, load
from turnkeeper.workspace.trust import FilesAtStart

HOST: Final = "https://harbour.example"


class Scene:
    """A home, a project in a worktree, and what the environment and the program say."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.top, self.directory = root / "top", root / "top/below"
        self.directory.mkdir(parents=True)
        self.environ = {"HOME": str(root / "home"), "TURNKEEPER_TRUST": "1"}
        self.own = ""

    def file(self, name: str, text: str) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def loaded(self) -> LoadedSettings:
        return load(self.directory, self.top, self.environ, self.own, at_start=FilesAtStart(2**63))


class Layer(NamedTuple):
    """A place for settings: writes them there, and gives the name that the place has in answers."""

    name: str
    write: Callable[[Scene, dict[str, Any]], str]
    has_lines: bool = True


def in_file(name: str) -> Layer:
    return Layer(name, lambda scene, given: scene.file(name, json.dumps(given, indent=1)))


def in_variable(name: str) -> Layer:
    def write(scene: Scene, given: dict[str, Any]) -> str:
        scene.environ[name] = json.dumps(given, indent=1)
        return name

    return Layer(name, write)


def named(variable: str, name: str, place: str) -> Layer:
    def write(scene: Scene, given: dict[str, Any]) -> str:
        where = scene.file(name, json.dumps(given, indent=1))
        scene.environ[variable] = str(scene.root / place)
        return where

    return Layer(variable, write)


def at_host(scene: Scene, given: dict[str, Any]) -> str:
    auth.file(scene.environ).write(HOST, WellKnown(key="T", token="t"))
    well_known.file(scene.environ).change(lambda before: {HOST: given})
    return f"{HOST}{well_known.PATH}"


def by_program(scene: Scene, given: dict[str, Any]) -> str:
    scene.own = json.dumps(given)
    return "the config of the program"


LAYERS: Final = (
    in_file("home/.config/opencode/config.json"),
    in_file("home/.config/opencode/opencode.json"),
    in_file("home/.config/opencode/opencode.jsonc"),
    in_file("home/.config/turnkeeper/config.json"),
    in_file("home/.config/turnkeeper/turnkeeper.json"),
    Layer("host", at_host, has_lines=False),
    in_file("top/opencode.json"),
    in_file("top/turnkeeper.jsonc"),
    in_file("top/below/opencode.json"),
    in_file("top/.opencode/opencode.json"),
    in_file("top/.turnkeeper/turnkeeper.json"),
    in_file("top/below/.opencode/opencode.jsonc"),
    in_file("top/below/.turnkeeper/turnkeeper.json"),
    named("OPENCODE_CONFIG_DIR", "named/turnkeeper.json", "named"),
    named("OPENCODE_CONFIG", "one.json", "one.json"),
    named("TURNKEEPER_CONFIG", "two.json", "two.json"),
    in_variable("OPENCODE_CONFIG_CONTENT"),
    in_variable("TURNKEEPER_CONFIG_CONTENT"),
    Layer("program", by_program, has_lines=False),
)
"""Weakest first, as the page about configuration says."""

NAMES: Final = st.sampled_from(["a", "b", "c"])
GIVEN: Final = st.fixed_dictionaries(
    {},
    optional={
        "model": NAMES.map(lambda name: f"p/{name}"),
        "default_agent": st.just("build"),
        "compaction": st.fixed_dictionaries({}, optional={"auto": st.booleans(), "reserved": st.integers(0, 9)}),
        "permission": st.dictionaries(
            st.sampled_from(["bash", "edit", "read"]),
            st.sampled_from(["ask", "allow", "deny"]) | st.dictionaries(NAMES, st.just("ask"), min_size=1),
            max_size=3,
        ),
        "instructions": st.lists(NAMES, max_size=2, unique=True),
        "agent": st.dictionaries(NAMES, st.fixed_dictionaries({"description": NAMES}), max_size=2),
    },
)
CHOSEN: Final = st.dictionaries(st.integers(0, len(LAYERS) - 1), GIVEN, max_size=6)


def flat(tree: object, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every path to a value that is no object with members."""
    if not isinstance(tree, dict) or not tree:
        return [above] if above else []
    return [path for key, value in tree.items() for path in flat(value, (*above, key))]


def line_of(text: str, path: tuple[str, ...]) -> int:
    """The line of a key in JSON with one key a line."""
    lines, depth, found = text.splitlines(), 1, 0
    for key in path:
        found = next(n for n in range(found, len(lines)) if lines[n].startswith(f'{" " * depth}"{key}":'))
        depth += 1
    return found + 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CHOSEN)
def test_the_strongest_layer_wins_and_is_named_with_its_line(chosen: dict[int, dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        scene = Scene(Path(root).resolve())
        places = {number: LAYERS[number].write(scene, chosen[number]) for number in sorted(chosen, reverse=True)}
        loaded = scene.loaded()
        assert [source.where for source in loaded.sources] == [places[number] for number in sorted(chosen)]
        for path in flat(loaded.merged):
            if path == ("instructions",):
                lists = [chosen[n].get("instructions", []) for n in sorted(chosen)]
                assert loaded.merged["instructions"] == list(dict.fromkeys(one for some in lists for one in some))
                continue
            setting = [n for n in sorted(chosen) if at(chosen[n], path) is not MISSING]
            assert at(loaded.merged, path) == at(chosen[setting[-1]], path)
            source = loaded.setting_sources(*path)[-1]
            assert source.where == places[setting[-1]]
            if LAYERS[setting[-1]].has_lines:
                text = json.dumps(chosen[setting[-1]], indent=1)
                assert source.place(path).startswith(f"{source.where}:{line_of(text, path)}:")
