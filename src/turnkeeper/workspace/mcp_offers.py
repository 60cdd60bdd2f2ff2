"""Offers of an MCP server: lists of tools, prompts and resources, read page by page and cut to what a request can hold.

A server may send anything: any number of names and pages, and schemas that no provider accepts. One invalid schema
would make providers refuse every request, so it is replaced by one that allows any input.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from turnkeeper.core.limits import (
    MCP_DESCRIPTION_CHARS_MAX,
    MCP_NAME_CHARS_MAX,
    MCP_PAGES_MAX,
    MCP_SCHEMA_BYTES_MAX,
    MCP_SCHEMA_DEPTH_MAX,
    MCP_TOOLS_BYTES_MAX,
    MCP_TOOLS_MAX,
)
from turnkeeper.core.mcp import printable
from turnkeeper.model.mcp import McpOffers, McpPrompt, McpPromptArgument, McpResource, McpTemplate, McpTool
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.text.json_schema import check_schema
from turnkeeper.workspace.mcp_lists import ListCheck

if TYPE_CHECKING:
    import mcp_types
    from mcp.client import Client

log = logging.getLogger(__name__)

ANY_INPUT: Final[JsonObject] = {"type": "object", "properties": {}}

Item = TypeVar("Item")
Made = TypeVar("Made")


async def learn(client: "Client", others_s: float, check: ListCheck) -> McpOffers:
    """Read the offers of a server. Raises if the tools fail; other lists may fail or exceed ``others_s``."""
    able = client.server_capabilities
    check.taken()  # What an earlier listing left out may be valid now.
    tools = await _listed(client.list_tools, lambda page: page.tools) if able.tools is not None else []
    prompts: list[mcp_types.Prompt] = []
    resources: list[mcp_types.Resource] = []
    templates: list[mcp_types.ResourceTemplate] = []

    async def add(found: list[Item], list_: Callable[..., Awaitable[Any]], items: Callable[[Any], list[Item]]) -> None:
        try:
            found += await _listed(list_, items)
        except Exception as error:
            # Errors of several packages come through the client. The server's other lists can still be used.
            log.debug("a list of an MCP server cannot be read: %s", error)

    with anyio.move_on_after(others_s):
        async with anyio.create_task_group() as asking:
            if able.prompts is not None:
                asking.start_soon(add, prompts, client.list_prompts, lambda page: page.prompts)
            if able.resources is not None:
                asking.start_soon(add, resources, client.list_resources, lambda page: page.resources)
                asking.start_soon(add, templates, client.list_resource_templates, lambda page: page.resource_templates)
    return McpOffers(
        tools=_tools(tools),
        prompts=tuple(map(_prompt, _named(prompts))),
        resources=_by_address(resources, lambda one: str(one.uri), _resource),
        templates=_by_address(templates, lambda one: one.uri_template, _template),
        instructions=printable(client.instructions or "") or None,
        left_out=check.taken(),
    )


def renewed(old: McpOffers, new: McpOffers) -> McpOffers:
    """The new offers. Unchanged tools are the same object as before, so that they need not be compared again."""
    return new.but(tools=old.tools) if new.tools == old.tools else new


async def _listed(list_: Callable[..., Awaitable[Any]], items: Callable[[Any], list[Item]]) -> list[Item]:
    """All pages of a list, up to a limit: a server may send pages without end, or repeat one."""
    found: list[Item] = []
    cursor, seen = None, set[str]()
    for _ in range(MCP_PAGES_MAX):
        page = await list_(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if cursor is None or cursor in seen or len(found) > MCP_TOOLS_MAX:
            break
        seen.add(cursor)
    return found


def _named(found: Sequence[Any]) -> list[Any]:
    """The items with a valid name, sorted by name, each name once."""
    by_name = {one.name: one for one in found if 0 < len(one.name) <= MCP_NAME_CHARS_MAX and one.name.isprintable()}
    if len(by_name) < len(found):
        log.debug("%d of %d names of an MCP server are given twice or unusable", len(found) - len(by_name), len(found))
    return [by_name[name] for name in sorted(by_name)[:MCP_TOOLS_MAX]]


def _by_address(
    found: Sequence[Item], address: Callable[[Item], str], made: Callable[[Item], Made]
) -> tuple[Made, ...]:
    """What has an address of its own and a name that can be used. Several may have one name."""
    of: dict[tuple[str, str], Item] = {}
    for one in found:
        if len(uri := address(one)) <= MCP_DESCRIPTION_CHARS_MAX:
            of |= {(named.name, uri): one for named in _named([one])}
    return tuple(made(of[key]) for key in sorted(of)[:MCP_TOOLS_MAX])


def _tools(found: "Sequence[mcp_types.Tool]") -> tuple[McpTool, ...]:
    tools: list[McpTool] = []
    left = MCP_TOOLS_BYTES_MAX
    for one in _named(found):
        hints = one.annotations
        tool = McpTool(
            name=one.name,
            description=_described(one.description) or "",
            schema=_schema(one.name, one.input_schema),
            read_only=hints is not None and hints.read_only_hint is True,
        )
        left -= len(encode(tool))
        if left < 0:
            log.warning(
                "an MCP server has more tools than a request can hold; from %.80r on they are left out", one.name
            )
            break
        tools.append(tool)
    return tuple(tools)


def _schema(name: str, given: JsonObject) -> JsonObject:
    """The schema of a tool's input; one that allows any input if providers would refuse it."""
    schema: JsonObject = {"type": "object", "properties": {}, **given}
    try:
        if _depth(schema) > MCP_SCHEMA_DEPTH_MAX or len(encode(schema)) > MCP_SCHEMA_BYTES_MAX:
            raise Invalid("it is too large")
        check_schema(schema)
    except (Invalid, ValueError, TypeError, RecursionError) as error:
        log.warning(
            "the schema of the tool %.80r of an MCP server cannot be used (%.200s); it takes any input", name, error
        )
        return ANY_INPUT
    return schema


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MCP_SCHEMA_DEPTH_MAX:
        depth += 1
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
    return depth


def _prompt(one: "mcp_types.Prompt") -> McpPrompt:
    arguments = tuple(
        McpPromptArgument(name=given.name, required=given.required is True) for given in (one.arguments or ())[:100]
    )
    return McpPrompt(name=one.name, description=_described(one.description) or "", arguments=arguments)


def _resource(one: "mcp_types.Resource") -> McpResource:
    return McpResource(
        name=one.name, uri=str(one.uri), description=_described(one.description), mime_type=one.mime_type
    )


def _template(one: "mcp_types.ResourceTemplate") -> McpTemplate:
    return McpTemplate(
        name=one.name,
        uri_template=one.uri_template[:MCP_DESCRIPTION_CHARS_MAX],
        description=_described(one.description),
        mime_type=one.mime_type,
    )


def _described(text: str | None) -> str | None:
    return printable(text)[:MCP_DESCRIPTION_CHARS_MAX] if text else None
