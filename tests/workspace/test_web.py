"""Fetching from the web: bounded, redirections followed, and never an address that may not be reached."""

import gzip
import ipaddress

import pytest
from loopback import serving, stalling
from web_site import Page, redirect, site

from turnkeeper.model.refusal import Forbidden, Invalid, Refusal
from turnkeeper.workspace import web
from turnkeeper.workspace.web import Address, Fetched

HERE = ipaddress.ip_address("127.0.0.1")


async def fetched(
    url: str, *, timeout_s: float = 30, bytes_max: int = 1000, hosts: dict[str, str] | None = None
) -> Fetched:
    """A fetch that may connect to one address only, and resolves names of its own."""

    async def resolve(host: str, port: int) -> list[Address]:
        known = (hosts or {}).get(host, host)
        return [ipaddress.ip_address(one) for one in known.split()]

    return await web.fetch(
        url, timeout_s=timeout_s, bytes_max=bytes_max, may_connect=lambda one: one == HERE, resolve=resolve
    )


async def refusal(page: Page, hosts: dict[str, str] | None = None) -> Refusal:
    """What the fetch of a site with one page is refused with."""
    found: Refusal | None = None
    async with site({"/": page}) as served:
        try:
            await fetched(f"{served.url}/", hosts=hosts)
        except Refusal as error:
            found = error
    assert found is not None
    return found


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "100.100.100.200", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1"),
    ],
)
def test_this_machine_and_private_networks_are_not_public(address: str) -> None:
    assert not web.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert web.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/", "http://2130706433:1/", "http://0x7f.1:1/"]
)
async def test_without_further_ado_this_machine_is_refused(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        await web.fetch(url, timeout_s=30)
    assert isinstance(refused.value, Forbidden) or "not known" in str(refused.value)


async def test_a_page_comes_with_its_type_and_the_request_names_its_host() -> None:
    async with site({"/a?b=c": Page(b"h\xe9", "text/plain; charset=latin-1")}) as served:
        port = served.url.rpartition(":")[2]
        answer = await fetched(f"http://page.test:{port}/a?b=c#d", hosts={"page.test": "127.0.0.1"})
        assert (answer.mime, answer.charset, answer.content) == ("text/plain", "latin-1", b"h\xe9")
        [request] = served.requests
        assert request.headers["host"] == f"page.test:{port}"
        assert request.headers["user-agent"] == web.BROWSER_AGENT


async def test_redirections_are_followed_and_the_last_address_is_named() -> None:
    pages = {
        "/": redirect("/two", "301 Moved"),
        "/two": redirect("three?x", "307 Temporary"),
        "/three?x": Page(b"there"),
    }
    async with site(pages) as served:
        answer = await fetched(f"{served.url}/")
        assert (answer.url, answer.content) == (f"{served.url}/three?x", b"there")


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.2:1/", "http://hidden.test/", "//127.0.0.2/", "http://two.test/", "http://user@127.0.0.2"],
)
async def test_a_redirection_to_an_address_that_may_not_be_reached_is_refused(location: str) -> None:
    hosts = {"hidden.test": "127.0.0.2", "two.test": "127.0.0.1 127.0.0.2"}
    assert isinstance(await refusal(redirect(location), hosts), Forbidden)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x"])
async def test_a_redirection_to_another_scheme_is_refused(location: str) -> None:
    assert "only http and https" in str(await refusal(redirect(location)))


async def test_redirections_in_a_circle_end() -> None:
    assert "redirects more than 10 times" in str(await refusal(redirect("/")))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (Page(status="500 Oops"), "answered with status 500 Oops"),
        (Page(b"x" * 1001), "sends more than 1000 bytes"),
        (Page(gzip.compress(b"x" * 100_000), headers={"content-encoding": "gzip"}), "sends more than 1000 bytes"),
        (Page(b"no gzip", headers={"content-encoding": "gzip"}), "cannot be fetched"),
    ],
)
async def test_what_is_no_page_is_refused_in_words(page: Page, words: str) -> None:
    assert words in str(await refusal(page))


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    raised: Refusal | None = None
    async with serving(stalling(b"HTTP/1.1 200 OK\r\n")) as served:
        try:
            await fetched(served.url, timeout_s=0.1)
        except Invalid as error:
            raised = error
    assert "did not answer within 0.1 s" in str(raised)


async def test_a_challenge_for_browsers_is_met_with_our_own_name() -> None:
    challenge = Page(status="403 Forbidden", headers={"cf-mitigated": "challenge"})
    async with site({"/": challenge}) as served:
        with pytest.raises(Invalid, match="403"):
            await fetched(f"{served.url}/")
        assert [request.headers["user-agent"] for request in served.requests] == [web.BROWSER_AGENT, web.OWN_AGENT]
