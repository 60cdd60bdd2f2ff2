"""Site: the files of the web page, read from the package at their first use, each with its type and ETag."""

from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from turnkeeper.model.refusal import NotFound
from turnkeeper.server.response import HttpResponse, Pairs
from turnkeeper.server.service import Service

FOLDER: Final = "web"
"""The folder with the page's files, next to this module."""

INDEX: Final = "index.html"

TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}

POLICY: Final = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify turnkeeper"
)
"""The content security policy of the page: its own files, and nothing from a transcript."""

HEADERS: Final[Pairs] = (
    (b"cache-control", b"no-cache"),
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


class SiteFile(NamedTuple):
    """A file of the page."""

    body: bytes
    type: str
    tag: str


class Site:
    """The files of the page: ``service.part(Site)``."""

    def __init__(self, _: Service) -> None:
        self._files: dict[str, SiteFile] = {}

    def response(self, name: str, known: str | None) -> HttpResponse:
        """The file, or 304 if the client has it: ``known`` is its header ``If-None-Match``. Raises NotFound."""
        file = self._file(name)
        headers = (*HEADERS, (b"etag", file.tag.encode()))
        if known is not None and file.tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
            return HttpResponse(304, headers=headers)
        return HttpResponse(200, file.body, ((b"content-type", file.type.encode()), *headers))

    def _file(self, name: str) -> SiteFile:
        if (known := self._files.get(name)) is not None:
            return known
        place = files("turnkeeper.server").joinpath(FOLDER)
        for segment in name.split("/"):
            # A segment is looked for among the folder's own names, so no path leads out of the package.
            found = [one for one in place.iterdir() if one.name == segment] if place.is_dir() else []
            if not found:
                raise NotFound(f"the page has no file {name!r}")
            place = found[0]
        kind = TYPES.get(name.rpartition(".")[2])
        if kind is None or not place.is_file():
            raise NotFound(f"the page has no file {name!r}")
        body = place.read_bytes()
        self._files[name] = SiteFile(body, kind, f'"{sha256(body).hexdigest()[:32]}"')
        return self._files[name]
