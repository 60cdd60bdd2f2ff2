"""The page about the built-in tools."""

import msgspec

from reference_pages.wording import json_type
from turnkeeper.tools import load as load_tools
from turnkeeper.tools.tool import AnyTool

TOOLS = """\
# Tools

What models may use, as they are told of it. The [guide](../guides/tools.md) tells how to add tools of your own, and
what happens before and after an edit; [permissions](config.md#permissions) decide which calls run.

Parameters are in camelCase; models may also write them with underscores, and numbers as text. An input that does not
fit fails with each violation named. A call of a tool that nobody knows fails with the nearest names and the schema of
the nearest. The output is bounded, and the rest is kept under a handle for `recall`. OpenAI's models from GPT-5 on edit
by `apply_patch`, all others by `edit`, `multiedit` and `write`.

This page is written by `scripts/reference.py` from `src/turnkeeper/tools`.
"""


def tools_page() -> str:
    """A section for each built-in tool: what models read about it, and its parameters."""
    return TOOLS + "".join(tool_section(tool) for tool in load_tools())


def tool_section(tool: AnyTool) -> str:
    """One tool."""
    facts = [f"Permission `{tool.permission}`."]
    if tool.read_only:
        facts.append("Changes no file.")
    if not tool.is_offered:
        facts.append("Not offered to models.")
    if tool.aliases:
        facts.append(f"{', '.join(f'`{other}` is taken for `{name}`' for other, name in tool.aliases.items())}.")
    properties = msgspec.convert(tool.definition().schema["properties"], dict[str, dict[str, object]])
    required = msgspec.convert(tool.definition().schema["required"], list[str])
    rows = "".join(
        f"| `{name}`{'' if name in required else '?'} | {json_type(each)} | {each['description']} |\n"
        for name, each in properties.items()
    )
    table = f"\n| Parameter | Type | Meaning |\n|---|---|---|\n{rows}" if rows else "\nIt takes no parameters.\n"
    return f"\n## `{tool.name}`\n\n{' '.join(facts)}\n\n```text\n{tool.description}\n```\n{table}"
