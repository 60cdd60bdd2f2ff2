"""MCP servers that lie: what they offer is cut to what a request can hold, and costs nothing else."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from turnkeeper.core.limits import MCP_PAGES_MAX, MCP_TOOLS_BYTES_MAX
from turnkeeper.core.mcp import McpOutput, offer_names, output, printable, resource_names, tool_names
from turnkeeper.model.config import McpConfig
from turnkeeper.model.mcp import McpConnected, McpFailed
from turnkeeper.model.value import encode
from turnkeeper.tools.mcp_tools import McpTools
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.mcp_offers import ANY_INPUT
from turnkeeper.workspace.mcp_server import McpPlace, McpServer

HOSTILE = Path(__file__).parents[1] / "support/mcp_hostile.py"


@asynccontextmanager
async def lying(
    manner: str, directory: Path, *, is_taken: bool = True, call_ms: int = 60_000
) -> AsyncIterator[McpServer]:
    config = McpConfig(command=(sys.executable, str(HOSTILE), manner))
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            server = McpServer("sea", config, McpPlace(directory, {"PATH": os.environ["PATH"]}, call_ms), start_s=60)
            group.start_soon(server.serve)
            await server.wait_first()
            assert isinstance(server.status, McpConnected) is is_taken, server.errors.text
            yield server
            group.cancel_scope.cancel()


async def test_names_are_made_such_as_every_provider_takes(tmp_path: Path) -> None:
    async with lying("names", tmp_path) as server:
        assert [tool.name for tool in server.tools] == ["a b", "a.b", "a/b", "bash", "same", "x" * 200, "ünï"]
        toolbox = Toolbox(McpTools().of([server]))
    names = toolbox.names
    assert [name for name in names if name.startswith("sea_a_b")] == sorted(
        name for name in tool_names("sea", ["a b", "a.b", "a/b"])
    )
    assert "bash" not in names
    assert max(map(len, names)) == 64


async def test_a_schema_that_no_provider_takes_is_replaced(tmp_path: Path) -> None:
    async with lying("schemas", tmp_path) as server:
        schemas = {tool.name: tool.schema for tool in server.tools}
    assert schemas["good"] == {"type": "object", "properties": {"x": {"type": "string"}}}
    assert {name for name, schema in schemas.items() if schema == ANY_INPUT} == set(schemas) - {"good"}


async def test_a_list_that_cannot_be_read_is_a_failure_of_one_line(tmp_path: Path) -> None:
    async with lying("listless", tmp_path, is_taken=False) as server:
        assert isinstance(server.status, McpFailed)
        assert "validation error" in server.status.error
        assert server.status.error.isprintable()


async def test_one_invalid_item_of_a_list_costs_that_item_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with lying("unreadable", tmp_path) as server:
        assert [tool.name for tool in server.tools] == ["a", "b"]
        assert [one.name for one in server.offers.prompts] == ["good"]
        assert isinstance(server.status, McpConnected)
        assert [(one.kind, one.name, one.reason) for one in server.status.left_out] == [
            ("prompt", "(no name)", "name: Input should be a valid string"),
            ("tool", "(no name)", "Input should be a valid dictionary or instance of Tool"),
            ("tool", "array", "inputSchema.type: Input should be 'object'"),
            ("tool", "c", "inputSchema: Input should be a valid dictionary or instance of InputSchema"),
            ("tool", "esc", "inputSchema: Input should be a valid dictionary or instance of InputSchema"),
            ("tool", "number", "inputSchema.properties: Input should be a valid dictionary"),
        ]
        first = server.offers
        while server.offers is first:  # It is listed again, after a change that is none.
            assert output(await server.call("a", {})).text
        assert server.tools is first.tools
        assert server.offers.left_out == first.left_out
    warned = [one for one in caplog.messages if "the tool 'array' is left out (inputSchema.type: " in one]
    assert len(warned) == 1, caplog.messages


async def test_pages_without_end_are_read_to_a_limit(tmp_path: Path) -> None:
    async with lying("pages", tmp_path) as server:
        assert len(server.tools) == MCP_PAGES_MAX
    async with lying("circle", tmp_path) as server:
        assert [tool.name for tool in server.tools] == ["t"]


async def test_a_server_with_too_many_tools_has_some_of_them(tmp_path: Path) -> None:
    async with lying("many", tmp_path) as server:
        assert 0 < len(server.tools) < 512
        assert len(encode(server.tools)) < MCP_TOOLS_BYTES_MAX + 10_000


async def test_what_steers_a_terminal_is_left_out(tmp_path: Path) -> None:
    async with lying("says", tmp_path) as server:
        [tool] = server.tools
        assert tool.description.startswith("red yyy")
        assert len(tool.description) == 8192
        assert server.offers.instructions is not None
        assert "\x1b" not in server.offers.instructions
        assert [one.name for one in server.offers.prompts] == ["a b", "a.b"]
        assert server.offers.resources == ()
    assert offer_names("sea", ["a b", "a.b"]).keys() == {
        "sea:a_b",
        next(k for k in offer_names("sea", ["a b", "a.b"]) if k != "sea:a_b"),
    }


async def test_a_server_that_changes_its_tools_all_the_time_is_asked_once_a_second(tmp_path: Path) -> None:
    async with lying("restless", tmp_path) as server:
        for _ in range(20):
            await server.call("t", {})
        assert server.status == McpConnected()
        assert len(server.tools) == 1


async def test_resources_with_one_name_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    async with lying("namesakes", tmp_path) as server:
        offers = server.offers
    named = resource_names("sea", offers.resources)
    assert [one.uri for one in offers.resources] == ["docs://a/index", "docs://b/index", "docs://c/index"]
    assert [one.uri_template for one in offers.templates] == ["a://{day}", "b://{day}"]
    assert (named["sea:index"].uri, len(named)) == ("docs://a/index", 3)
    assert {name.rpartition("_")[0] for name in named} == {"", "sea:index"}


@pytest.mark.parametrize("name", ["number", "nothing", "text", "blocks", "picture", "escapes"])
async def test_a_result_that_is_none_is_a_failure_or_a_text(name: str, tmp_path: Path) -> None:
    # The client takes a number for no answer at all.
    async with lying("results", tmp_path, call_ms=2000 if name == "number" else 60_000) as server:
        try:
            found = output(await server.call(name, {}))
        except McpFailure as failure:
            found = McpOutput(str(failure))
        assert found.text or found.files
        assert server.tools


@pytest.mark.parametrize("name", ["text", "blocks", "misfit", "absent"])
async def test_a_result_that_cannot_be_used_costs_the_call_and_not_the_server(name: str, tmp_path: Path) -> None:
    async with lying("results", tmp_path) as server:
        before = output(await server.call("process", {}))
        with pytest.raises(McpFailure, match="sea carried out the call, and its answer cannot be used: "):
            await server.call(name, {})
        assert output(await server.call("process", {})) == before
        assert server.status == McpConnected()


def test_printable_text_keeps_lines_and_letters() -> None:
    assert printable("a\n\tb ü\x1b[1;31mred\x1b[0m\x07\x1b]8;;x\x1b\\link\ud800") == "a\n\tb üredlink"
