"""A provider in its own process: streams deltas over HTTP as fast as it is read. ``python -m bench.talker DELTAS``."""

import asyncio
import sys

WORD = "lorem "


def stream(deltas: int) -> bytes:
    """A whole answer in the chat-completions protocol."""
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    one = head + b'{"content":"' + WORD.encode() + b'"},"finish_reason":null}]}\n\n'
    start = head + b'{"role":"assistant"},"finish_reason":null}]}\n\n'
    end = (
        head + b'{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n'
    )
    return start + one * deltas + end + b"data: [DONE]\n\n"


async def main(deltas: int) -> None:
    """Serve until the parent goes away."""
    body = stream(deltas)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")), 0
                )
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
