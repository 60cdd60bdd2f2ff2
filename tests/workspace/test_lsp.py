"""Language servers: new errors are found; a server that is missing, hung or broken costs nothing but a short wait."""

import os
import sys
from itertools import count
from pathlib import Path

import anyio
import pytest
from confined import needs_kernel
from desk import Desk

from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.config import LspConfig
from turnkeeper.tools.services import ToolServices
from turnkeeper.workspace.after_edit import Confine, Diagnostic
from turnkeeper.workspace.language_server import OPEN_MAX
from turnkeeper.workspace.lsp import LanguageServers
from turnkeeper.workspace.lsp_commands import BUILT_IN, ServerCommand, configured

SERVER = Path(__file__).parents[1] / "support/language_server.py"
ENVIRON = dict(os.environ)


def unconfined() -> None:
    """There is no sandbox."""


def command(manner: str, *more: str) -> ServerCommand:
    return ServerCommand(manner, (sys.executable, str(SERVER), manner, *more), (".x",))


async def errors(
    servers: LanguageServers, manner: str, path: Path, before: str | None, after: str, *more: str
) -> list[tuple[int, int, str]]:
    found = await servers.diagnose([command(manner, *more)], path.parent, ENVIRON, path, before, after, unconfined)
    return [(one.line, one.character, one.message) for one in found]


@pytest.mark.parametrize("manner", ["publish", "twice", "asks", "stubborn"])
async def test_the_errors_that_an_edit_brings_are_told_and_no_others(manner: str, tmp_path: Path) -> None:
    path = tmp_path / "a.x"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        assert await errors(servers, manner, path, "old BAD\n", "new\n  BAD\nold BAD\n") == [(2, 3, "BAD is bad")]
        assert await errors(servers, manner, path, "", "x\n  BAD\nold BAD\nold BAD\n") == [(4, 5, "old BAD is bad")]
        assert await errors(servers, manner, path, "", "fine\n") == []
        assert await errors(servers, manner, tmp_path / "b.x", None, "BAD\n") == [(1, 1, "BAD is bad")]
        assert await errors(servers, manner, tmp_path / "b.y", None, "BAD\n") == []
        group.cancel_scope.cancel()


async def test_one_server_serves_a_root_and_ends_with_its_task_group(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        for name in ("a.x", "b.x"):
            await errors(servers, "publish", tmp_path / name, "", "BAD", str(record))
        group.cancel_scope.cancel()
    assert record.read_text().split().count("initialize") == 1
    assert not _children()


@needs_kernel
async def test_a_server_is_shared_only_by_sessions_that_are_refused_the_same(tmp_path: Path) -> None:
    record = tmp_path / "record"
    server = [command("publish", str(record))]
    wide = Confinement(mode="workspace", write=(str(tmp_path),), devices=("/dev/null",))
    narrow = wide.but(hidden=(str(tmp_path / "private"),))
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        for confined in (wide, wide.but(write=("/",)), narrow, wide):
            path = tmp_path / "a.x"
            await servers.diagnose(server, tmp_path, ENVIRON, path, None, "BAD", confined.but)
        group.cancel_scope.cancel()
    assert record.read_text().split().count("initialize") == 2


async def test_what_was_read_need_not_be_told_at_the_edit(tmp_path: Path) -> None:
    path, record = tmp_path / "a.x", tmp_path / "record"
    server = [command("publish", str(record))]
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        for text in ("BAD 1\n", "BAD 2\n", "BAD 2\n"):
            await servers.prepare(server, tmp_path, ENVIRON, path, text, unconfined)
        # Without a text from before: only what was read tells which errors are new.
        assert await errors(servers, "publish", path, None, "BAD 2\nBAD 3\n", str(record)) == [(2, 1, "BAD 3 is bad")]
        group.cancel_scope.cancel()
    assert (_heard(record, "textDocument/didOpen"), _heard(record, "textDocument/didChange")) == (1, 2)


async def test_a_server_that_said_nothing_of_what_was_read_is_not_asked_at_the_edit(tmp_path: Path) -> None:
    record = tmp_path / "record"
    server = [command("silent", str(record))]
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=0.2, start_s=60)
        await servers.prepare(server, tmp_path, ENVIRON, tmp_path / "a.x", "fine", unconfined)
        for number in range(4):
            assert await errors(servers, "silent", tmp_path / f"{number}.x", None, "BAD", str(record)) == []
        group.cancel_scope.cancel()
    assert _heard(record, "textDocument/didOpen", "textDocument/didChange") <= 2


