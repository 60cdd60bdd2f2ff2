"""Web: fetch one address of the internet, bounded in time and size, and keep away from this machine and its network.

Every address is checked that a connection is made to, not only the name it was asked for by: each host is resolved
here, and the request goes to the resolved address. Redirections are followed one by one, each checked alike. Where the
environment names a proxy the proxy connects, so that only what resolves here can be checked.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.request import getproxies, proxy_bypass

import anyio

from turnkeeper.core.limits import FETCH_REDIRECTS_MAX, FETCHED_BYTES_MAX
from turnkeeper.model.refusal import Forbidden, Invalid
from turnkeeper.model.value import Value
from turnkeeper.model.version import __version__

if TYPE_CHECKING:
    import httpx2

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[Address]]]
"""The addresses of a host. Raises OSError if it has none."""

OWN_AGENT: Final = f"turnkeeper/{__version__}"
BROWSER_AGENT: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36"
)
"""User agent of a browser: many sites answer only browsers."""

PORT_MAX: Final = 65535
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class Fetched(Value):
    """The response of an address."""

    url: str
    """The address that answered, after all redirections."""
    mime: str
    charset: str | None
    content: bytes


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet: not of this machine, its link or a private network.

    An IPv6 address that embeds an IPv4 address is judged as the IPv4 address.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


async def resolved(host: str, port: int) -> list[Address]:
    """The addresses of a host, resolved by the system."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


async def fetch(
    url: str,
    *,
    timeout_s: float,
    accept: str = "*/*",
    bytes_max: int = FETCHED_BYTES_MAX,
    may_connect: Callable[[Address], bool] = is_public,
    resolve: Resolve = resolved,
) -> Fetched:
    """The response of an address. Raises Forbidden if it may not be reached, and Invalid for any other failure."""
    # Imported here: most sessions fetch nothing.
    import httpx2

    try:
        with anyio.fail_after(timeout_s):
            async with httpx2.AsyncClient(timeout=None, follow_redirects=False) as client:
                fetching = _Fetching(
                    client, {"accept": accept, "accept-language": "en"}, bytes_max, may_connect, resolve
                )
                return await fetching.follow(httpx2.URL(url))
    except TimeoutError as error:
        raise Invalid(f"{url} did not answer within {timeout_s:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError, ValueError, OSError) as error:
        raise Invalid(f"{url} cannot be fetched: {str(error) or type(error).__name__}") from error


class _Fetching:
    """One fetch, from the first address to the one that answers."""

    def __init__(
        self,
        client: "httpx2.AsyncClient",
        headers: dict[str, str],
        bytes_max: int,
        may_connect: Callable[[Address], bool],
        resolve: Resolve,
    ) -> None:
        self._client, self._headers, self._bytes_max = client, headers, bytes_max
        self._may_connect, self._resolve = may_connect, resolve

    async def follow(self, url: "httpx2.URL") -> Fetched:
        for _ in range(FETCH_REDIRECTS_MAX + 1):
            answer = await self._ask(url)
            if not isinstance(answer, str):
                return answer
            url = url.join(answer)
        raise Invalid(f"it redirects more than {FETCH_REDIRECTS_MAX} times")

    async def _ask(self, url: "httpx2.URL", agent: str = BROWSER_AGENT) -> Fetched | str:
        """The response of one address, or the target of its redirection."""
        if url.scheme not in ("http", "https") or not url.host:
            raise Invalid(f"only http and https addresses are fetched, not {str(url)!r:.200}")
        headers = {**self._headers, "user-agent": agent, "host": url.netloc.decode("ascii").rpartition("@")[2]}
        target, extensions = await self._target(url)
        async with self._client.stream("GET", target, headers=headers, extensions=extensions) as response:
            if response.status_code in _REDIRECTS and (location := response.headers.get("location")):
                return str(location)
            is_challenge = response.status_code == 403 and response.headers.get("cf-mitigated") == "challenge"
            if not (is_challenge and agent == BROWSER_AGENT):
                return await self._content(url, response)
        # The challenge is only for programs that claim to be a browser.
        return await self._ask(url, OWN_AGENT)

    async def _target(self, url: "httpx2.URL") -> tuple["httpx2.URL", dict[str, str]]:
        """The URL of the request, with the resolved and checked address of the host."""
        port = url.port or (443 if url.scheme == "https" else 80)
        if port > PORT_MAX:
            raise Invalid(f"{str(url)!r:.200} has a port over {PORT_MAX}")
        is_proxied = url.scheme in getproxies() and not proxy_bypass(url.host)
        try:
            addresses = await self._resolve(url.host, port)
        except OSError as error:
            if is_proxied:
                return url, {}
            raise Invalid(f"the host {url.host!r} is not known: {error.strerror or error}") from error
        refused = [address for address in addresses if not self._may_connect(address)]
        if refused or not addresses:
            named = f"{url.host} is at {refused[0]}, and " if refused and str(refused[0]) != url.host else ""
            raise Forbidden(
                f"{named}addresses of this machine and of private networks are not fetched, unless the setting "
                "webfetch.private is true"
            )
        if is_proxied:
            return url, {}
        return url.copy_with(host=str(addresses[0])), {"sni_hostname": url.host}

    async def _content(self, url: "httpx2.URL", response: "httpx2.Response") -> Fetched:
        if response.status_code != 200:
            raise Invalid(f"{url} answered with status {response.status_code} {response.reason_phrase}".rstrip())
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > self._bytes_max:
                raise Invalid(f"{url} sends more than {self._bytes_max} bytes")
        mime = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        return Fetched(url=str(url), mime=mime, charset=response.charset_encoding, content=bytes(content))
