"""Instructions from an address: fetched briefly, remembered for a while, and failures are remembered too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from turnkeeper.core.limits import FETCH_FAILED_S, FETCH_FRESH_S, INSTRUCTION_BYTES_MAX
from turnkeeper.workspace.fetch import Fetcher


@dataclass
class Site:
    """A server on loopback that says one thing at a time."""

    url: str = ""
    answer: bytes = b""
    asked: int = 0
    hangs: bool = False

    def says(self, text: str, status: str = "200 OK", *headers: str) -> None:
        body = text.encode()
        rows = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers, "", ""]
        self.answer = "\r\n".join(rows).encode() + body


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()

    async def handle(stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream):  # Who gives up may not have asked yet.
                await stream.receive()
            site.asked += 1
            if site.hangs:
                await anyio.sleep_forever()
            await stream.send(site.answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        site.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/rules.md"
        group.start_soon(listener.serve, handle)
        yield site
        group.cancel_scope.cancel()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as opened:
        yield opened


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_address_is_asked_again_when_its_answer_is_no_longer_fresh(site: Site) -> None:
    clock = Clock()
    fetcher = Fetcher(clock)
    site.says("  Be kind.\n")
    assert [await fetcher.text(site.url) for _ in range(3)] == ["Be kind."] * 3
    site.says("Be brief.")
    clock.now = FETCH_FRESH_S - 1
    assert (await fetcher.text(site.url), site.asked) == ("Be kind.", 1)
    clock.now = FETCH_FRESH_S
    assert (await fetcher.text(site.url), site.asked) == ("Be brief.", 2)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "403 Forbidden"])
async def test_an_address_that_fails_is_an_error_and_left_alone_for_a_while(site: Site, status: str) -> None:
    clock = Clock()
    fetcher = Fetcher(clock)
    site.says("no", status)
    for _ in range(3):
        with pytest.raises(OSError, match=status.split()[0]):
            await fetcher.text(site.url)
    assert site.asked == 1
    clock.now = FETCH_FAILED_S
    site.says("Be kind.")
    assert (await fetcher.text(site.url), site.asked) == ("Be kind.", 2)


async def test_an_address_that_does_not_answer_is_given_up_and_left_alone(site: Site) -> None:
    fetcher = Fetcher(Clock(), timeout_s=0.05)
    site.hangs = True
    for _ in range(2):
        with pytest.raises(OSError, match="TimeoutError"):
            await fetcher.text(site.url)
    assert site.asked <= 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "http://[::bad", "http://", "https://127.0.0.1:1/"])
async def test_an_address_where_nobody_is_or_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(OSError, match="http"):
        await Fetcher().text(url)


async def test_an_endless_answer_is_cut(site: Site) -> None:
    site.says("x" * (INSTRUCTION_BYTES_MAX * 3))
    assert len(await Fetcher().text(site.url)) == INSTRUCTION_BYTES_MAX


async def test_a_moved_address_is_followed(site: Site) -> None:
    site.says("", "302 Found", "location: /elsewhere.md")
    with pytest.raises(OSError, match="redirects"):
        await Fetcher().text(site.url)
    assert site.asked > 1
