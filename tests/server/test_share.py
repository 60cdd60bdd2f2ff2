"""Links to sessions: who may read what, live changes, and what a link never shows."""

import ast
import inspect
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from served import Served, served

from turnkeeper.model.refusal import Forbidden, Invalid, NotFound
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.service import ServerOptions
from turnkeeper.server.share.live import GONE, Shares, frames
from turnkeeper.sessions import share
from turnkeeper.sessions.share import hashed

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HEADER = "x-share-secret"
SAID = ("message", "part")


@asynccontextmanager
async def shared(directory: Path, **given: Any) -> AsyncIterator[tuple[Served, str, str, str]]:
    """A server with a shared session: the server, the session, the address and the secret of the link."""
    provider = Scripted().says("I look.").then().says("Once more.").then().says("And again.")
    async with served(directory, provider, **given) as server:
        session = await server.session(title="Tide tables")
        await server.ask(session, f"the token is {TOKEN}; look at {directory}/tides.py")
        url = (await server.post(f"/session/{session}/share"))["share"]["url"]
        address, _, secret = url.partition("#")
        yield server, session, address, secret


async def data(server: Served, session: str, secret: str, status: int = 200) -> Any:
    return await server.get(f"/share/{session}/data", status, headers={HEADER: secret})


def texts(items: list[dict[str, Any]]) -> str:
    return json.dumps(items, ensure_ascii=False)


async def test_a_link_shows_the_session_with_its_secrets_masked(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, address, secret):
        assert address == f"http://127.0.0.1:4096/share/{session}"
        items = await data(server, session, secret)
        assert items[0]["type"] == "session"
        assert items[0]["data"]["title"] == "Tide tables"
        said = texts(items)
        assert "the token is [api-key 1]" in said
        assert TOKEN not in said
        assert str(tmp_path) not in said


@pytest.mark.parametrize("mark", ["%23", "%2523", "%252523"])
@pytest.mark.parametrize(
    "path", ["/share/{}{}{}", "/share/{}{}{}/data", "/share/{}/{}{}", "/shared/{}{}{}", "/api/{}{}{}"]
)
async def test_a_secret_in_the_path_is_neither_logged_nor_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str, mark: str
) -> None:
    caplog.set_level("INFO", "turnkeeper.access")
    async with shared(tmp_path) as (server, session, _, secret):
        caplog.clear()
        answer = await server.http.get(path.format(session, mark, secret))
        assert answer.status_code in (400, 404)
        assert secret not in answer.text
        [logged] = [one for one in caplog.records if one.name == "turnkeeper.access"]
        assert secret not in str(vars(logged))
        assert vars(logged)["path"].endswith("#***")


async def test_the_secret_is_told_once_and_only_its_hash_is_stored(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, address, secret):
        assert len(secret) == 43
        assert (await server.get(f"/session/{session}"))["share"] == {"url": address}
        engine = server.stage.tk.store.engine
        stored = b"".join(await engine.read(session)) + b"".join(body for _, body in await engine.scan(("hosted",)))
        assert secret.encode() not in stored
        assert hashed(secret).encode() in stored


