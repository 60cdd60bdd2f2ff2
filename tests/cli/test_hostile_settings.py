"""Odd files of settings at the command line: no command shows a traceback."""

from typing import Final

import pytest
from workshop import Shop

ODD: Final = {
    "half a character": '{"model": "\\ud800/x", "instructions": ["\\udfff"]}',
    "half a character as a key": '{"agent": {"\\ud800": {"description": "x"}}, "\\udc00": 1}',
    "a long number": '{"compaction": {"reserved": ' + "1" * 5000 + "}}",
    "a zero in a text": '{"model": "a\\u0000b", "shell": "/bin/\\u0000sh", "instructions": ["a\\u0000b"]}',
    "deep agents": '{"agent": {"a": {"options": ' + '{"a":' * 300 + "1" + "}" * 300 + "}}}",
}


@pytest.mark.parametrize("name", ODD)
def test_no_command_shows_a_traceback(shop: Shop, name: str) -> None:
    (shop.project / "opencode.json").write_text(ODD[name])
    commands = ("config show", "config show --origin", "config check --json", "config explain model", "agent list")
    for words in (*commands, "run -m offline/tk-1 hello", "config show --json", "plugin list", "models"):
        run = shop.process(*words.split())
        assert run.returncode in (0, 1, 2), words
        assert "Traceback" not in run.stderr, (words, run.stderr)
