"""The command that serves: a process that says where it listens, logs, and goes when told."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2

from turnkeeper.server import serving

DEADLINE_S = 60


@contextmanager
def process(directory: Path, *words: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A server of its own."""
    given = {"PATH": os.environ["PATH"], "HOME": str(directory), "TURNKEEPER_DATA": str(directory / "data"), **environ}
    command = [sys.executable, "-m", "turnkeeper.cli.main", "serve", *words]
    started = subprocess.Popen(
        command, cwd=directory, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def url_of(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line, started.communicate()[1]
    return str(json.loads(line)["url"])


def test_a_process_says_where_it_listens_answers_and_goes_when_told(tmp_path: Path) -> None:
    with process(tmp_path, "--port", "0", "--json") as started:
        url = url_of(started)
        assert httpx2.get(f"{url}/global/health").json()["healthy"] is True
        made = httpx2.post(f"{url}/session").json()
        assert made["directory"] == str(tmp_path)
        started.send_signal(signal.SIGTERM)
        assert started.wait(DEADLINE_S) == 0
        assert started.communicate()[1] == ""


def test_a_process_with_an_open_stream_sends_its_last_event_and_goes(tmp_path: Path) -> None:
    with process(tmp_path, "--port", "0", "--json") as started:
        url = url_of(started)
        with httpx2.stream("GET", f"{url}/event", timeout=DEADLINE_S) as stream:
            lines = stream.iter_lines()
            assert "server.connected" in next(lines)
            started.send_signal(signal.SIGTERM)
            heard = [line for line in lines if line]
        assert "server.instance.disposed" in heard[-1]
        assert started.wait(DEADLINE_S) == 0


def test_a_port_that_is_taken_is_said_and_is_no_traceback(tmp_path: Path) -> None:
    with closing(serving.listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(tmp_path, "--port", str(port)) as started:
            assert started.wait(DEADLINE_S) == 1
            said = started.communicate()[1]
            assert said.startswith(f"turnkeeper: port {port} of 127.0.0.1 cannot be had")


def test_others_are_not_served_without_a_password(tmp_path: Path) -> None:
    with process(tmp_path, "--port", "0", "--hostname", "0.0.0.0") as started:
        assert started.wait(DEADLINE_S) == 1
        assert "OPENCODE_SERVER_PASSWORD" in started.communicate()[1]


def test_the_log_is_json_and_holds_no_secret(tmp_path: Path) -> None:
    words = ("--port", "0", "--json", "--log-format", "json", "--log-level", "info")
    with process(tmp_path, *words, OPENCODE_SERVER_PASSWORD="hunter2") as started:
        url = url_of(started)
        assert httpx2.get(f"{url}/session").status_code == 401
        assert httpx2.get(f"{url}/session?x=hunter2", auth=("opencode", "hunter2")).status_code == 200
        started.send_signal(signal.SIGTERM)
        logged = started.communicate()[1]
        assert "hunter2" not in logged
        requests = [one for one in map(json.loads, logged.splitlines()) if one["logger"] == "turnkeeper.access"]
        assert [(one["path"], one["operation"], one["status"]) for one in requests] == [
            ("/session", "unknown", 401),
            ("/session", "session.list", 200),
        ]


def test_a_request_cannot_write_lines_of_its_own_into_the_log(tmp_path: Path) -> None:
    with process(tmp_path, "--port", "0", "--json", "--log-level", "info") as started:
        assert httpx2.get(f"{url_of(started)}/nope%0AERROR%20forged%1b%5b31mline").status_code == 404
        started.send_signal(signal.SIGTERM)
        logged = started.communicate()[1]
        assert r"INFO turnkeeper.access: GET /nope\nERROR forged\x1b[31mline 404" in logged.splitlines()
        assert "\x1b" not in logged


def test_the_option_for_the_log_is_stronger_than_the_variable(tmp_path: Path) -> None:
    words = ("--port", "0", "--json", "--log-level", "error")
    with process(tmp_path, *words, TURNKEEPER_LOG_LEVEL="info") as started:
        assert httpx2.get(f"{url_of(started)}/session", timeout=DEADLINE_S).status_code == 200
        started.send_signal(signal.SIGTERM)
        assert started.communicate()[1] == ""


def test_a_stream_begins_whatever_git_is_doing(tmp_path: Path) -> None:
    # opencode run subscribes and prompts at the same moment: a stream that waits for git first would miss the turn.
    (tmp_path / ".git").mkdir()
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nexec tail -f /dev/null\n", "utf-8")
    git.chmod(0o755)
    with process(tmp_path, "--port", "0", "--json", PATH=f"{git.parent}:{os.environ['PATH']}") as started:
        url = url_of(started)
        with httpx2.stream("GET", f"{url}/event", timeout=DEADLINE_S / 3) as stream:
            assert "server.connected" in next(stream.iter_lines())
