"""Skills from addresses: guarded, bounded, kept whole, and of no consequence where they fail."""

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from loopback import serving, stalling
from web_site import Page, redirect, site

from turnkeeper.core.limits import FETCH_FAILED_S, SKILL_BYTES_MAX, SKILL_FRESH_S, SKILL_INDEX_MAX
from turnkeeper.workspace.skill_downloads import Downloaded, SkillDownloads

TEXT = b"---\nname: tide\ndescription: Tides\n---\nLook.\n"


def index(*skills: object) -> Page:
    return Page(json.dumps({"skills": skills}).encode(), "application/json")


def tide(**more: object) -> dict[str, object]:
    return {"name": "tide", "files": ["SKILL.md", "data/table.csv"], **more}


PAGES: Mapping[str, Page] = {
    "/s/index.json": index(tide()),
    "/s/tide/SKILL.md": Page(TEXT),
    "/s/tide/data/table.csv": Page(b"6:12"),
}


class Clock:
    """A time that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Home:
    """A data directory and what downloads into it."""

    def __init__(self, path: Path) -> None:
        self.environ = {"HOME": str(path)}
        self.clock = Clock()
        self.downloads = SkillDownloads(self.environ, clock=self.clock)

    async def get(self, *urls: str, private: bool = True) -> Downloaded:
        return await self.downloads.folders(urls, private=private)

    async def later(self, seconds: float, *urls: str) -> Downloaded:
        self.clock.now += seconds
        return await self.get(*urls)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


async def test_the_files_of_an_index_are_kept_where_commands_cannot_write(home: Home, tmp_path: Path) -> None:
    async with site(PAGES) as served:
        [folder], problems = await home.get(f"{served.url}/s")
        assert (await home.get(f"{served.url}/s")).folders == (folder,)
        assert len(served.requests) == 3
    assert folder.is_relative_to(tmp_path / ".local/share/turnkeeper/skills")
    assert names(folder) == ["tide/SKILL.md", "tide/data/table.csv"]
    assert ((folder / "tide/SKILL.md").read_bytes(), problems) == (TEXT, ())


async def test_an_unchanged_version_is_not_fetched_again_and_a_new_one_is(home: Home) -> None:
    pages = {**PAGES, "/s/index.json": index(tide(version="1"))}
    async with site(pages) as served:
        url = f"{served.url}/s/"
        [first], _ = await home.get(url)
        [second], _ = await home.later(SKILL_FRESH_S, url)
        assert (second, len(served.requests)) == (first, 4)
        pages |= {"/s/index.json": index(tide(version="2")), "/s/tide/data/table.csv": Page(b"7:00")}
        [third], _ = await home.later(SKILL_FRESH_S, url)
        assert (third != first, first.is_dir(), len(served.requests)) == (True, True, 7)
        assert (third / "tide/data/table.csv").read_bytes() == b"7:00"
        pages |= {"/s/index.json": index(tide(version="3")), "/s/tide/data/table.csv": Page(b"8:00")}
        await home.later(SKILL_FRESH_S, url)
        assert (first.is_dir(), third.is_dir()) == (False, True)


async def test_a_failure_leaves_the_last_download_and_is_tried_again_later(home: Home) -> None:
    pages = dict(PAGES)
    async with site(pages) as served:
        url = f"{served.url}/s"
        [folder], _ = await home.get(url)
        pages["/s/index.json"] = Page(status="500 Oops")
        found = await home.later(SKILL_FRESH_S, url)
        assert found.folders == (folder,)
        assert "no skills were downloaded" in found.problems[0]
        asked = len(served.requests)
        await home.later(FETCH_FAILED_S - 1, url)
        assert len(served.requests) == asked
        pages["/s/index.json"] = PAGES["/s/index.json"]
        assert await home.later(1, url) == Downloaded((folder,), ())


async def test_addresses_of_this_machine_are_refused_also_after_a_redirection(home: Home) -> None:
    async with site(PAGES) as served:
        found = await home.get(f"{served.url}/s", private=False)
        assert (found.folders, served.requests) == ((), [])
        assert "private networks are not fetched" in found.problems[0]
    async with site({"/s/index.json": redirect("file:///etc/passwd")}) as served:
        assert "only http and https" in (await home.get(f"{served.url}/s")).problems[0]
    assert "only http and https" in (await home.get("file:///etc")).problems[0]


@pytest.mark.parametrize(
    ("skill", "why"),
    [
        ({"name": "../up", "files": ["SKILL.md"]}, "it cannot have this name"),
        ({"name": "a", "files": ["readme.md"]}, "it has no SKILL.md"),
        ({"name": "a", "files": ["SKILL.md", "../../x"]}, "'../../x' is no path"),
        ({"name": "a", "files": ["SKILL.md", "/etc/x"]}, "'/etc/x' is no path"),
        ({"name": "a", "files": ["SKILL.md", "a\\..\\x"]}, "is no path"),
        ({"name": "a", "files": ["SKILL.md"]}, "answered with status 404"),
        ({"name": "big", "files": ["SKILL.md"]}, f"sends more than {SKILL_BYTES_MAX} bytes"),
        ({"name": "a", "files": ["SKILL.md", *(f"{n}" for n in range(600))]}, "more than 500 files"),
    ],
)
async def test_a_skill_that_is_wrong_is_left_out_and_the_others_are_there(
    home: Home, tmp_path: Path, skill: dict[str, object], why: str
) -> None:
    pages = {**PAGES, "/s/index.json": index(skill, tide()), "/s/big/SKILL.md": Page(b"x" * (SKILL_BYTES_MAX + 1))}
    async with site(pages) as served:
        [folder], problems = await home.get(f"{served.url}/s")
    assert names(folder) == ["tide/SKILL.md", "tide/data/table.csv"]
    assert why in problems[0]
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "page",
    [Page(b"no json"), Page(b"[]"), Page(b'{"skills": 7}'), Page(b'{"skills": [{"files": []}]}'), Page(b"\xff")],
)
async def test_an_index_that_is_none_gives_nothing(home: Home, page: Page) -> None:
    async with site({"/s/index.json": page}) as served:
        found = await home.get(f"{served.url}/s")
    assert (found.folders, len(found.problems)) == ((), 1)


async def test_of_a_very_long_index_the_beginning_is_used(home: Home) -> None:
    skills = [{"name": f"s{n}", "files": ["SKILL.md"]} for n in range(SKILL_INDEX_MAX + 1)]
    pages = {f"/s/s{n}/SKILL.md": Page(TEXT) for n in range(SKILL_INDEX_MAX + 1)}
    async with site({**pages, "/s/index.json": index(*skills)}) as served:
        [folder], problems = await home.get(f"{served.url}/s")
    assert (len(names(folder)), len(problems)) == (SKILL_INDEX_MAX, 1)


async def test_a_turn_waits_shortly_for_the_first_download_and_for_no_other(tmp_path: Path) -> None:
    """An address that never answers would otherwise hold up every turn; the deadline is the test's."""
    async with serving(stalling()) as server, anyio.create_task_group() as group:
        for wait_s, deadline_s in ((0.01, 30), (600, 0.1)):
            downloads = SkillDownloads({"HOME": str(tmp_path)}, group, first_wait_s=wait_s)
            with anyio.move_on_after(deadline_s) as limit:
                assert await downloads.folders([server.url], private=True) == Downloaded()
            assert limit.cancelled_caught is (wait_s == 600)
        with anyio.fail_after(30):
            assert await downloads.folders([server.url], private=True) == Downloaded()
        group.cancel_scope.cancel()


async def test_what_was_downloaded_before_is_used_while_it_is_fetched_again(home: Home) -> None:
    pages = dict(PAGES)
    async with site(pages) as served:
        url = f"{served.url}/s"
        [folder], _ = await home.get(url)
        pages["/s/tide/data/table.csv"] = Page(b"7:00")
        async with anyio.create_task_group() as group:
            downloads = SkillDownloads(home.environ, group, first_wait_s=60)
            assert (await downloads.folders([url], private=True)).folders == (folder,)
        [newer], _ = await downloads.folders([url], private=True)
        assert (newer / "tide/data/table.csv").read_bytes() == b"7:00"
