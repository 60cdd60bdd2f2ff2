"""The web page: its files, the policy under which they run, and what was vendored."""

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from served import served

from turnkeeper.server.service import ServerOptions
from turnkeeper.server.site import POLICY

ROOT = Path(__file__).parents[2]
WEB = Path(str(files("turnkeeper.server").joinpath("web")))
OWN = sorted(path for path in WEB.iterdir() if path.suffix in (".js", ".css", ".html"))


@pytest.mark.parametrize("path", ["/", "/s/ses_1", "/s/ses_1/anything?at=3"])
async def test_the_page_is_served_under_a_policy_that_lets_nothing_else_run(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "unsafe" not in POLICY


async def test_a_file_that_the_browser_has_is_not_sent_again(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        first = await server.http.get("/web/main.js")
        assert first.headers["content-type"] == "text/javascript; charset=utf-8"
        again = await server.http.get("/web/main.js", headers={"if-none-match": f'"other", {first.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        other = await server.http.get("/web/page.css", headers={"if-none-match": first.headers["etag"]})
        assert (other.status_code, other.headers["content-type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.parametrize(
    "path", ["", "nothing.js", "../site.py", "%2e%2e/site.py", "vendor", "vendor/", "vendor/../../site.py", "main.js/"]
)
async def test_no_path_leads_out_of_the_folder(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert (await server.http.get(f"/web/{path}")).status_code in (404, 400)


async def test_the_page_needs_the_password_too(tmp_path: Path) -> None:
    async with served(tmp_path, options=ServerOptions(password="tern", environ={"HOME": str(tmp_path)})) as server:
        for path in ("/", "/web/main.js", "/tk/asks"):
            refused = await server.http.get(path)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Basic realm="Secure Area"')
            assert (await server.http.get(path, auth=("opencode", "tern"))).status_code == 200


def test_the_vendored_files_are_those_that_were_verified() -> None:
    command = [sys.executable, str(ROOT / "scripts/vendor_web.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_our_files_load_only_what_is_there_and_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    for name in re.findall(r'(?:from|import) "(\./[^"]+)"', text):
        assert (WEB / name).is_file(), f"{path.name} imports {name}"
    for name in re.findall(r'"/web/([^"]+)"', text):
        assert (WEB / name).is_file(), f"{path.name} names {name}"
    assert not re.findall(r"innerHTML|dangerouslySetInnerHTML|eval\(|new Function|document\.write", text)
    assert not re.findall(r"url\(|@import|src=\"https?:|href=\"https?:", text)
    assert not re.findall(r"<script(?![^>]* src=)|\son[a-z]+=\"", text)


def test_what_is_shipped_stays_small() -> None:
    own = sum(len(path.read_bytes()) for path in OWN)
    vendored = sum(len(path.read_bytes()) for path in WEB.rglob("vendor/**/*.js"))
    assert own < 220_000
    assert vendored < 420_000
