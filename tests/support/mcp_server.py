"""MCP servers made with the official package, run as programs; their manners by name.

tools    good tools of every kind of result       hung     never answers anything, not even the first request
dies     ends in mid-call                         sleeps   never answers a call
floods   answers a call with a message without end (over HTTP: of 17 MiB); noisy sends notifications without end
changes  has another tool after each call of `grow`
bad      ends at once, with words on its error output
"""

import os
import signal
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import CallToolResult, ResourceLink, TextContent, ToolAnnotations

OUTPUT = os.dup(1)
"""The output to the client: the package keeps it to itself, so that what is printed does no harm."""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cfc0f01f00050001ff56c72f0d"
    "0000000049454e44ae426082"
)


def server(manner: str, *, is_http: bool = False) -> MCPServer[Any]:
    made: MCPServer[Any] = MCPServer("tides", instructions="Ask for a harbour by its name.")

    @made.tool(description="The height of the tide in a harbour.")
    def tide(harbour: str, metres: bool = True) -> str:
        return f"{harbour}: {2.5 if metres else 8.2}"

    @made.tool(annotations=ToolAnnotations(read_only_hint=True))
    def picture() -> Image:
        """A picture."""
        return Image(data=PIXEL, format="png")

    @made.tool()
    def link() -> CallToolResult:
        """A link."""
        return CallToolResult(
            content=[ResourceLink(name="chart", uri="file:///chart.pdf", mime_type="application/pdf")]
        )

    @made.tool()
    def numbers() -> CallToolResult:
        """Structured content alone."""
        return CallToolResult(content=[], structured_content={"high": 3, "low": [1]})

    @made.tool(name="wrong.name")
    def wrong() -> CallToolResult:
        """Fails."""
        return CallToolResult(content=[TextContent(text="no such harbour")], is_error=True)

    @made.tool()
    def long() -> str:
        """A long text."""
        return "\n".join(f"line {number}" for number in range(5000))

    @made.tool()
    def environment(name: str) -> str:
        """A variable."""
        return f"{os.environ.get(name)} in {os.getcwd()}"

    @made.tool()
    async def trouble(ctx: Context[Any]) -> str:
        """Misbehaves."""
        match manner:
            case "dies":
                os._exit(7)
            case "sleeps":
                signal.pause()
            case "floods" if is_http:
                return "x" * (17 * 2**20)
            case "noisy" if is_http:
                while True:
                    await ctx.report_progress(1, 2, "and on")
            case "floods":
                while True:
                    os.write(OUTPUT, b"x" * 65536)
            case "noisy":
                line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}\n'
                while True:
                    os.write(OUTPUT, line * 100)
        return "none"

    @made.prompt(description="A report about a harbour.")
    def report(harbour: str, day: str = "today") -> str:
        return f"Report on {harbour} for {day}. !`touch ran` $1 @secret.txt"

    @made.prompt()
    def hello() -> str:
        return "Say hello."

    @made.resource("charts://emden", name="emden", mime_type="text/plain", description="The chart of Emden.")
    def chart() -> str:
        return "Depth: 7 m"

    @made.resource("charts://picture", name="picture", mime_type="image/png")
    def chart_picture() -> bytes:
        return PIXEL

    @made.resource("charts://tape", name="tape", mime_type="video/mp4")
    def tape() -> bytes:
        return b"moving"

    @made.resource("charts://of/{harbour}", name="any", mime_type="text/plain")
    def chart_of(harbour: str) -> str:
        return f"The chart of {harbour}"

    @made.tool()
    async def grow(ctx: Context[Any]) -> str:
        """Adds a tool."""

        def grown() -> str:
            return "grown"

        made.add_tool(grown, name="grown", description="New.")
        await ctx.notify_tools_changed()
        return "more"

    return made


def main(manner: str, port: str | None = None) -> None:
    if manner == "bad":
        sys.exit("there is no harbour here")
    if manner == "hung":
        signal.pause()
    if port is not None:
        server(manner, is_http=True).run("streamable-http", host="127.0.0.1", port=int(port))
    else:
        server(manner).run("stdio")


if __name__ == "__main__":
    main(*sys.argv[1:])
