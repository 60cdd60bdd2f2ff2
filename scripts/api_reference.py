"""Write docs/reference/api.md from the server's table of routes; with --check, fail if the page differs.

Beside it is held scripts/opencode_operations.txt: method, path, id and tier of each operation of opencode's own
document, so that what is not served yet is on the page too.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from turnkeeper.server import routes
from turnkeeper.server.errors import status_of
from turnkeeper.server.route import Route

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/api.md"
OPERATIONS = ROOT / "scripts/opencode_operations.txt"

INTRODUCTION = """\
# The HTTP API

<!-- Written by scripts/api_reference.py from the server's table of routes; `make check` compares. -->

`turnkeeper serve` speaks the API of opencode 1.18, so that its terminal UI, its web page and its SDKs work with it
unchanged. `GET /doc` gives the same as an OpenAPI 3.1 document, with every type; events are described under
[streams](streams.md), and values under [shapes](shapes.md).

**Directories.** A request is about the directory in its query (`directory`; on `/api` `location[directory]`), else in
the header `x-opencode-directory` (percent-encoded), else the one the server was started in. A session's own directory
goes before all of them. One server serves any number of directories.

**Who may call.** With `TURNKEEPER_SERVER_PASSWORD` or `OPENCODE_SERVER_PASSWORD` set, everybody who knows it: by basic
authentication (user `opencode`, or what `TURNKEEPER_SERVER_USERNAME` says) or by the query
`auth_token=base64(user:password)`. A server that only this machine can reach answers only under a name of this machine.
Pages of other origins than this machine's, opencode's and those named by `--cors` cannot read answers, and what they
send is not done.

**Refusals** are JSON. The first generation says `{"name", "data": {"message"}}` or `{"_tag", "message"}`; the second,
under `/api`, `{"_tag", "message"}`. 400: it makes no sense. 401: no password. 403: not from there. 404: there is no
such thing, or it is not served. 408 and 413: the body came too slowly, or was too large. 409: not while it runs, or it
clashes with what is there. 500: a bug; the log has it under the reference in the answer.

**Tiers.** 1: what clients need to start and to have a prompt answered. 2: the rest of a session's life. 3: the second
generation. 4: everything else. What is not served is answered with 404, which clients take as a missing feature.
"""


class Operation(NamedTuple):
    """One operation of opencode's document."""

    method: str
    path: str
    id: str
    tier: int


def operations() -> list[Operation]:
    """All of them."""
    lines = OPERATIONS.read_text("utf-8").splitlines()
    return [Operation(method, path, id, int(tier)) for method, path, id, tier in map(str.split, lines)]


def page() -> str:
    """The page as it should be."""
    served = {route.operation: route for route in routes.load()}
    return "\n".join([INTRODUCTION, *_counts(served), *_tiers(served), *_own(served)])


def _counts(served: dict[str, Route]) -> Iterator[str]:
    yield "| Tier | Operations | Served |\n|---|---|---|"
    for tier in (1, 2, 3, 4):
        known = [one for one in operations() if one.tier == tier]
        yield f"| {tier} | {len(known)} | {sum(one.id in served for one in known)} |"


def _tiers(served: dict[str, Route]) -> Iterator[str]:
    for tier in (1, 2, 3, 4):
        yield f"\n## Tier {tier}\n\n| Operation | Id | Status | What it does |\n|---|---|---|---|"
        for one in operations():
            if one.tier == tier:
                yield _row(one, served.get(one.id))


def _row(one: Operation, route: Route | None) -> str:
    if route is None:
        return f"| `{one.method} {one.path}` | `{one.id}` | not yet: 404 | |"
    refusals = sorted({status_of(kind) for kind in route.refusals})
    status = ", ".join(map(str, [route.status, *refusals]))
    return f"| `{one.method} {one.path}` | `{one.id}` | {status} | {route.summary} |"


def _own(served: dict[str, Route]) -> Iterator[str]:
    yield "\n## Ours alone\n\n| Operation | Id | What it does |\n|---|---|---|"
    known = {one.id for one in operations()}
    for route in served.values():
        if route.operation not in known:
            yield f"| `{route.method} {route.path}` | `{route.operation}` | {route.summary} |"
    yield ""


def main(arguments: list[str]) -> int:
    """Write the page, or say whether it is as it should be."""
    expected = page()
    if "--check" not in arguments:
        PAGE.write_text(expected, "utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text("utf-8") == expected:
        return 0
    print("docs/reference/api.md: differs from the routes; run scripts/api_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
