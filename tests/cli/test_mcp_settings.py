"""``turnkeeper mcp add|remove|auth|logout``: the user's own file, and logins by a browser."""

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from cli_store import command
from mcp_addresses import free_port, locked
from workshop import Shop

from turnkeeper.workspace.mcp_logins import McpLogin, McpLogins

SERVER = Path(__file__).parents[1] / "support/mcp_server.py"


@pytest.fixture
def own(shop: Shop) -> Path:
    """The user's own directory of settings."""
    found = shop.home / ".config" / "turnkeeper"
    found.mkdir(parents=True)
    return found


def test_a_server_is_added_listed_and_removed(shop: Shop) -> None:
    file = shop.home / ".config" / "turnkeeper" / "turnkeeper.jsonc"
    program = [sys.executable, str(SERVER), "tools"]
    added = shop.process("mcp", "add", "sea", "--timeout", "60000", "--", *program)
    assert (added.returncode, added.stdout) == (0, "Wrote sea to ~/.config/turnkeeper/turnkeeper.jsonc\n"), added.stderr
    assert json.loads(file.read_text()) == {"mcp": {"sea": {"type": "local", "command": program, "timeout": 60000}}}
    [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
    assert (row["name"], row["status"]) == ("sea", "connected")
    removed = shop.process("mcp", "remove", "sea", "--json")
    assert json.loads(removed.stdout) == {"name": "sea", "files": [str(file)]}
    assert json.loads(file.read_text()) == {"mcp": {}}


def test_comments_and_order_stay_and_options_of_the_program_are_its_own(shop: Shop, own: Path) -> None:
    file = own / "turnkeeper.jsonc"
    file.write_text(
        '{\n  // mine\n  "theme": "dark",\n  "mcp": {\n    "old": {"url": "https://a.b/c"}, // why\n  },\n}\n'
    )
    run = shop.process("mcp", "add", "db", "--env", "TOKEN={env:DB}", "--json", "--", "db-server", "--url", "-v")
    server = {"type": "local", "command": ["db-server", "--url", "-v"], "environment": {"TOKEN": "{env:DB}"}}
    assert json.loads(run.stdout) == {"name": "db", "file": str(file), "server": server, "replaced": False}
    assert file.read_text() == (
        f'{{\n  // mine\n  "theme": "dark",\n  "mcp": {{\n    "db": {json.dumps(server)},\n'
        '    "old": {"url": "https://a.b/c"}, // why\n  },\n}\n'
    )
    again = shop.process("mcp", "add", "db", "--url", "https://mcp.example.com/mcp")
    assert (again.returncode, "--replace" in again.stderr) == (1, True)
    replaced = shop.process("mcp", "add", "db", "--url", "https://mcp.example.com/mcp", "--replace")
    assert replaced.returncode == 0
    assert '"db": {"type": "remote", "url": "https://mcp.example.com/mcp"},\n' in file.read_text()
    assert shop.process("mcp", "remove", "db").returncode == 0
    assert '"old": {"url": "https://a.b/c"}, // why' in file.read_text()


def test_a_toml_file_is_edited_as_well(shop: Shop, own: Path) -> None:
    file = own / "turnkeeper.toml"
    file.write_text("# mine\ntheme = 'dark'\n")
    assert shop.process("mcp", "add", "docs", "--url", "https://a.b/c", "--header", "x=1").returncode == 0
    assert file.read_text() == (
        '# mine\ntheme = \'dark\'\n\n[mcp.docs]\ntype = "remote"\nurl = "https://a.b/c"\nheaders = {x = "1"}\n'
    )
    assert shop.process("mcp", "remove", "docs").returncode == 0
    assert file.read_text() == "# mine\ntheme = 'dark'\n\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "sea"], 2, "give a program after --"),
        (["add", "sea", "--url", "https://a.b", "--", "x"], 2, "give a program after --"),
        (["add", "sea", "https://a.b/mcp"], 2, "'https://a.b/mcp' is an address and no program; give it with --url"),
        (["add", "sea", "--url", "ftp://a.b"], 2, "is no address"),
        (["add", "sea", "--url", "http://"], 2, "is no address"),
        (["add", "sea", "--env", "TOKEN", "--", "x"], 2, "write it as NAME=VALUE"),
        (["add", "sea", "--header", "a=b", "--", "x"], 2, "--header is for an address"),
        (["add", "sea", "--env", "a=b", "--url", "https://a.b"], 2, "--env is for a program"),
        (["add", "sea", "--timeout", "0", "--", "x"], 2, "in milliseconds"),
        (["add", "\x1b[31m", "--", "x"], 1, "cannot name a server"),
        (["add", " ", "--", "x"], 1, "cannot name a server"),
        (["add", "s" * 65, "--", "x"], 1, "cannot name a server"),
        (["remove", "nothing"], 1, "there is no MCP server 'nothing' in your own files"),
        (["auth", "nothing"], 1, "there is no MCP server 'nothing' here"),
        (["logout", "nothing"], 1, "there is no MCP server 'nothing' here"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(words: list[str], code: int, said: str, shop: Shop) -> None:
    run = shop.process("mcp", *words)
    assert (run.returncode, said in run.stderr, "Traceback" in run.stderr) == (code, True, False), run.stderr
    assert not (shop.home / ".config").exists()


def test_servers_of_a_project_are_not_removed_and_secrets_are_remarked_on(shop: Shop) -> None:
    shop.configure(mcp={"sea": {"command": ["x"]}})
    before = (shop.project / "turnkeeper.json").read_text()
    run = shop.process("mcp", "remove", "sea")
    assert (run.returncode, "turnkeeper.json" in run.stderr) == (1, True)
    run = shop.process("mcp", "add", "sea", "--env", "API_TOKEN=abc", "--", "y")
    assert run.returncode == 0
    assert "The value of API_TOKEN is in the file as you gave it" in run.stderr
    assert "decides about a server of this name, too" in run.stderr
    assert (shop.project / "turnkeeper.json").read_text() == before


def test_a_damaged_file_of_the_user_is_left_alone(shop: Shop, own: Path) -> None:
    file = own / "turnkeeper.json"
    file.write_text('{"mcp": ')
    run = shop.process("mcp", "add", "sea", "--", "x")
    assert (run.returncode, "Traceback" in run.stderr, file.read_text()) == (1, False, '{"mcp": ')
    file.write_text('{"mcp": {"a": {"url": "http://a.b"}, "a": {"url": "http://a.b"}}}')
    run = shop.process("mcp", "remove", "a")
    assert (run.returncode, "cannot be changed without losing its layout" in run.stderr) == (1, True)


def logging_in(shop: Shop) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command("mcp", "auth", "sea"),
        env=shop.environ(),
        cwd=shop.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_registration_that_the_server_has_forgotten_is_named_beside_the_page(shop: Shop) -> None:
    with locked("open") as listening:
        shop.configure(mcp={"sea": {"url": listening.url, "timeout": 60_000}})
        stale = {"client_id": "forgotten", "redirect_uris": [f"http://127.0.0.1:{free_port()}/mcp/oauth/callback"]}
        McpLogins.of(shop.environ()).write(listening.url, McpLogin(client=stale))
        started = logging_in(shop)
        try:
            assert started.stderr is not None
            assert "If the page does not know it: `turnkeeper mcp logout sea`" in started.stderr.readline()
            assert started.stderr.readline().startswith("Open this address in a browser")
            assert httpx2.get(started.stderr.readline().strip(), timeout=60).status_code == 400
        finally:
            started.kill()
            started.communicate(timeout=60)


def test_a_user_logs_in_by_a_browser_and_out_again(shop: Shop) -> None:
    with locked("open") as listening:
        shop.configure(mcp={"sea": {"url": listening.url, "timeout": 60_000}})
        [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
        assert row["status"] == "needs_auth"
        started = logging_in(shop)
        assert started.stderr is not None
        assert started.stderr.readline().startswith("Open this address in a browser")
        shown = httpx2.get(started.stderr.readline().strip(), follow_redirects=True, timeout=60)
        assert shown.status_code == 200
        out, errors = started.communicate(timeout=120)
        assert (started.returncode, out.startswith("Logged in to sea; the login is in ")) == (0, True), errors
        [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
        assert (row["status"], row["tools"]) == ("connected", ["sea_who"])
        again = shop.process("mcp", "auth", "sea")
        assert again.stdout.startswith("You are logged in already at sea")
        assert shop.process("mcp", "logout", "sea").stdout == "Deleted the login at sea\n"
        assert shop.process("mcp", "logout", "sea").returncode == 1
        [row] = json.loads(shop.process("mcp", "list", "--json").stdout)["items"]
        assert row["status"] == "needs_auth"
