"""A provider in its own process: streams deltas over HTTP as fast as it is read. ``python -m bench.talker DELTAS``.

With ``STEPS FILES`` behind it, it first calls ``read`` that often, for so many files in turn.
"""

import asyncio
import sys

WORD = "lorem "


HEAD = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
CALL = b'{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"read","arguments":%b}}]}'
USAGE = b'"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}'


def stream(deltas: int) -> bytes:
    """A whole answer in the chat-completions protocol."""
    return _answer((HEAD + b'{"content":"' + WORD.encode() + b'"},"finish_reason":null}]}\n\n') * deltas, b"stop")


def call(step: int, files: int) -> bytes:
    """An answer that calls ``read``."""
    arguments = b'"{\\"filePath\\":\\"%d.txt\\"}"' % (step % files)
    return _answer(HEAD + CALL % (step, arguments) + b',"finish_reason":null}]}\n\n', b"tool_calls")


def _answer(said: bytes, reason: bytes) -> bytes:
    start = HEAD + b'{"role":"assistant"},"finish_reason":null}]}\n\n'
    end = HEAD + b'{},"finish_reason":"%b"}],%b}\n\n' % (reason, USAGE)
    return start + said + end + b"data: [DONE]\n\n"


async def main(deltas: int, steps: int = 0, files: int = 1) -> None:
    """Serve until the parent goes away."""
    words = stream(deltas)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")), 0
                )
                step = (await reader.readexactly(length)).count(b'"role":"tool"')
                body = call(step, files) if step < steps else words
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
    asyncio.run(main(*map(int, sys.argv[1:])))
