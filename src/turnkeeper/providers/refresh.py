"""Refresh: fetches a newer catalogue from a URL, only on the user's request."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.core import flags
from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.models_dev import reduced
from turnkeeper.workspace import files, paths

BYTES_MAX: Final = 64 * 1024 * 1024
TIMEOUT_S: Final = 60.0
"""Timeout without any data from the host."""
TOTAL_S: Final = 600.0
"""Timeout for a whole answer."""


def location(environ: Mapping[str, str]) -> Path:
    """The path of the refreshed catalogue. The file may be deleted at any time.

    It decides where keys are sent, so it is not in a cache directory, which a model's commands can write.
    """
    return paths.data(environ) / "models.json.gz"


def catalogue_file(environ: Mapping[str, str]) -> Path | None:
    """The catalogue to use in place of the shipped one: that of a variable, or a refreshed one; None without one.

    Raises Invalid if the variable names no file.
    """
    if named := flags.MODELS_PATH.value(environ):
        if not Path(named).is_file():
            raise Invalid(f"{' or '.join(flags.MODELS_PATH.names)}: there is no file {named!r}")
        return Path(named)
    refreshed = location(environ)
    return refreshed if refreshed.exists() else None


def address(configured: str | None, environ: Mapping[str, str]) -> str:
    """The address that the catalogue is fetched from. Raises Invalid if none is set."""
    found = configured or flags.MODELS_URL.value(environ)
    if found is None:
        raise Invalid(
            "there is no address of a catalogue; set catalog.url or OPENCODE_MODELS_URL, or use --refresh URL"
        )
    return found


async def refresh(url: str, target: Path) -> int:
    """Fetch models.dev's JSON from ``url`` and write a reduced copy to ``target``; returns its size in bytes.

    Raises Invalid, and leaves ``target`` unchanged, if the answer is not a catalogue.
    """
    packed = gzip.compress(reduced(await fetched(url)), compresslevel=9, mtime=0)
    target.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(target) as file:
        file.write(packed)
    return len(packed)


async def fetched(
    url: str, headers: Mapping[str, str] | None = None, *, bytes_max: int = BYTES_MAX, follows: bool = True
) -> bytes:
    """The content at an address. ``follows``: redirects are followed. Raises Invalid."""
    import anyio
    import httpx2  # Imported here: it takes longer to load than most commands take to run.

    content = bytearray()
    try:
        with anyio.fail_after(TOTAL_S):
            async with (
                httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=follows) as client,
                client.stream("GET", url, headers=dict(headers or {})) as response,
            ):
                if response.status_code != 200:
                    leads = f", which leads to {to}" if (to := response.headers.get("location")) else ""
                    raise Invalid(f"{url} answered with status {response.status_code}{leads}")
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > bytes_max:
                        raise Invalid(f"{url} sends more than {bytes_max} bytes")
    except TimeoutError as error:
        raise Invalid(f"{url} did not end its answer within {TOTAL_S:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Invalid(f"{url} cannot be fetched: {error}") from error
    return bytes(content)
