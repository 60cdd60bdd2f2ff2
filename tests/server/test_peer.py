"""Commands of models cannot call the server that runs them; everybody else can, also while they run."""

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio import to_thread
from served import DEADLINE_S
from served_process import Place

from turnkeeper.testing.server import ScriptedServer
from turnkeeper.workspace import shell, socket_owner
from turnkeeper.workspace.guarded import OF_MODELS, ModelCommands

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="owners of sockets are looked up on Linux only")

READ = "curl -sS -m 20 {url}/session"
POST = "curl -sS -m 20 -X POST -H 'content-type: application/json' "
ANSWER = POST + """-d '{{"reply":"always"}}' {url}/permission/per_x/reply"""
SHELL = POST + """-d '{{"agent":"build","command":"touch ../escaped"}}' {url}/session/{session}/shell"""
LEFT_GROUP = """setsid -f sh -c 'sleep 0.1; exec sh attack.sh > work/said 2>&1'
until grep -q . work/said; do sleep 0.01; done; cat work/said"""
OTHER_USER = """exec python3 -c '
import os
attack = open("attack.sh").read()
os.setuid(65534)
os.execvp("sh", ["sh", "-c", attack])
'"""
HIDDEN = """exec python3 -c '
import ctypes, urllib.request, urllib.error
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: others cannot see its descriptors.
given = b"{{\\"agent\\":\\"build\\",\\"command\\":\\"touch ../escaped\\"}}"
kind = {{"content-type": "application/json"}}
try:
    print(urllib.request.urlopen(urllib.request.Request("{url}/session/{session}/shell", given, kind)).read())
except urllib.error.HTTPError as error:
    print(error.read().decode())
'"""


@asynccontextmanager
async def serving(path: Path, **variables: str) -> AsyncIterator[tuple[Path, httpx2.AsyncClient]]:
    with anyio.fail_after(DEADLINE_S):
        async with ScriptedServer() as provider:
            project = path / "project"
            # Commands cannot make files directly in a home, which has our data below it.
            (project / "work").mkdir(parents=True)
            place = Place(project, provider)
            place.configure()
            async with place.serving(**variables) as (_, http):
                yield project, http


async def run_by_model(http: httpx2.AsyncClient, session: str, command: str) -> str:
    """What a command of the model printed."""
    body = {"parts": [{"type": "text", "text": f"[[bash {command}]]"}]}
    (await http.post(f"/session/{session}/message", json=body)).raise_for_status()
    messages = (await http.get(f"/session/{session}/message")).raise_for_status().json()
    [state] = [part["state"] for one in messages for part in one["parts"] if part["type"] == "tool"]
    return str(state.get("output") or state["error"])


async def new_session(http: httpx2.AsyncClient) -> str:
    return str((await http.post("/session")).raise_for_status().json()["id"])


@pytest.mark.parametrize(
    ("attack", "command"),
    [(READ, "sh attack.sh"), (ANSWER, "sh attack.sh"), (SHELL, "sh attack.sh"), (SHELL, "sh left_group.sh")]
    + [(SHELL, "sh other_user.sh")] * (os.getuid() == 0),
)
async def test_a_command_of_a_model_is_refused(tmp_path: Path, attack: str, command: str) -> None:
    async with serving(tmp_path) as (project, http):
        session = await new_session(http)
        (project / "attack.sh").write_text(attack.format(url=str(http.base_url).rstrip("/"), session=session))
        (project / "left_group.sh").write_text(LEFT_GROUP)
        (project / "other_user.sh").write_text(OTHER_USER)
        said = await run_by_model(http, session, command)
        assert "commands that a model runs may not call the server" in said
        assert not (tmp_path / "escaped").exists()


