"""Whatever is sent, within the document and beside it: no answer is a defect, and each has the shape it is said to."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.from_thread
import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.openapi import from_dict
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from turnkeeper.providers.scripted import Scripted
from turnkeeper.server import openapi, routes, serving
from turnkeeper.server.route import Route
from turnkeeper.server.service import ServerOptions, Service
from turnkeeper.testing.harness import StageOptions as Staging
from turnkeeper.testing.harness import stage

EXAMPLES = 4
EXAMPLES_SOAK = 60
DEADLINE_S = 60

LEFT_OUT = {"session.shell": "it would run what was made up", "v2.session.wait": "it has nothing to wait for"}

ROUTES = [one for one in routes.load() if one.media == "application/json" and one.operation not in LEFT_OUT]
DOCUMENT = from_dict(openapi.document(routes.load()))
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]


@asynccontextmanager
async def a_server(directory: Path) -> AsyncIterator[str]:
    staging = Staging(ask=None, environ={"PATH": ""})
    async with stage("memory:", directory, Scripted().says("yes").forever(), staging) as opened:
        bound = serving.listen("127.0.0.1", 0)
        async with serving.serving(
            Service(opened.tk, directory, ServerOptions(environ={"HOME": str(directory)})), bound
        ):
            yield serving.address(bound)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(a_server(tmp_path_factory.mktemp("place"))) as address,
    ):
        yield address


def send_anything(route: Route, url: str, examples: int) -> None:
    """Send requests that schemathesis makes up for a route, half of them about a session that is there."""
    operation = DOCUMENT[route.path.replace("/*", "/{path}")][route.method]

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_live=st.booleans())
    def send(case: Any, is_live: bool) -> None:
        if is_live and "sessionID" in case.path_parameters:
            case.path_parameters["sessionID"] = httpx2.post(f"{url}/session", json={}).json()["id"]
        case.call_and_validate(base_url=url, checks=CHECKS, timeout=DEADLINE_S)

    send()


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: one.operation)
def test_whatever_is_sent_no_answer_is_a_defect(route: Route, url: str) -> None:
    send_anything(route, url, EXAMPLES)


@pytest.mark.soak
@pytest.mark.parametrize("route", ROUTES, ids=lambda one: one.operation)
def test_however_much_is_sent_no_answer_is_a_defect(route: Route, url: str) -> None:
    send_anything(route, url, EXAMPLES_SOAK)
