"""List sessions: the newest activity first, narrowed, page by page, whatever is written meanwhile."""

from pathlib import Path
from typing import Any

import pytest

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import PAGE_MAX
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.model.refusal import Invalid, NotFound


async def titles(tk: Turnkeeper, **narrowing: Any) -> list[str]:
    return [session.title for session in (await tk.list(**narrowing)).items]


async def test_the_newest_activity_comes_first(tk: Turnkeeper) -> None:
    made = [await tk.create(title=title) for title in ("a", "b", "c")]
    assert await titles(tk) == ["c", "b", "a"]
    await tk.touch(made[0].id)
    assert await titles(tk) == ["a", "c", "b"]


async def test_a_new_title_is_no_activity(tk: Turnkeeper) -> None:
    first = await tk.create(title="a")
    await tk.create(title="b")
    await tk.rename(first.id, "renamed")
    assert await titles(tk) == ["b", "renamed"]


async def test_children_and_archived_sessions_are_listed_when_asked(tk: Turnkeeper) -> None:
    root = await tk.create(title="root")
    await tk.create(title="child", parent_id=root.id)
    old = await tk.create(title="old")
    await tk.archive(old.id)
    assert await titles(tk) == ["root"]
    assert await titles(tk, roots=False) == ["child", "root"]
    assert await titles(tk, archived=True) == ["old", "root"]
    assert await titles(tk, archived=True, roots=False) == ["old", "child", "root"]


async def test_a_list_can_be_of_one_directory_project_or_parent(tk: Turnkeeper, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    here = await tk.create(title="here")
    there = await tk.create(title="there", directory=other)
    await tk.create(title="child", parent_id=here.id)
    assert await titles(tk, directory=other) == ["there"]
    assert await titles(tk, directory=here.directory) == ["here"]
    assert await titles(tk, project_id=there.project_id) == ["there", "here"]
    assert await titles(tk, project_id="nobody") == []
    assert await titles(tk, parent_id=here.id) == ["child"]


async def test_a_list_of_several_scopes_is_refused(tk: Turnkeeper) -> None:
    with pytest.raises(Invalid, match="not by several"):
        await tk.list(project_id="a", directory="/b")


async def test_a_list_below_a_session_that_is_not_there_is_refused(tk: Turnkeeper) -> None:
    with pytest.raises(NotFound):
        await tk.list(parent_id="ses_none")


async def test_a_moved_session_is_listed_where_it_is_now(tk: Turnkeeper, tmp_path: Path, place: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    session = await tk.create(title="a")
    await tk.move(session.id, other)
    assert await titles(tk, directory=place) == []
    assert await titles(tk, directory=other) == ["a"]


async def test_words_in_a_title_are_found_without_case_and_literally(tk: Turnkeeper) -> None:
    for title in ("Fix the Parser", "100% sure", "100 percent", "ÜBER", "a_b", "axb"):
        await tk.create(title=title)
    assert await titles(tk, search="parser") == ["Fix the Parser"]
    assert await titles(tk, search="100%") == ["100% sure"]
    assert await titles(tk, search="über") == ["ÜBER"]
    assert await titles(tk, search="a_b") == ["a_b"]


async def test_a_list_can_begin_at_a_time(tk: Turnkeeper, mint: FixedMint) -> None:
    await tk.create(title="before")
    mint.advance(1000)
    after = await tk.create(title="after")
    assert await titles(tk, since=after.time.updated) == ["after"]
    assert await titles(tk, since=after.time.updated + 1) == []


async def walk(tk: Turnkeeper, limit: int) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await tk.list(limit=limit, after=cursor)
        found.extend(session.title for session in page.items)
        if (cursor := page.older) is None:
            return found


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 100])
async def test_pages_of_any_size_give_every_session_once(tk: Turnkeeper, limit: int) -> None:
    for number in range(10):
        await tk.create(title=str(number))
    assert await walk(tk, limit) == [str(number) for number in reversed(range(10))]


async def test_a_narrowed_list_has_full_pages(tk: Turnkeeper) -> None:
    for number in range(30):
        await tk.create(title=f"{'even' if number % 2 == 0 else 'odd'} {number}")
    page = await tk.list(search="even", limit=10)
    rest = await tk.list(search="even", limit=10, after=page.older)
    assert (len(page.items), len(rest.items), rest.older) == (10, 5, None)


