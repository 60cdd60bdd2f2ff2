"""The JSON of commands: one object, a list in it is "items", and names are in camelCase."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from cli_store import Family, api, fill
from command_table import LISTS, OBJECTS, OTHERS, STREAMS, commands, run_all
from workshop import Shop

FREE = {"input", "metadata", "settings", "options", "descriptions"}
"""Values whose names are those of a tool, of a configuration file or of others."""

MORE_LISTS = ("session recall ROOT --query gust", "trust --list", "models --search sonnet")
FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_every_command_is_in_the_table() -> None:
    tables = (LISTS, OBJECTS, STREAMS, OTHERS)
    assert sorted(name for table in tables for name in table) == sorted(one.name for one in commands())


def test_an_answer_is_an_object_and_a_list_is_its_items(shop: Shop) -> None:
    family = prepared(shop)
    is_list = {f"{name} {words}": name in LISTS for name, words in {**OBJECTS, **LISTS}.items()}
    is_list |= dict.fromkeys(MORE_LISTS, True)
    answers = run_all(shop, [f"--json {named(line, family)}" for line in is_list])
    wrong = {
        line: (faults, answer.err)
        for line, answer in zip(is_list, answers, strict=True)
        if (faults := [*found_faults(answer.out, is_list=is_list[line])])
    }
    assert wrong == {}


def test_a_stream_is_an_object_a_line(shop: Shop) -> None:
    family = prepared(shop)
    lines = ["run hello -m offline/tk-1", "session log ROOT"]
    for answer in run_all(shop, [f"--json {named(line, family)}" for line in lines]):
        assert {type(json.loads(line)) for line in answer.out.splitlines()} == {dict}, answer.err


def test_a_failure_is_an_object_on_standard_error(shop: Shop) -> None:
    lines = [
        "session show nothing",
        "session list --limit 0",
        "config edit",
        "chat",
        "demo",
        "export --html - --json",
        "session",
        "",
    ]
    answers = run_all(shop, [f"--json {line}" for line in lines])
    assert [(one.code, one.out) for one in answers] == [(1, ""), *[(2, "")] * 7]
    for one in answers:
        assert list(json.loads(one.err.splitlines()[-1])["error"]) == ["name", "message"]


def prepared(shop: Shop) -> Family:
    """A small store, and files that the commands of the table name."""
    family = api(shop.data, fill)
    skill = shop.project / ".turnkeeper" / "skills" / "tide"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tide\ndescription: Reads tables.\n---\nRead them.\n")
    plugins = shop.project / ".turnkeeper" / "plugins"
    plugins.mkdir()
    (plugins / "quiet.py").write_text("")
    (shop.data / "auth.json").write_text('{"openai": {"type": "api", "key": "sk-none"}}')
    exported, _ = run_all(shop, [f"export {family.root.id}", "session create --store sqlite:copied.db"])
    (shop.project / "exported.json").write_text(exported.out)
    return family


def named(line: str, family: Family) -> str:
    words = {"ROOT": family.root.id, "CHILD": family.child.id, "FIXTURES": str(FIXTURES)}
    for word, meant in words.items():
        line = line.replace(word, meant)
    return line


def found_faults(text: str, *, is_list: bool) -> Iterator[str]:
    """What is wrong with an answer."""
    try:
        value = json.loads(text)
    except ValueError:
        yield f"no JSON: {text[:200]!r}"
        return
    if not isinstance(value, dict):
        yield "no object"
    elif isinstance(value.get("items"), list) is not is_list:
        yield f"items: {list(value)}"
    yield from other_names(value)


def other_names(value: object) -> Iterator[str]:
    """The names in a value that are not in camelCase."""
    if isinstance(value, dict):
        for name, one in value.items():
            if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", name):
                yield name
            if name not in FREE:
                yield from other_names(one)
    elif isinstance(value, list):
        for one in value:
            yield from other_names(one)