async def test_a_server_keeps_a_bounded_number_of_files_open(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        for number in range(OPEN_MAX + 2):
            path = tmp_path / f"{number}.x"
            await servers.prepare([command("publish", str(record))], tmp_path, ENVIRON, path, "BAD 1", unconfined)
        told = await errors(servers, "publish", tmp_path / "0.x", "BAD 1", "BAD 1\nBAD 2", str(record))
        assert told == [(2, 1, "BAD 2 is bad")]
        group.cancel_scope.cancel()
    assert _heard(record, "textDocument/didClose") == 3


def _heard(record: Path, *methods: str) -> int:
    """How often a server was asked. Read after its end: a slow one hears late what it was sent long ago."""
    return sum(line in methods for line in record.read_text().split()) if record.exists() else 0


async def test_a_server_that_does_not_start_costs_one_short_wait_and_then_none(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=600, start_s=0.2)
        with anyio.fail_after(60):
            for _ in range(6):
                assert await errors(servers, "hung", tmp_path / "a.x", None, "BAD") == []
                assert await found(servers, "hung", tmp_path / "a.x", "DEF run\n") == []
        group.cancel_scope.cancel()


@pytest.mark.parametrize("manner", ["silent", "mute"])
async def test_a_server_that_owes_an_answer_is_asked_nothing_more(manner: str, tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=0.2, start_s=60)
        for number in range(3):
            if manner == "silent":
                assert await errors(servers, manner, tmp_path / "a.x", None, f"BAD {number}", str(record)) == []
            assert await found(servers, manner, tmp_path / "a.x", "DEF run\n", str(record)) == []
        group.cancel_scope.cancel()
    assert _heard(record, "textDocument/didOpen", "textDocument/didChange") <= 1


@pytest.mark.parametrize("manner", ["late", "slow"])
async def test_a_server_that_answers_late_is_asked_again(manner: str, tmp_path: Path) -> None:
    gate, path = tmp_path / "gate", tmp_path / "a.x"
    os.mkfifo(gate)
    server = command(manner)._replace(environment=(("GATE", str(gate)),))
    waits = {"timeout_s": 60.0, "start_s": 0.2} if manner == "late" else {"timeout_s": 1.0, "start_s": 60.0}

    async def edited(text: str) -> list[str]:
        told = await servers.diagnose([server], tmp_path, ENVIRON, path, None, text, unconfined)
        return [one.message for one in told]

    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, **waits)
        assert await edited("BAD 0") == []
        with anyio.fail_after(60):
            await anyio.Path(gate).write_bytes(b"")  # Returns when the server reads it.
            for number in count(1):
                if told := await edited(f"BAD {number}"):
                    assert told == [f"BAD {number} is bad"]
                    break
        group.cancel_scope.cancel()


