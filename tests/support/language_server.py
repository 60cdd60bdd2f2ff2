"""A scripted language server: an error for each line with BAD in it. Started as a program, with its manners by name.

publish  says what is wrong, as it should         twice   publishes nothing first, then the errors
silent   never publishes anything                 hung    does not even answer the first request
dies     ends when it is told of a file           asks    wants its configuration before it says anything
stubborn publishes, and does not end when asked   noise   sends what is no message
symbols  says where each line with DEF in it is   mute    answers no request but the first
late     answers the first request, and            slow    publishes errors for the first time,
         once the file $GATE can be read                   once the file $GATE can be read
nosy     publishes what came of writing $TARGET and reading $SECRET, and the keys in its environment
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def read() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            return None
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def send(**message: object) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def publish(uri: str, version: int, text: str) -> None:
    errors = [
        {
            "range": {
                "start": {"line": number, "character": line.index("BAD")},
                "end": {"line": number, "character": 9},
            },
            "severity": 1,
            "message": f"{line.strip()} is bad",
        }
        for number, line in enumerate(text.split("\n"))
        if "BAD" in line
    ]
    warning = {"range": {"start": {"line": 0, "character": 0}}, "severity": 2, "message": "only a warning"}
    send(
        method="textDocument/publishDiagnostics",
        params={"uri": uri, "version": version, "diagnostics": [*errors, warning]},
    )


def symbols(text: str) -> list[dict[str, Any]]:
    """A symbol for each line with DEF, which goes to the end of the next line."""
    return [
        {
            "name": line.split()[1],
            "kind": 12,
            "range": {"start": {"line": number, "character": 0}, "end": {"line": number + 2, "character": 0}},
        }
        for number, line in enumerate(text.split("\n"))
        if line.startswith("DEF ")
    ]


def refuse(number: int) -> None:
    send(id=number, error={"code": -32601, "message": "method not found"})


def main(manner: str, record: str | None = None) -> None:
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    texts: dict[str, str] = {}
    while (message := read()) is not None:
        if record is not None:
            with Path(record).open("a") as file:
                file.write(f"{message.get('method', 'answer')}\n")
        match message.get("method"):
            case "initialize" if manner == "noise":
                sys.stdout.buffer.write(b"hello?\r\n\r\n")
                sys.stdout.buffer.flush()
            case "initialize" if manner != "hung":
                if manner == "late":
                    Path(os.environ["GATE"]).read_bytes()
                send(id=message["id"], result={"capabilities": {"textDocumentSync": 1}})
            case "textDocument/didOpen" | "textDocument/didChange":
                document = message["params"]["textDocument"]
                changes = message["params"].get("contentChanges") or [document]
                texts[document["uri"]] = changes[-1]["text"]
                told(manner, document, changes[-1]["text"])
            case "textDocument/didClose":
                del texts[message["params"]["textDocument"]["uri"]]
            case "textDocument/documentSymbol" if manner not in ("mute", "hung"):
                text = texts[message["params"]["textDocument"]["uri"]]
                send(id=message["id"], result=symbols(text)) if manner == "symbols" else refuse(message["id"])


def told(manner: str, document: dict[str, Any], text: str) -> None:
    uri, version = document["uri"], document["version"]
    if manner == "dies":
        sys.exit(3)
    if manner == "asks":
        send(id=1, method="workspace/configuration", params={"items": [{}, {}]})
        answer = read()
        while answer is not None and "method" in answer:
            answer = read()
        if answer is None or answer.get("result") != [None, None]:
            sys.exit(4)
    if manner == "nosy":
        keys = sorted(name for name in os.environ if name.endswith("_API_KEY"))
        text = f"BAD {tried('TARGET', 'w')} {tried('SECRET', 'r')} {keys} {tried('TMPDIR', 'w', 'draft')}"
    if manner == "slow" and version == 1:
        Path(os.environ["GATE"]).read_bytes()
    if manner == "twice":
        publish(uri, version, "")
    if manner != "silent":
        publish(uri, version, text)


def tried(variable: str, mode: str, name: str = "") -> str:
    try:
        with Path(os.environ[variable], name).open(mode) as file:
            return file.read() if mode == "r" else "written"
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    main(*sys.argv[1:])
