"""The plugins of a place: what became of each, and what is left of one that is stopped or removed."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import anyio
import gates
import pytest

from turnkeeper.plugins.hooks import SHELL_ENV
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.payloads import ShellEnvInput, ShellEnvOutput
from turnkeeper.plugins.plugin import Limits
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.workspace.config import load
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.tool_files import ToolTrust

DEADLINE_S: Final = 60
NOW: Final = 1_700_000_000_000


class Workbench:
    """A directory of settings with plugins, and the host that loads them."""

    def __init__(self, root: Path, **limits: float) -> None:
        self.own = root / "own"
        (self.own / "plugins").mkdir(parents=True)
        (root / "project").mkdir()
        self.project = root / "project"
        self.environ = environ = {"HOME": str(root), "TURNKEEPER_CONFIG_DIR": str(self.own)}
        self.told: list[str] = []
        self.host = PluginHost(
            environ,
            ToolTrust(environ),
            tell=lambda directory, session_id, problem: self.told.append(problem),
            limits=Limits(**limits),
            now=lambda: NOW,
        )

    def put(self, name: str, *lines: str) -> Path:
        file = self.own / "plugins" / f"{name}.py"
        body = "\n".join(f"    {line}" for line in lines)
        file.write_text(f"import gates\n\ndef plugin(context, options):\n{body}\n")
        return file

    async def place(self) -> ProjectPlace:
        return await identify(self.project)

    async def plugins(self) -> PluginSet:
        place = await self.place()
        return await self.host.of(place, load(place.directory, place.worktree, self.environ))


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    gates.closed()
    return Workbench(tmp_path.resolve(), load_s=DEADLINE_S, hook_s=DEADLINE_S)


async def in_thread(event: threading.Event) -> None:
    with anyio.fail_after(DEADLINE_S):
        assert await anyio.to_thread.run_sync(event.wait, DEADLINE_S)


async def test_the_status_has_the_last_error_and_how_often_something_failed(bench: Workbench) -> None:
    bench.put("good", "return {'chat.params': print}")
    bench.put("odd", "def config(settings):", "    raise KeyError(settings['username'])", "return {'config': config}")
    found = await bench.plugins()
    for name in ("Ada", "Bea"):
        await found.configured({"username": name})
    good, odd = [one.status for one in found.plugins]
    assert (good.state, good.error, good.failures, good.failed_at, good.stopped) == ("loaded", None, 0, None, ())
    assert (odd.state, odd.error, odd.failures, odd.failed_at) == ("loaded", "config: KeyError: 'Bea'", 2, NOW)
    bench.put("odd", "return {'config': print}")
    assert [one.status.error for one in (await bench.plugins()).plugins] == [None, None]


async def test_the_same_failure_is_told_each_session_once_and_counted_each_time(bench: Workbench) -> None:
    bench.put("odd", "def env(input, output):", "    raise KeyError(input.cwd)", "return {'shell.env': env}")
    found = await bench.plugins()
    for session_id, cwd in (("ses_a", "/x"), ("ses_a", "/x"), ("ses_b", "/x"), ("ses_b", "/x"), ("ses_b", "/y")):
        asked = ShellEnvInput(cwd=cwd, session_id=session_id)
        await found.trigger(SHELL_ENV, asked, ShellEnvOutput(), session_id=session_id)
    assert [words.rpartition("KeyError: ")[2] for words in bench.told] == ["'/x'", "'/x'", "'/y'"]
    assert [one.status.failures for one in found.plugins] == [5]


async def test_settings_of_the_wrong_type_are_the_fault_of_the_plugin_that_made_them(bench: Workbench) -> None:
    bench.put("bad", "def config(settings):", "    settings['permission'] = 5", "return {'config': config}")
    bench.put("good", "def config(settings):", "    settings['username'] = 'Bea'", "return {'config': config}")
    found = await bench.plugins()
    assert [made for _, made in await found.configured({"username": "Ada"})] == [{"username": "Bea"}]
    assert [bool(one.error) for one in found.plugins] == [True, False]
    [told] = bench.told
    assert "the plugin 'bad'" in told
    assert "permission" in told


@pytest.mark.parametrize(
    "line",
    [
        "context.register_agent('sailor', {'mode': 'captain'})",
        "context.register_provider('boat', {'options': 5})",
        "context.register_command('tide', {'description': 'no template'})",
        "context.register_agent(5, {})",
    ],
)
async def test_what_is_registered_with_wrong_settings_fails_its_plugin_and_no_other(
    bench: Workbench, line: str
) -> None:
    bench.put("bad", "context.register_agent('first', {'mode': 'all'})", line)
    bench.put("good", "context.register_agent('second', {'mode': 'all'})")
    found = await bench.plugins()
    assert [one.state for one in found.plugins] == ["failed", "loaded"]
    assert found.contributed.settings("good") == {"agent": {"second": {"mode": "all"}}}
    assert found.contributed.settings("bad") == {}


async def test_others_have_the_earlier_plugins_until_the_new_ones_are_loaded(bench: Workbench) -> None:
    bench.put("first", "return {'chat.params': print}")
    before = await bench.plugins()
    bench.put("second", "gates.entered.set()", f"assert gates.gate.wait({DEADLINE_S})")
    async with anyio.create_task_group() as group:
        group.start_soon(bench.plugins)
        await in_thread(gates.entered)
        assert bench.host.now(bench.project) is before
        gates.gate.set()
    assert [one.name for one in bench.host.now(bench.project).plugins] == ["first", "second"]


async def test_a_plugin_that_was_being_loaded_when_everything_was_stopped_can_be_loaded_again(bench: Workbench) -> None:
    bench.put("kept", "context.register_command('one', 'One')")
    bench.put(
        "slow",
        "context.register_command('two', 'Two')",
        "gates.entered.set()",
        f"assert gates.gate.wait({DEADLINE_S})",
        "context.register_command('three', 'Three')",
    )
    async with anyio.create_task_group() as group:
        group.start_soon(bench.plugins)
        await in_thread(gates.entered)
        group.cancel_scope.cancel()
    gates.gate.set()
    found = await bench.plugins()
    assert [(one.name, one.state, one.error) for one in found.plugins] == [
        ("kept", "loaded", None),
        ("slow", "loaded", None),
    ]
    assert sorted(one.name for one in found.contributed.commands) == ["one", "three", "two"]


async def test_a_plugin_that_took_too_long_registers_nothing_afterwards(tmp_path: Path) -> None:
    gates.closed()
    bench = Workbench(tmp_path.resolve(), load_s=0.2)
    bench.put(
        "slow",
        f"assert gates.gate.wait({DEADLINE_S})",
        "try:",
        "    context.register_command('late', 'Late')",
        "finally:",
        "    gates.entered.set()",
    )
    found = await bench.plugins()
    assert [(one.state, one.status.error) for one in found.plugins] == [
        ("failed", "TimeoutError: it took more than 0.2 s")
    ]
    gates.gate.set()
    await in_thread(gates.entered)
    assert list(found.contributed.commands) == []


BLOCKED: Final = (
    "async def blocks(settings):",
    "    gates.entered.set()",
    f"    gates.gate.wait({DEADLINE_S})",
    "async def goes(settings):",
    "    settings['username'] = 'Bea'",
)


async def test_an_async_hook_that_blocks_holds_up_neither_the_event_loop_nor_other_hooks(tmp_path: Path) -> None:
    gates.closed()
    bench = Workbench(tmp_path.resolve(), load_s=DEADLINE_S, hook_s=0.2)
    bench.put("stuck", *BLOCKED, "return {'config': blocks, 'dispose': blocks}")
    bench.put("works", *BLOCKED, "return {'config': goes}")
    found = await bench.plugins()
    assert [made for _, made in await found.configured({"username": "Ada"})] == [{"username": "Bea"}]
    assert (gates.entered.is_set(), gates.gate.is_set()) == (True, False)
    assert [one.error for one in found.plugins] == ["config: TimeoutError: it took more than 0.2 s", None]
    await bench.host.aclose()
    gates.gate.set()


async def test_async_hooks_of_a_plugin_share_an_event_loop_until_one_blocks_it(tmp_path: Path) -> None:
    gates.closed()
    bench = Workbench(tmp_path.resolve(), load_s=DEADLINE_S, hook_s=1)
    bench.put(
        "loops",
        "import asyncio",
        "loops = []",
        "async def note(input, output):",
        "    loops.append(asyncio.get_running_loop())",
        "    output.env['loops'] = str(len(set(loops)))",
        "async def blocks(settings):",
        f"    gates.gate.wait({DEADLINE_S})",
        "return {'shell.env': note, 'config': blocks}",
    )
    found = await bench.plugins()
    given = ShellEnvInput(cwd="/")
    seen = [(await found.trigger(SHELL_ENV, given, ShellEnvOutput())).output.env for _ in range(2)]
    await found.configured({})
    seen.append((await found.trigger(SHELL_ENV, given, ShellEnvOutput())).output.env)
    assert seen == [{"loops": "1"}, {"loops": "1"}, {"loops": "2"}]
    gates.gate.set()
    await bench.host.aclose()


async def test_tasks_that_a_plugin_has_started_end_with_it(bench: Workbench) -> None:
    bench.put(
        "task",
        "import asyncio",
        "async def forever():",
        "    try:",
        "        await asyncio.Event().wait()",
        "    finally:",
        "        gates.entered.set()",
        "tasks = []",
        "async def config(settings):",
        "    tasks.append(asyncio.create_task(forever()))",
        "    await asyncio.sleep(0)",
        "return {'config': config}",
    )
    await (await bench.plugins()).configured({})
    assert not gates.entered.is_set()
    await bench.host.aclose()
    await in_thread(gates.entered)


PROGRAM: Final = """
import sys, threading
from pathlib import Path
import anyio
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.plugin import Limits
from turnkeeper.workspace.config import load
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.tool_files import ToolTrust

async def main():
    environ = {"HOME": sys.argv[1], "TURNKEEPER_CONFIG_DIR": sys.argv[1]}
    host = PluginHost(environ, ToolTrust(environ), limits=Limits(hook_s=0.2))
    place = await identify(Path(sys.argv[1]))
    found = await host.of(place, load(place.directory, place.worktree, environ))
    print(await found.configured({}), found.plugins[0].error)
    await host.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize("begin", ["def", "async def"])
def test_a_hook_that_never_ends_does_not_keep_the_program_from_ending(tmp_path: Path, begin: str) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/stuck.py").write_text(
        f"import threading\n{begin} config(settings):\n    threading.Event().wait()\n"
        "def plugin(context, options):\n    return {'config': config}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert (done.returncode, done.stdout) == (0, "[] config: TimeoutError: it took more than 0.2 s\n"), done.stderr
