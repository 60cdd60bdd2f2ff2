"""A page that was read before is answered from the cache, and never when something has changed."""

from pathlib import Path

from served import served as serving

import turnkeeper
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.page_cache import BYTES_MAX, PAGE_BYTES_MAX, CachedPage, PageCache


def a_cache() -> PageCache:
    return PageCache(None)  # type: ignore[arg-type] # It asks nothing of the server.


def test_a_page_is_kept_for_the_state_it_was_read_in() -> None:
    cache, asked, page = a_cache(), ("ses_1", 50, None), CachedPage(b"[]", "older")
    assert cache.get(asked, "1") is None
    cache.put(asked, "1", page)
    assert cache.get(asked, "1") is page
    assert cache.get(("ses_1", 51, None), "1") is None
    assert cache.get(asked, "2") is None
    assert cache.get(asked, "1") is None  # What is out of date is not kept.


def test_the_least_recently_used_page_goes_first() -> None:
    cache, page = a_cache(), CachedPage(bytes(PAGE_BYTES_MAX), None)
    asked = [("ses_1", number, None) for number in range(1, 6)]
    for one in asked[:4]:
        cache.put(one, "1", page)
    assert cache.get(asked[0], "1") is page
    cache.put(asked[4], "1", page)
    assert [cache.get(one, "1") is page for one in asked] == [True, False, True, True, True]
    cache.put(asked[1], "1", CachedPage(bytes(PAGE_BYTES_MAX + 1), None))
    assert cache.get(asked[1], "1") is None
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