async def test_a_command_that_hides_or_does_not_wait_is_refused_what_changes_something(tmp_path: Path) -> None:
    async with serving(tmp_path) as (project, http):
        session = await new_session(http)
        (project / "attack.sh").write_text(HIDDEN.format(url=str(http.base_url).rstrip("/"), session=session))
        # Root sees descriptors all the same.
        assert "ForbiddenError" in await run_by_model(http, session, "sh attack.sh")
        body = '{"agent":"build","command":"touch ../escaped"}'
        head = f"POST /session/{session}/shell HTTP/1.1\\r\\nhost: localhost\\r\\ncontent-type: application/json\\r\\n"
        text = f"{head}content-length: {len(body)}\\r\\n\\r\\n{body}"
        (project / "attack.sh").write_text(f"printf '{text}' > /dev/tcp/127.0.0.1/{http.base_url.port}")
        await run_by_model(http, await new_session(http), "bash attack.sh")
        # Whatever it sent has been answered by now, because connections are accepted in their order.
        await new_session(http)
        async with httpx2.AsyncClient(base_url=http.base_url, timeout=DEADLINE_S) as other:
            await other.post(f"/api/session/{session}/wait")
        assert not (tmp_path / "escaped").exists()


async def test_who_is_no_command_is_served_while_one_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as (project, http):
        session = await new_session(http)
        body = {"parts": [{"type": "text", "text": "[[bash sh waiting.sh]]"}]}
        os.mkfifo(project / "work/begun")
        (project / "waiting.sh").write_text("echo > work/begun; until test -e go; do sleep 0.01; done")
        (await http.post(f"/session/{session}/prompt_async", json=body)).raise_for_status()
        await to_thread.run_sync((project / "work/begun").read_bytes, abandon_on_cancel=True)
        url = str(http.base_url).rstrip("/")
        curl = ["curl", "-sS", "-f", "-X", "POST", "-H", "content-type: application/json", "-d", "{}", f"{url}/session"]
        done = await to_thread.run_sync(lambda: subprocess.run(curl, capture_output=True, text=True, check=False))
        assert (done.returncode, done.stderr) == (0, ""), "a program of the user"
        # A command of the user is the user.
        given = {"agent": "build", "command": f"curl -sS -f -X POST -d '{{}}' {url}/session | head -c 6"}
        other = await new_session(http)
        said: Any = (await http.post(f"/session/{other}/shell", json=given)).raise_for_status().json()
        assert '{"id":' in str(said["parts"]), said
        (project / "go").touch()


async def test_with_a_password_nothing_is_looked_up_and_commands_do_not_know_it(tmp_path: Path) -> None:
    async with serving(tmp_path, OPENCODE_SERVER_PASSWORD="open sesame") as (project, http):
        http.auth = ("opencode", "open sesame")
        session = await new_session(http)
        (project / "attack.sh").write_text(
            "(env; cat /proc/[0-9]*/environ) 2> /dev/null | grep -a sesame && echo known; "
            f"curl -sS -i {str(http.base_url).rstrip('/')}/session | head -1"
        )
        said = await run_by_model(http, session, "sh attack.sh")
        assert " 401 " in said
        # The kernel lets root read the variables of every process.
        assert os.geteuid() == 0 or "known" not in said


async def test_nothing_is_looked_up_when_no_command_runs(tmp_path: Path) -> None:
    assert ModelCommands().guards() is None
    await shell.run("true", tmp_path, environ=dict(os.environ), timeout_s=60, is_of_model=True)
    assert OF_MODELS.guards() == [], "what it sent may be on the way"


@pytest.mark.parametrize(
    ("family", "host", "to"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "::ffff:127.0.0.1"),
    ],
)
def test_the_owner_of_a_socket_is_found_in_every_spelling(family: socket.AddressFamily, host: str, to: str) -> None:
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip("there is no such address here")
        listener.listen()
        client = socket.socket(family)
        client.connect((to, listener.getsockname()[1]))
        accepted, _ = listener.accept()
        ends = accepted.getpeername()[:2], accepted.getsockname()[:2]
        with accepted:
            assert socket_owner.owner(*ends, []) == "other"
            assert socket_owner.owner(*ends, [os.getppid()]) == "command"
            client.close()
            assert socket_owner.owner(*ends, []) == "unknown"
        assert socket_owner.owner(("192.0.2.1", 1), ends[1], []) == "other"
