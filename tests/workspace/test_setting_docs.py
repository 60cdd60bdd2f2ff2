"""Every setting is documented where it is defined, and its example is one that can be loaded."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from turnkeeper.core import provenance
from turnkeeper.core.setting_checks import sifted
from turnkeeper.workspace.config import load
from turnkeeper.workspace.setting_docs import SettingDoc, schema, setting_docs

ROOT = Path(__file__).resolve().parents[2]
DOCS = setting_docs()


def test_the_pages_and_the_schema_are_what_the_code_says() -> None:
    script = [sys.executable, str(ROOT / "scripts/config_reference.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.key)
def test_an_example_is_loaded_and_holds(doc: SettingDoc, tmp_path: Path) -> None:
    assert doc.doc.meaning, "the text below the field says what it means"
    assert doc.example is not None, "a type that suggests no example needs `Example: ...` below the field"
    home = tmp_path / ".config/turnkeeper"
    home.mkdir(parents=True)
    (home / "turnkeeper.json").write_text(json.dumps(doc.document))
    loaded = load(tmp_path, tmp_path, {"HOME": str(tmp_path), "LOCAL_KEY": "k"})
    assert loaded.warnings == []
    assert sifted(doc.document).settings != {}
    assert list(provenance.origins([loaded.merged], loaded.merged)) != [] or doc.example in ({}, [])
    jsonschema_rs.validate(schema(), doc.document)


@pytest.mark.parametrize(
    "wrong", [{"model": 7}, {"compaction": {"auto": "yes"}}, {"permission": {"bash": "never"}}, {"recovery": "none"}]
)
def test_the_schema_refuses_what_the_program_refuses(wrong: dict[str, object]) -> None:
    assert sifted(wrong).problems != ()
    assert not jsonschema_rs.is_valid(schema(), wrong)


def test_the_schema_allows_settings_of_opencode_and_describes_ours() -> None:
    made = schema()
    assert jsonschema_rs.is_valid(made, {"$schema": "x", "theme": "dark", "keybinds": {"a": "b"}, "mcp": {}})
    config = made["$defs"]["Config"]["properties"]  # type: ignore[index]  # It was just made.
    assert all("description" in one for one in config.values())
    assert not any(name.startswith("$") for name in config if name != "$schema")


def test_the_keys_of_settings_are_unique() -> None:
    keys = [doc.key for doc in DOCS]
    assert len(keys) == len(set(keys)) > 100