@pytest.mark.parametrize("manner", ["dies", "noise"])
async def test_a_server_that_ends_or_talks_nonsense_is_not_waited_for(manner: str, tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        with anyio.fail_after(30):
            assert await errors(servers, manner, tmp_path / "a.x", None, "BAD") == []
            assert await errors(servers, manner, tmp_path / "a.x", None, "BAD") == []
        group.cancel_scope.cancel()


async def test_without_a_program_or_a_task_group_nothing_is_started(tmp_path: Path) -> None:
    missing = ServerCommand("missing", ("not-there",), (".x",))
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        with anyio.fail_after(30):
            assert await servers.diagnose([missing], tmp_path, ENVIRON, tmp_path / "a.x", None, "BAD", unconfined) == ()
        group.cancel_scope.cancel()
    assert await errors(LanguageServers(None), "publish", tmp_path / "a.x", None, "BAD") == []


async def test_the_model_is_shown_new_errors_after_an_edit(tmp_path: Path) -> None:
    many = tuple(Diagnostic(line=n, character=1, message=f"wrong {n}", whole={"n": n}) for n in range(1, 30))

    async def diagnose(path: Path, before: str | None, after: str, confine: Confine) -> tuple[Diagnostic, ...]:
        assert (path.name, before, after) == ("a.x", None, "one\n")
        return many

    desk = Desk(tmp_path, tmp_path, services=ToolServices(diagnose=diagnose))
    output = await desk.run("write", filePath="a.x", content="one\n")
    lines = output.output.splitlines()
    assert lines[2] == "The change brought these errors, says the language server. Please fix them:"
    assert lines[3:5] == [f'<diagnostics file="{tmp_path / "a.x"}">', "ERROR [1:1] wrong 1"]
    assert (len(lines), lines[-1]) == (25, "</diagnostics>")
    assert output.metadata["diagnostics"] == {str(tmp_path / "a.x"): [{"n": n} for n in range(1, 21)]}


async def test_what_the_model_reads_is_told_to_the_language_server(tmp_path: Path) -> None:
    read = []

    async def prepare(path: Path, confine: Confine) -> None:
        read.append(path.name)

    (tmp_path / "a.x").write_text("one\n")
    desk = Desk(tmp_path, tmp_path, services=ToolServices(prepare=prepare))
    await desk.run("read", filePath="a.x")
    assert read == ["a.x"]


def test_servers_are_used_only_where_they_are_configured_and_installed(tmp_path: Path) -> None:
    for name in ("pylsp", "pyright-langserver", "gopls", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": str(tmp_path)}
    known = {one.name: one for one in BUILT_IN}
    assert configured(None, environ) == configured(False, environ) == ()
    assert configured(True, environ) == (known["pyright"], known["gopls"])
    own = {
        "pyright": LspConfig(disabled=True),
        "gopls": LspConfig(env={"A": "b"}, initialization={"deep": {"x": 1}}),
        "mine": LspConfig(command=("mine", "--stdio"), extensions=(".m",)),
        "useless": LspConfig(command=("mine",)),
        "missing": LspConfig(command=("not-there",), extensions=(".z",)),
    }
    assert configured(own, environ) == (
        known["gopls"]._replace(environment=(("A", "b"),), initialization=b'{"deep":{"x":1}}'),
        ServerCommand("mine", ("mine", "--stdio"), (".m",)),
        known["pylsp"],
    )


def _children() -> list[str]:
    """The language servers below this process."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    found = {child for task in tasks.iterdir() for child in (task / "children").read_text().split()}
    return [one for one in found if b"language_server" in Path("/proc", one, "cmdline").read_bytes()]


async def found(servers: LanguageServers, manner: str, path: Path, text: str, *more: str) -> list[tuple[str, int, int]]:
    told = await servers.symbols([command(manner, *more)], path.parent, ENVIRON, path, text, unconfined)
    return [(one.name, one.first, one.last) for one in told]


async def test_a_server_says_where_symbols_are_in_the_text_of_now(tmp_path: Path) -> None:
    path = tmp_path / "a.x"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        assert await found(servers, "symbols", path, "one\nDEF run\nbody\nDEF stop\nbody\n") == [
            ("run", 2, 3),
            ("stop", 4, 5),
        ]
        assert await found(servers, "symbols", path, "DEF run\n") == [("run", 1, 2)]
        assert await found(servers, "symbols", tmp_path / "a.y", "DEF run\n") == []
        group.cancel_scope.cancel()


async def test_symbols_leave_the_errors_of_a_later_edit_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.x"
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=60, start_s=60)
        for _ in range(2):
            assert await found(servers, "symbols", path, "DEF run\nBAD 1\n") == [("run", 1, 2)]
            assert await errors(servers, "symbols", path, "DEF run\nBAD 1\n", "BAD 1\nBAD 2\n") == [
                (2, 1, "BAD 2 is bad")
            ]
        group.cancel_scope.cancel()


@pytest.mark.parametrize("manner", ["publish", "dies", "noise"])
async def test_a_server_without_symbols_costs_no_wait(manner: str, tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        servers = LanguageServers(group, timeout_s=600, start_s=600)
        with anyio.fail_after(120):
            assert await found(servers, manner, tmp_path / "a.x", "DEF run\n") == []
        group.cancel_scope.cancel()