async def test_a_cursor_survives_what_is_written_meanwhile(tk: Turnkeeper) -> None:
    made = [await tk.create(title=str(number)) for number in range(9)]
    first = await tk.list(limit=3)
    assert [session.title for session in first.items] == ["8", "7", "6"]
    await tk.create(title="new")
    await tk.touch(made[0].id)  # From the end of the list to its beginning.
    await tk.touch(made[6].id)  # The very session the cursor stands behind.
    await tk.remove(made[4].id)
    second = await tk.list(limit=3, after=first.older)
    assert [session.title for session in second.items] == ["5", "3", "2"]
    third = await tk.list(limit=3, after=second.older)
    assert ([session.title for session in third.items], third.older) == (["1"], None)


async def test_sessions_active_at_the_same_moment_are_each_listed_once(tk: Turnkeeper, mint: FixedMint) -> None:
    mint.step_ms = 0
    for number in range(6):
        await tk.create(title=str(number))
    assert sorted(await walk(tk, 2)) == [str(number) for number in range(6)]


@pytest.mark.parametrize("cursor", ["nonsense", "e30", "%%%"])
async def test_a_cursor_that_is_none_of_ours_is_refused(tk: Turnkeeper, cursor: str) -> None:
    with pytest.raises(Invalid, match="is not a cursor"):
        await tk.list(after=cursor)


async def test_a_page_holds_at_least_one_and_at_most_so_many(tk: Turnkeeper) -> None:
    await tk.create()
    with pytest.raises(Invalid, match="at least one"):
        await tk.list(limit=0)
    assert len((await tk.list(limit=PAGE_MAX * 10)).items) == 1


async def test_children_are_those_below_and_descendants_all_below_them(tk: Turnkeeper) -> None:
    root = await tk.create(title="root")
    one = await tk.create(title="one", parent_id=root.id)
    await tk.create(title="two", parent_id=root.id)
    grandchild = await tk.create(title="grandchild", parent_id=one.id)
    await tk.create(title="other root")
    assert [child.title for child in await tk.children(root.id)] == ["two", "one"]
    assert [child.title for child in await tk.children(root.id, recursive=True)] == ["two", "one", "grandchild"]
    assert list(await tk.children(grandchild.id)) == []
    with pytest.raises(NotFound):
        await tk.children("ses_none")


async def pages(tk: Turnkeeper, limit: int, **narrowing: Any) -> list[str]:
    """The titles of a whole list, read page by page."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await tk.list(limit=limit, after=after, **narrowing)
        assert len(page.items) <= limit
        found.extend(session.title for session in page.items)
        if (after := page.older) is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
async def test_sessions_of_the_same_moment_come_newest_first(url: str, place: Path, limit: int) -> None:
    mint = Mint.fixed()
    async with turnkeeper.open(url, directory=place, mint=mint) as tk:
        root = await tk.create(title="before")
        mint.advance(1)
        for number in range(5):
            await tk.create(title=f"root {number}")
            await tk.create(title=f"child {number}", parent_id=root.id)
        mint.advance(1)
        await tk.create(title="after")
        children = [f"child {number}" for number in (4, 3, 2, 1, 0)]
        roots = [f"root {number}" for number in (4, 3, 2, 1, 0)]
        assert await pages(tk, limit) == ["after", *roots, "before"]
        assert await pages(tk, limit, parent_id=root.id) == children
        assert [one.title for one in await tk.children(root.id)] == children
        mixed = [title for pair in zip(children, roots, strict=True) for title in pair]
        assert await pages(tk, limit, roots=False) == ["after", *mixed, "before"]
        assert await pages(tk, limit, since=mint.now() - 1) == ["after", *roots]


async def test_a_moment_with_more_sessions_than_are_read_at_once_is_listed_newest_first(url: str, place: Path) -> None:
    mint = Mint.fixed()
    async with turnkeeper.open(url, directory=place, mint=mint) as tk:
        await tk.create(title="before")
        mint.advance(1)
        made = [(await tk.create(title=f"number {number}")).title for number in range(70)]
        assert await pages(tk, 6) == [*reversed(made), "before"]
        assert await pages(tk, 100) == [*reversed(made), "before"]