async def test_whatever_is_wrong_with_a_link_looks_the_same(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        wrong = [
            await server.http.get(f"/share/{name}/{what}", headers=headers)
            for what in ("data", "stream")
            for name, headers in (
                (session, {HEADER: secret[:-1]}),
                (session, {HEADER: hashed(secret)}),
                (session, {}),
                ("ses_none", {HEADER: secret}),
                (await server.session(), {HEADER: secret}),
            )
        ]
        assert {answer.status_code for answer in wrong} == {404}
        assert len({answer.content.replace(session.encode(), b"") for answer in wrong}) == 1


@pytest.mark.parametrize("path", ["", "/data", "/stream"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_link_takes_no_writes(tmp_path: Path, path: str, method: str) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        answer = await server.http.request(method, f"/share/{session}{path}", headers={HEADER: secret})
        assert answer.status_code in (404, 405)


async def test_a_link_needs_no_password_and_opens_nothing_else(tmp_path: Path) -> None:
    options = ServerOptions(password="open sesame", environ={})
    async with served(tmp_path, options=options) as server:
        auth = ("opencode", "open sesame")
        session = (await server.post("/session", {}, auth=auth))["id"]
        url = (await server.post(f"/session/{session}/share", auth=auth))["share"]["url"]
        secret = url.partition("#")[2]
        assert (await data(server, session, secret))[0]["type"] == "session"
        assert (await server.http.get(f"/share/{session}")).status_code == 200
        for path in (f"/session/{session}", f"/tk/session/{session}/redactions", "/share", "/session"):
            answer = await server.http.get(path, headers={HEADER: secret})
            assert answer.status_code == 401, path
        assert (await server.http.post(f"/share/{session}/data")).status_code == 401


async def test_the_page_says_nothing_of_the_session_and_may_load_nothing_else(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        page = await server.http.get(f"/share/{session}")
        other = await server.http.get("/share/ses_none")
        assert page.content == other.content
        assert b"Tide tables" not in page.content
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        answers = [page, *[await server.http.get(f"/share/{name}") for name in ("page.js", "page.css")]]
        answers.append(await server.http.get(f"/share/{session}/data", headers={HEADER: secret}))
        for answer in answers:
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-robots-tag"] == "noindex, nofollow"
            assert answer.headers["referrer-policy"] == "no-referrer"


async def test_unsharing_ends_a_link_and_sharing_again_makes_another(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        again = (await server.post(f"/session/{session}/share"))["share"]["url"].partition("#")[2]
        assert again != secret
        await data(server, session, secret, 404)
        await data(server, session, again)
        left = await server.call("DELETE", f"/session/{session}/share")
        assert "share" not in left
        await data(server, session, again, 404)
        assert await server.stage.tk.store.engine.scan(("hosted",)) == []


async def test_a_link_lasts_until_its_time_is_over(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, _):
        link = await server.post(f"/tk/session/{session}/share", {"expires": 60})
        await data(server, session, link["secret"])
        server.stage.mint.advance(60_001)
        await data(server, session, link["secret"], 404)


async def test_a_removed_session_takes_its_link_along(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        await server.call("DELETE", f"/session/{session}")
        await data(server, session, secret, 404)


async def test_a_link_shows_what_was_chosen_and_no_more(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, _):
        link = await server.post(f"/tk/session/{session}/share", {"include": ["todos"]})
        items = await data(server, session, link["secret"])
        assert "the token" not in texts(items)
        assert {one["type"] for one in items} == {"session", "message", "todo"}
        assert link["include"] == ["todos"]
        await server.post(f"/tk/session/{session}/share", {"include": ["everything"]}, 400)


async def test_a_removed_and_a_reverted_message_leave_the_link(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        await server.ask(session, "the second prompt")
        found = await server.get(f"/session/{session}/message")
        users = [one["info"]["id"] for one in found if one["info"]["role"] == "user"]
        assert "the second prompt" in texts(await data(server, session, secret))
        await server.post(f"/session/{session}/revert", {"messageID": users[1]})
        assert "the second prompt" not in texts(await data(server, session, secret))
        await server.post(f"/session/{session}/unrevert")
        assert "the second prompt" in texts(await data(server, session, secret))
        await server.stage.tk.remove_message(session, users[1])
        assert "the second prompt" not in texts(await data(server, session, secret))


async def test_a_link_to_a_session_does_not_open_its_children_or_forks(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        child = await server.session(parentID=session, title="A child")
        fork = (await server.post(f"/session/{session}/fork", {}))["id"]
        for other in (child, fork):
            await data(server, other, secret, 404)
            assert "share" not in await server.get(f"/session/{other}")
        assert "A child" not in texts(await data(server, session, secret))


async def test_the_stream_tells_changes_removals_and_the_end(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        tk = server.stage.tk
        steps = iter(("ask", "remove", "unshare"))

        async def act(_: float) -> None:
            """What happens while the stream waits."""
            match next(steps):
                case "ask":
                    await server.ask(session, "the second prompt")
                case "remove":
                    found = await server.get(f"/session/{session}/message")
                    await tk.remove_message(session, found[-1]["info"]["id"])
                case "unshare":
                    await tk.unshare(session)

        opened = await server.service.part(Shares).open(session, secret)
        told = [frame async for frame in frames(tk.store, opened, act)]
        first, asked, removed = (json.loads(frame[6:]) for frame in told[:3])
        assert told[3:] == [GONE]
        assert set(first["changed"]) == set(first["order"])
        assert asked["order"][: len(first["order"])] == first["order"]
        assert set(asked["changed"]) == set(asked["order"]) - set(first["order"])
        assert (removed["order"], removed["changed"]) == (asked["order"][:-1], {})


async def test_two_readers_of_a_link_have_one_redaction_and_each_must_know_the_secret(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        shares = server.service.part(Shares)
        assert await shares.open(session, secret) is await shares.open(session, secret)
        with pytest.raises(NotFound):
            await shares.open(session, secret + "x")


async def test_what_the_sharing_process_knew_is_masked_by_a_server_that_does_not(tmp_path: Path) -> None:
    """The key is in the environment of the command line that makes the link, and not in that of the server."""
    plain = "quietharbour-northpier-lantern"
    async with served(tmp_path, Scripted().says("Well.")) as server:
        session = await server.session()
        await server.ask(session, f"it said {plain} twice")
        from turnkeeper.api import Turnkeeper

        tk = server.stage.tk
        other = Turnkeeper(tk.store, tk.bus, tmp_path, None, {"HOME": str(tmp_path), "HARBOUR_TOKEN": plain})
        link = await other.share(session)
        assert [one.kind for one in link.report.masked if one.kind == "credential"] == ["credential"]
        assert plain not in texts(await data(server, session, link.secret))


async def test_settings_may_forbid_sharing(tmp_path: Path) -> None:
    async with served(tmp_path, config={"share": "disabled"}) as server:
        session = await server.session()
        await server.post(f"/session/{session}/share", status=403)
        with pytest.raises(Forbidden):
            await server.stage.tk.share(session)
        with pytest.raises(Invalid):
            await server.stage.tk.share(session, expires_s=-1)


async def test_settings_may_share_each_new_root_session(tmp_path: Path) -> None:
    async with served(tmp_path, config={"share": "auto"}) as server:
        made = await server.post("/session", {})
        secret = made["share"]["url"].partition("#")[2]
        assert (await data(server, made["id"], secret))[0]["type"] == "session"
        assert "share" not in await server.post("/session", {"parentID": made["id"]})


async def test_the_report_comes_before_the_link(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, _):
        report = await server.get(f"/tk/session/{session}/redactions")
        assert {one["kind"] for one in report["masked"]} >= {"api-key"}
        assert TOKEN not in json.dumps(report)


async def test_a_change_redacts_only_what_has_changed(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        opened = await server.service.part(Shares).open(session, secret)
        before = await opened.view()
        await server.stage.tk.rename(session, "Another title")
        renamed = await opened.view()
        assert renamed.title == "Another title"
        assert len(before.items) > 4
        assert [id(one) for one in renamed.items if one.type in SAID] == [
            id(one) for one in before.items if one.type in SAID
        ]
        await server.ask(session, "the second prompt")
        after = await opened.view()
        assert len(after.articles) == len(before.articles) + 2
        kept = {id(one) for one in after.items}
        assert all(id(one) in kept for one in before.items if one.type in SAID)


async def test_a_secret_that_is_found_later_is_masked_in_earlier_messages_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        await server.ask(session, "it printed quietharbour77lantern, what is that?")
        opened = await server.service.part(Shares).open(session, secret)
        before = await opened.view()
        assert "quietharbour77lantern" in before.articles[2].html
        await server.ask(session, "DB_PASSWORD=quietharbour77lantern")
        after = await opened.view()
        assert "quietharbour77lantern" not in "".join(one.html for one in after.articles)
        assert after.articles[0] is before.articles[0]


async def test_looking_and_exporting_leave_the_log_as_it_was(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        tk = server.stage.tk
        before = await tk.store.engine.read(session)
        await tk.redactions(session)
        assert [piece async for piece in tk.export(session, redact=True)]
        assert [piece async for piece in tk.export_html(session)]
        await data(server, session, secret)
        assert await tk.store.engine.read(session) == before
        assert TOKEN.encode() in b"".join(before)


async def test_a_secret_keeps_its_mask_while_the_session_goes_on(tmp_path: Path) -> None:
    async with shared(tmp_path) as (server, session, _, secret):
        other = "ghp_" + "z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"
        await server.ask(session, f"and now {other}, not {TOKEN}")
        assert "and now [api-key 2], not [api-key 1]" in texts(await data(server, session, secret))


def test_the_secret_of_a_link_is_compared_in_constant_time_only() -> None:
    tree = ast.parse(inspect.getsource(share))
    compared = [ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.Compare)]
    assert not [one for one in compared if "secret" in one.replace("secret_hash if", "")]
    calls = [ast.unparse(one) for one in ast.walk(tree) if isinstance(one, ast.Call)]
    assert [one for one in calls if one.startswith("compare_digest(hashed(secret), ")]
