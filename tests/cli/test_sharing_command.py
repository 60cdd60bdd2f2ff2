"""The commands that show what is masked, share a session and withdraw its link."""

import json
from typing import Any

from server_process import serving
from workshop import Shop


def test_a_session_is_shared_after_a_look_at_what_is_masked_and_the_link_is_withdrawn(shop: Shop) -> None:
    shop.run("write notes.txt: password=hunter2hunter2")
    [session] = shop.sessions()
    report = json.loads(shop.process("session", "redactions", session["id"], "--json").stdout)
    assert report["masked"] != []
    refused = shop.process("session", "share", session["id"])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "add --yes" in " ".join(refused.stderr.split())
    link = json.loads(shop.process("session", "share", session["id"], "--yes", "--json").stdout)
    assert (link["sessionID"], link["report"]) == (session["id"], report)
    withdrawn = shop.process("session", "unshare", session["id"])
    assert withdrawn.stdout == f"Withdrew the link to {session['id']}\n"
    again = shop.process("session", "unshare", session["id"])
    assert (again.returncode, "has no link" in again.stderr) == (1, True)


def test_a_link_has_the_address_of_the_server_that_makes_it_and_otherwise_a_hint_tells_how_to_give_one(
    shop: Shop,
) -> None:
    shop.run("hello")
    [session] = shop.sessions()
    assumed = shop.process("session", "share", session["id"], "--yes")
    assert assumed.stdout.startswith("http://127.0.0.1:4096/share/")
    assert "`session share --server URL` or the setting `share_url`" in " ".join(assumed.stderr.split())
    with serving(shop) as url:
        made = shop.process("session", "share", session["id"], "--yes", "--server", url)
    assert made.stdout.startswith(f"{url}/share/")
    assert "--server" not in made.stderr


def hosts(shop: Shop) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shop.process("cluster", "status", "--json").stdout)["hosts"]
    return found


def test_a_link_that_is_made_in_the_store_has_the_address_of_the_server_that_runs_here(shop: Shop) -> None:
    shop.run("hello")
    [session] = shop.sessions()
    with serving(shop) as url:
        while [host["address"] for host in hosts(shop)] != [url]:
            pass  # It tells its address once it has answered the first requests.
        made = shop.process("session", "share", session["id"], "--yes")
    assert made.stdout.startswith(f"{url}/share/")
    assert "`turnkeeper serve` shows it" in " ".join(made.stderr.split())
    after = shop.process("session", "share", session["id"], "--yes")
    assert after.stdout.startswith("http://127.0.0.1:4096/share/")
    assert "no server runs on this machine now" in " ".join(after.stderr.split())
