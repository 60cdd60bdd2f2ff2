"""The command that makes Turnkeeper an MCP server: other agents search and read past sessions. It changes nothing."""

from typing import TYPE_CHECKING, Any, Final

from turnkeeper.cli.options import Options
from turnkeeper.cli.screen import one_line
from turnkeeper.model.refusal import Forbidden, Refusal
from turnkeeper.model.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from turnkeeper.api import Turnkeeper

ABOUT: Final = (
    "The memory of past sessions with AI agents on this machine. Search for words first; then recall the texts of a "
    "session that look useful."
)
HITS_MAX: Final = 50


async def serve(*, options: Options) -> None:
    """Serve past sessions to other agents, as an MCP server over stdin and stdout.

    It has two tools, which change nothing: `search` finds sessions and messages by
    words, and `recall` reads the texts of a session. It needs turnkeeper[mcp], and
    ends when its input does. In the settings of another Turnkeeper it is
    {"mcp": {"memory": {"command": ["turnkeeper", "mcp", "serve"]}}}.

    For example:
      turnkeeper mcp serve
    """
    try:
        import mcp.server.mcpserver  # noqa: F401 # To say what is missing before the store is opened.
    except ImportError as error:
        raise Forbidden("an MCP server needs the package mcp: pip install 'turnkeeper[mcp]'") from error
    async with options.read() as tk:
        await _server(tk).run_stdio_async()


def _server(tk: "Turnkeeper") -> "MCPServer[Any]":
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    from turnkeeper.cli import names
    from turnkeeper.cli.search import by_session
    from turnkeeper.sessions.search import search as found_words

    made: MCPServer[Any] = MCPServer("turnkeeper", instructions=ABOUT, version=__version__)
    reads = ToolAnnotations(read_only_hint=True)

    @made.tool(annotations=reads)
    async def search(words: str, limit: int = 20) -> str:
        """Find past sessions whose titles or messages contain all of these words, newest first."""
        try:
            found = await found_words(tk.store, words, limit=max(1, min(limit, HITS_MAX)), damaged=[])
        except Refusal as refusal:
            raise ToolError(str(refusal)) from refusal
        lines = []
        for hits in by_session(found):
            lines.append(f"session {hits[0].session_id}: {one_line(hits[0].title)} ({hits[0].directory})")
            lines += [f"  {one.message_id} {one.kind}: {one_line(one.snippet)}" for one in hits if one.message_id]
        return "\n".join(lines) or f"Nothing matches {words!r}."

    @made.tool(annotations=reads)
    async def recall(session: str, query: str | None = None, handle: str | None = None, offset: int = 0) -> str:
        """Read a past session: with a query, the texts that contain its words and their handles; with a handle, one
        page of that text, from a character on."""
        if (query is None) == (handle is None):
            raise ToolError("give either a query or a handle")
        try:
            session_id = await names.session(tk, session)
            if query is not None:
                hits = await tk.recall_search(session_id, query)
                told = (f"{hit.handle} {one_line(hit.label)} ({hit.total} characters): {hit.snippet}" for hit in hits)
                return "\n".join(told) or f"Nothing matches {query!r}."
            page = await tk.recall(session_id, str(handle), offset=offset)
        except Refusal as refusal:
            raise ToolError(str(refusal)) from refusal
        rest = f"\n\n(goes on at offset {page.next_offset} of {page.total})" if page.next_offset is not None else ""
        return f"{page.text}{rest}"

    return made
