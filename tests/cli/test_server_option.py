"""Which commands offer --server in their help: those that can use one."""

import pytest
from workshop import Shop


@pytest.mark.parametrize(
    "words",
    [
        ("session", "search", "wind"),
        ("session", "recall", "ROOT", "r0123456789"),
        ("session", "context", "ROOT"),
        ("session", "log", "ROOT"),
        ("session", "move", "ROOT", "."),
        ("session", "resume", "ROOT"),
        ("session", "recover"),
        ("session", "export", "ROOT"),
        ("session", "import", "file.json"),
        ("session", "blame", "README.md"),
        ("stats",),
        ("doctor",),
        ("db", "path"),
        ("snapshot", "gc"),
        ("agent", "list"),
        ("command", "list"),
        ("skill", "list"),
        ("mcp", "list"),
        ("models",),
        ("auth", "list"),
        ("config", "show"),
        ("trust", "--list"),
    ],
    ids=" ".join,
)
def test_a_command_that_refuses_a_server_does_not_offer_it(words: tuple[str, ...], shop: Shop) -> None:
    run = shop.process(*words, "--server", "http://127.0.0.1:9")
    assert run.returncode == 2
    assert "needs a store" in run.stderr
    named = words[:1] if words[0] in ("stats", "doctor", "models", "trust") else words[:2]
    shown = shop.process(*named, "--help").stdout
    assert ("--store" in shown, "--server" in shown) == (True, False)


@pytest.mark.parametrize(
    "words",
    [("run",), ("chat",), ("session", "list"), ("session", "undo"), ("permission", "allow"), ("plugin", "list")],
)
def test_a_command_that_can_use_a_server_offers_it(words: tuple[str, ...], shop: Shop) -> None:
    assert "--server" in shop.process(*words, "--help").stdout
