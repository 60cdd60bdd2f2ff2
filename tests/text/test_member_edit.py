"""One member of a configuration text is set or removed, and everything else stays as it was written."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text import jsonc
from turnkeeper.text.member_edit import with_jsonc_member, without_jsonc_member
from turnkeeper.text.toml_edit import with_toml_member, with_toml_table, without_toml_member, without_toml_table

SEA = ("mcp", "sea")
GIVEN = {"command": ["tides"], "environment": {"A b": "{env:X}"}}
WRITTEN = '{"command": ["tides"], "environment": {"A b": "{env:X}"}}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "model": "a/b"\n}\n'),
        ("{}", '{\n  "model": "a/b"\n}'),
        ("{\n}\n", '{\n  "model": "a/b"\n}\n'),
        ("{\n  // mine\n}\n", '{\n  "model": "a/b"\n  // mine\n}\n'),
        ('{"x": 1}', '{"model": "a/b", "x": 1}'),
        ('{\n\t"x": 1, // why\n}', '{\n\t"model": "a/b",\n\t"x": 1, // why\n}'),
        ('{ // first\n  "x": [1,],\n}', '{\n  "model": "a/b", // first\n  "x": [1,],\n}'),
        ('{"x": 1, /* old */ "model": "c/d" /* was */, }', '{"x": 1, /* old */ "model": "a/b" /* was */, }'),
        ('{"y": {"model": "c/d"}}', '{"model": "a/b", "y": {"model": "c/d"}}'),
        ('{\r\n  "x": 1\r\n}', '{\r\n  "model": "a/b",\r\n  "x": 1\r\n}'),
        ('\ufeff{"x": 1}', '\ufeff{"model": "a/b", "x": 1}'),
        ('{"model": "c/d", "model": "e/f"}', None),
        ('{"port": {env:PORT}, "x": 1}', None),
        ('{"x": 1} {', None),
        ("[1]", None),
        ("{", None),
    ],
)
def test_a_member_of_a_jsonc_text_is_set(before: str, after: str | None) -> None:
    assert with_jsonc_member(before, ["model"], "a/b") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"model": "c/d"}', "{}"),
        ('{"model": "c/d", "x": 1}', '{ "x": 1}'),
        ('{"x": 1, "model": "c/d"}', '{"x": 1 }'),
        ('{\n  "x": 1, // why\n  "model": "c/d"\n}\n', '{\n  "x": 1 // why\n}\n'),
        ('{\n  "model": "c/d",\n  // next\n  "x": 1\n}\n', '{\n  // next\n  "x": 1\n}\n'),
        ('{\n  "x": 1,\n  "model": "c/d",\n}\n', '{\n  "x": 1,\n}\n'),
        ('{\n  "model": "c/d" // mine\n  , "x": 1\n}', '{\n  // mine\n   "x": 1\n}'),
        ('{"x": 1}', '{"x": 1}'),
        ('{"model": "c/d", "model": "e/f"}', None),
        ("[1]", None),
    ],
)
def test_a_member_of_a_jsonc_text_is_removed(before: str, after: str | None) -> None:
    assert without_jsonc_member(before, ["model"]) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'model = "a/b"\n'),
        ("# mine\n[agent.x]\nmodel = 'c/d'\n", "model = \"a/b\"\n# mine\n[agent.x]\nmodel = 'c/d'\n"),
        ("x = 1\nmodel = 'c/d' # why\n[agent.x]\n", 'x = 1\nmodel = "a/b" # why\n[agent.x]\n'),
        ('model = "c/d"\r\nx = 1\r\n', 'model = "a/b"\r\nx = 1\r\n'),
        ('"model" = "c/d"\n', None),
        ('model = """c/d"""\n', None),
        ("model = ", None),
    ],
)
def test_a_key_of_a_toml_text_is_set(before: str, after: str | None) -> None:
    assert with_toml_member(before, "model", "a/b") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model = 'c/d' # why\n[agent.x]\nmodel = 'e/f'\n", "[agent.x]\nmodel = 'e/f'\n"),
        ("[agent.x]\nmodel = 'e/f'\n", "[agent.x]\nmodel = 'e/f'\n"),
        ('"model" = "c/d"\n', None),
        ("model = ", None),
    ],
)
def test_a_key_of_a_toml_text_is_removed(before: str, after: str | None) -> None:
    assert without_toml_member(before, "model") == after


SETTINGS = st.dictionaries(
    st.sampled_from(["model", "x", "y", "//", "a,b", "{"]),
    st.one_of(st.text(max_size=6), st.integers(), st.lists(st.text(max_size=3), max_size=2)),
)


@given(SETTINGS, st.sampled_from([None, 1, 4]), st.text(max_size=8))
def test_what_is_set_can_be_read_and_removed_again(given_: dict[str, object], indent: int | None, value: str) -> None:
    text = json.dumps(given_, indent=indent)
    edited = with_jsonc_member(text, ["model"], value)
    assert edited is not None
    assert jsonc.parse(edited) == {**given_, "model": value}
    removed = without_jsonc_member(edited, ["model"])
    assert removed is not None
    assert jsonc.parse(removed) == {key: one for key, one in given_.items() if key != "model"}


@given(st.text(alphabet="{}[]\"model:=, \n/*#'", max_size=30))
def test_a_text_of_any_kind_is_edited_rightly_or_refused(text: str) -> None:
    edited = with_jsonc_member(text, ["model"], "a/b")
    if edited is not None:
        found = jsonc.parse(edited)
        assert isinstance(found, dict)
        assert found["model"] == "a/b"
    written = with_toml_member(text, "model", "a/b")
    if written is not None:
        assert tomllib.loads(written.replace("\r\n", "\n"))["model"] == "a/b"
    without_jsonc_member(text, ["model"])
    without_toml_member(text, "model")
    without_toml_table(text, SEA)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f'{{\n  "mcp": {{\n    "sea": {WRITTEN}\n  }}\n}}\n'),
        ('{\n  // mine\n  "x": 1\n}\n', f'{{\n  "mcp": {{\n    "sea": {WRITTEN}\n  }},\n  // mine\n  "x": 1\n}}\n'),
        ('{\n  "mcp": {},\n}', f'{{\n  "mcp": {{\n    "sea": {WRITTEN}\n  }},\n}}'),
        (
            '{\n  "mcp": {\n    // old\n    "b": {"url": "x"}, // why\n  }\n}',
            f'{{\n  "mcp": {{\n    "sea": {WRITTEN},\n    // old\n    "b": {{"url": "x"}}, // why\n  }}\n}}',
        ),
        ('{"mcp": {"sea": {"url": "x"}}}', f'{{"mcp": {{"sea": {WRITTEN}}}}}'),
        ('{"mcp": 1}', None),
        ('{"mcp": {}, "mcp": {}}', None),
    ],
)
def test_a_member_below_another_is_set(before: str, after: str | None) -> None:
    assert with_jsonc_member(before, SEA, GIVEN) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "mcp": {\n    "a": 1, // why\n    "sea": 2\n  }\n}', '{\n  "mcp": {\n    "a": 1 // why\n  }\n}'),
        ('{"mcp": {"sea": {}}, "sea": 1}', '{"mcp": {}, "sea": 1}'),
        ('{"mcp": {"b": {}}}', '{"mcp": {"b": {}}}'),
        ('{"x": 1}', '{"x": 1}'),
        ('{"mcp": {"sea": 1, "sea": 2}}', None),
    ],
)
def test_a_member_below_another_is_removed(before: str, after: str | None) -> None:
    assert without_jsonc_member(before, SEA) == after


TABLE = '[mcp.sea]\ncommand = ["tides"]\nenvironment = {"A b" = "{env:X}"}\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", TABLE),
        ("# mine\nx = 1", f"# mine\nx = 1\n\n{TABLE}"),
        ("[mcp.b]\nurl = 'x' # why\n", f"[mcp.b]\nurl = 'x' # why\n\n{TABLE}"),
        ("[mcp.sea]\nurl = 'x'\n", None),
        ("mcp = {}\n", None),
        ("x = ", None),
    ],
)
def test_a_table_of_a_toml_text_is_added(before: str, after: str | None) -> None:
    assert with_toml_table(before, SEA, GIVEN) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TABLE, ""),
        (
            f"x = 1\n\n{TABLE}[mcp.sea.oauth]\nscope = 'a'\n[mcp.b] # b\nurl = 'x'\n",
            "x = 1\n\n[mcp.b] # b\nurl = 'x'\n",
        ),
        ('["mcp"."sea"]\nurl = "x"\n', ""),
        ("[mcp]\nsea = {url = 'x'}\n", None),
        ('[mcp.sea]\nx = """\n[mcp.b]\n"""\n[mcp.c]\n', None),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_a_table_of_a_toml_text_is_removed(before: str, after: str | None) -> None:
    assert without_toml_table(before, SEA) == after
