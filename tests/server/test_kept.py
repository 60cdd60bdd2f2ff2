"""A page that was told before is told again without being read, and never when something has changed."""

from pathlib import Path

from served import served as serving

import turnkeeper
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.kept import BYTES_MAX, PAGE_BYTES_MAX, Kept, Page


def a_kept() -> Kept:
    return Kept(None)  # type: ignore[arg-type] # It asks nothing of the server.


def test_a_page_is_kept_for_the_state_it_was_read_in() -> None:
    kept, asked, page = a_kept(), ("ses_1", 50, None), Page(b"[]", "older")
    assert kept.page(asked, b"1") is None
    kept.keep(asked, b"1", page)
    assert kept.page(asked, b"1") is page
    assert kept.page(("ses_1", 51, None), b"1") is None
    assert kept.page(asked, b"2") is None
    assert kept.page(asked, b"1") is None  # What is out of date is not kept.


def test_what_was_not_asked_for_longest_goes_first() -> None:
    kept, page = a_kept(), Page(bytes(PAGE_BYTES_MAX), None)
    asked = [("ses_1", number, None) for number in range(1, 6)]
    for one in asked[:4]:
        kept.keep(one, b"1", page)
    assert kept.page(asked[0], b"1") is page
    kept.keep(asked[4], b"1", page)
    assert [kept.page(one, b"1") is page for one in asked] == [True, False, True, True, True]
    kept.keep(asked[1], b"1", Page(bytes(PAGE_BYTES_MAX + 1), None))
    assert kept.page(asked[1], b"1") is None
    assert PAGE_BYTES_MAX * 4 == BYTES_MAX


async def test_pages_follow_their_session_also_where_another_process_writes(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'store.db'}"
    async with serving(tmp_path, Scripted().says("yes").forever(), store=url) as served:
        session_id = await served.session()
        await served.ask(session_id, "first")
        whole, page = f"/session/{session_id}/message", f"/session/{session_id}/message?limit=1"
        first = [await served.get(whole), await served.get(page)]
        assert [await served.get(whole), await served.get(page)] == first
        await served.ask(session_id, "second")
        assert len(await served.get(whole)) == 4
        [newest] = await served.get(page)
        async with turnkeeper.open(url) as other:
            await other.remove_message(session_id, newest["info"]["id"])
        assert len(await served.get(whole)) == 3
        assert (await served.get(page))[0]["info"]["id"] != newest["info"]["id"]
