"""The component of MCP servers: the instructions of each of them."""

from collections.abc import Sequence
from html import escape

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.texts import text
from turnkeeper.core.limits import MCP_INSTRUCTIONS_CHARS_MAX
from turnkeeper.model.context import Absent, Loaded, Sample
from turnkeeper.model.mcp import McpInstructions


async def load(sampling: Sampling) -> Sample:
    """The instructions of the servers in use, in the order of their names; absent if there are none."""
    if not sampling.served:
        return Absent(removal=text("mcp_none"))
    told = _listing(sampling.served)
    return Loaded(baseline=f"{text('mcp')}\n{told}", update=f"{text('mcp_changed')}\n{told}")


def _listing(served: Sequence[McpInstructions]) -> str:
    lines = ["<mcp_instructions>"]
    for one in served:
        # A server must not speak in the name of another one.
        said = one.text[:MCP_INSTRUCTIONS_CHARS_MAX].replace("</", "<\\/").replace("<server", "<\\server")
        lines.append(f'<server name="{escape(one.server)}">\n{said}\n</server>')
    return "\n".join([*lines, "</mcp_instructions>"])


MCP = ContextComponent("core/mcp", load, waits=False)
