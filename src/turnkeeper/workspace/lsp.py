"""Language servers: started when a file of theirs is edited first, and asked what errors an edit has brought.

A server that is missing costs nothing. One that does not answer costs a bounded wait, and is not asked again after a
few of them. Servers speak JSON-RPC over their standard input and output.
"""

import logging
import os
import shutil
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, NamedTuple

import anyio
import msgspec
from anyio.abc import Process, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from turnkeeper.core.limits import DIAGNOSTICS_S
from turnkeeper.model.config import LspConfig
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.workspace.after_edit import Diagnostic

log = logging.getLogger(__name__)

SERVERS_MAX: Final = 8
"""How many servers run at once; for further ones the file is not checked."""
SILENT_MAX: Final = 3
"""How often in a row a server may fail to answer in time before it is not asked again."""
SETTLED_S: Final = 0.15
"""How long a server that has published diagnostics is given to publish better ones."""
GRACE_S: Final = 1.0
"""How long a server has between the request to end and the end: it holds nothing that could be lost."""
HEADER_BYTES_MAX: Final = 4096
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
ERROR: Final = 1
"""The severity of an error; warnings and hints have higher numbers."""


class ServerCommand(NamedTuple):
    """How a language server is started, and for which files."""

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    initialization: bytes = b"{}"
    """Its initialization options as JSON."""


_PYTHON: Final = (".py", ".pyi")
_SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_C: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")
BUILT_IN: Final[tuple[ServerCommand, ...]] = (
    ServerCommand("pyright", ("pyright-langserver", "--stdio"), _PYTHON),
    ServerCommand("pylsp", ("pylsp",), _PYTHON),
    ServerCommand("typescript", ("typescript-language-server", "--stdio"), _SCRIPTS),
    ServerCommand("gopls", ("gopls",), (".go",)),
    ServerCommand("rust-analyzer", ("rust-analyzer",), (".rs",)),
    ServerCommand("clangd", ("clangd",), _C),
)
"""Servers that are used where they are installed. For a kind of file the first that is found is used."""

_LANGUAGES: Final[Mapping[str, str]] = {
    **dict.fromkeys(_PYTHON, "python"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys(_C, "cpp"),
    ".c": "c",
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
    ".go": "go",
    ".rs": "rust",
}


def configured(config: bool | Mapping[str, LspConfig] | None, environ: Mapping[str, str]) -> tuple[ServerCommand, ...]:
    """The servers that a configuration asks for and that are installed."""
    if not config and not isinstance(config, Mapping):
        return ()
    own: Mapping[str, LspConfig] = config if isinstance(config, Mapping) else {}
    known = {server.name: server for server in BUILT_IN}
    wanted = [_changed(known.get(name), name, given) for name, given in own.items() if not given.disabled]
    found = [server for server in wanted if server is not None and _program(server, environ)]
    for server in BUILT_IN:
        covered = {extension for one in found for extension in one.extensions}
        if server.name not in own and not covered & set(server.extensions) and _program(server, environ):
            found.append(server)
    return tuple(found)


def _changed(known: ServerCommand | None, name: str, given: LspConfig) -> ServerCommand | None:
    command = given.command or (known.command if known is not None else ())
    extensions = given.extensions or (known.extensions if known is not None else ())
    if not command or not extensions:
        log.warning("the language server %r needs a command and extensions; it is not used", name)
        return None
    options = msgspec.json.encode(given.initialization)
    return ServerCommand(name, command, extensions, tuple(sorted(given.env.items())), options)


def _program(server: ServerCommand, environ: Mapping[str, str]) -> str | None:
    return shutil.which(server.command[0], path=environ.get("PATH"))


class LanguageServers:
    """The servers of this process, each for one root directory. They end with the task group."""

    def __init__(self, group: TaskGroup | None, *, timeout_s: float = DIAGNOSTICS_S) -> None:
        self._group, self._timeout_s = group, timeout_s
        self._running: dict[tuple[ServerCommand, Path], LanguageServer] = {}

    async def diagnose(
        self,
        servers: Sequence[ServerCommand],
        root: Path,
        environ: Mapping[str, str],
        path: Path,
        before: str | None,
        after: str,
    ) -> tuple[Diagnostic, ...]:
        """The errors that the servers for this file did not report of the text before. Never fails; bounded in time."""
        found: list[Diagnostic] = []

        async def ask(server: LanguageServer) -> None:
            found.extend(await server.new_errors(path, before, after, self._timeout_s))

        async with anyio.create_task_group() as asking:
            for command in servers:
                if path.suffix.lower() in command.extensions and (server := self._server(command, root, environ)):
                    asking.start_soon(ask, server)
        return tuple(sorted(found, key=lambda one: (one.line, one.character)))

    def _server(self, command: ServerCommand, root: Path, environ: Mapping[str, str]) -> "LanguageServer | None":
        known = self._running.get((command, root))
        if known is None and self._group is not None and len(self._running) < SERVERS_MAX:
            known = self._running[command, root] = LanguageServer(command, root, environ)
            self._group.start_soon(known.serve)
        return known if known is not None and known.is_useful else None


class _Document(msgspec.Struct):
    """A file that the server was told of, and what it last said about it."""

    version: int = 0
    errors: tuple[Diagnostic, ...] = ()
    heard: anyio.Event = msgspec.field(default_factory=anyio.Event)


class LanguageServer:
    """One server process and the conversation with it."""

    def __init__(self, command: ServerCommand, root: Path, environ: Mapping[str, str]) -> None:
        self._command, self._root, self._environ = command, root, environ
        self._process: Process | None = None
        self._ready = anyio.Event()
        self._is_dead = False
        self._silent = 0
        self._number = 0
        self._answers: dict[int, tuple[anyio.Event, list[Json]]] = {}
        self._documents: dict[str, _Document] = {}
        self._turn = anyio.Lock()
        self._writing = anyio.Lock()

    @property
    def is_useful(self) -> bool:
        """Whether there is a point in asking it."""
        return not self._is_dead and self._silent < SILENT_MAX

    # --- The process -------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run the server until it ends or is given up. Never raises an error: a server is a convenience."""
        try:
            await self._serve()
        except Exception as error:
            # Whatever a program of somebody else's does, the sessions of this process go on.
            log.warning("the language server %s ended: %s", self._command.name, error or type(error).__name__)
        finally:
            self._is_dead = True
            self._ready.set()
            for document in self._documents.values():
                document.heard.set()

    async def _serve(self) -> None:
        program = _program(self._command, self._environ)
        if program is None:
            return
        process = await anyio.open_process(
            [program, *self._command.command[1:]],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=self._root,
            env={**self._environ, **dict(self._command.environment)},
            start_new_session=True,
        )
        try:
            self._process = process
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._initialize)
                await self._listen(process)
                tasks.cancel_scope.cancel()
        finally:
            await _end(process)

    async def _initialize(self) -> None:
        root = self._root.as_uri()
        await self._request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root,
                "workspaceFolders": [{"uri": root, "name": self._root.name}],
                "initializationOptions": msgspec.json.decode(self._command.initialization),
                "capabilities": {
                    "textDocument": {
                        "synchronization": {"didSave": True},
                        "publishDiagnostics": {"versionSupport": True},
                    },
                    "workspace": {"configuration": True, "workspaceFolders": True},
                },
            },
        )
        await self._notify("initialized", {})
        self._ready.set()

    # --- Messages ----------------------------------------------------------------------------------------------

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None
        stream = BufferedByteReceiveStream(process.stdout)
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            while True:
                head = await stream.receive_until(b"\r\n\r\n", HEADER_BYTES_MAX)
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                if length > MESSAGE_BYTES_MAX:
                    raise ValueError(f"it sent a message of {length} bytes")
                message = msgspec.json.decode(await stream.receive_exactly(length))
                if isinstance(message, dict):
                    await self._take(message)

    async def _take(self, message: JsonObject) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        if method == "textDocument/publishDiagnostics" and isinstance(params, dict):
            self._published(params)
        elif isinstance(method, str) and number is not None:
            await self._send({"jsonrpc": "2.0", "id": number, "result": self._reply(method, params)})
        elif isinstance(number, int) and number in self._answers:
            answered, result = self._answers.pop(number)
            result.append(message.get("result"))
            answered.set()

    def _reply(self, method: str, params: Json) -> Json:
        """What the server is answered: it must not wait for us."""
        if method != "workspace/configuration" or not isinstance(params, dict):
            return None
        items = params.get("items")
        return [None for _ in items] if isinstance(items, list) else []

    def _published(self, params: JsonObject) -> None:
        document = self._documents.get(str(params.get("uri")))
        version, listed = params.get("version"), params.get("diagnostics")
        if document is None or not isinstance(listed, list):
            return
        if isinstance(version, int) and version != document.version:
            return  # About a text that is no longer there.
        found = [_diagnostic(one) for one in listed if isinstance(one, dict) and one.get("severity", ERROR) == ERROR]
        document.errors = tuple(one for one in found if one is not None)
        document.heard.set()

    async def _request(self, method: str, params: JsonObject) -> Json:
        self._number += 1
        answered, result = anyio.Event(), list[Json]()
        self._answers[self._number] = answered, result
        await self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        await answered.wait()
        return result[0]

    async def _notify(self, method: str, params: JsonObject) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def _send(self, message: JsonObject) -> None:
        body = msgspec.json.encode(message)
        assert self._process is not None
        assert self._process.stdin is not None
        async with self._writing:
            await self._process.stdin.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    # --- Checking ----------------------------------------------------------------------------------------------

    async def new_errors(self, path: Path, before: str | None, after: str, timeout_s: float) -> tuple[Diagnostic, ...]:
        """The errors of a file that it did not have before. Nothing if the server does not answer in time."""
        with anyio.move_on_after(timeout_s) as waiting:
            async with self._turn:
                await self._ready.wait()
                if self._is_dead:
                    return ()
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    known = await self._errors_before(path, before)
                    found = await self._errors(path, after)
                    self._silent = 0
                    return _new(known, found)
        if waiting.cancelled_caught:
            self._silent += 1
            if not self.is_useful:
                log.warning("the language server %s does not answer and is not asked again", self._command.name)
        return ()

    async def _errors_before(self, path: Path, before: str | None) -> tuple[Diagnostic, ...]:
        """What the server said of the text before the edit; it is asked if it does not know the file yet."""
        document = self._documents.get(path.as_uri())
        if document is not None:
            return document.errors
        return await self._errors(path, before) if before is not None else ()

    async def _errors(self, path: Path, text: str) -> tuple[Diagnostic, ...]:
        uri = path.as_uri()
        document = self._documents.setdefault(uri, _Document())
        is_new = document.version == 0
        document.version += 1
        document.heard = anyio.Event()
        named: JsonObject = {"uri": uri, "version": document.version}
        if is_new:
            language = _LANGUAGES.get(path.suffix.lower(), path.suffix.lower().lstrip("."))
            opened = {**named, "languageId": language, "text": text}
            await self._notify("textDocument/didOpen", {"textDocument": opened})
        else:
            await self._notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})
            await self._notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": text})
        await document.heard.wait()
        await self._settled(document)
        return document.errors

    async def _settled(self, document: _Document) -> None:
        """Servers often publish what the parser finds first, and what the type checker finds a moment later."""
        while not self._is_dead:
            document.heard = anyio.Event()
            with anyio.move_on_after(SETTLED_S) as quiet:
                await document.heard.wait()
            if quiet.cancelled_caught:
                return


def _diagnostic(given: JsonObject) -> Diagnostic | None:
    match given:
        case {"range": {"start": {"line": int(line), "character": int(character)}}, "message": str(message)}:
            return Diagnostic(line=line + 1, character=character + 1, message=message, whole=given)
    return None


def _new(known: Sequence[Diagnostic], found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those of which there are more than before. Lines move with an edit, so only messages are compared."""
    left = Counter(one.message for one in known)
    new = []
    for one in found:
        if left[one.message] > 0:
            left[one.message] -= 1
        else:
            new.append(one)
    return tuple(new)


async def _end(process: Process) -> None:
    """End the server and what it started: ask, wait a little, then insist."""
    with anyio.CancelScope(shield=True):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with anyio.move_on_after(GRACE_S):
                await process.wait()
        with anyio.move_on_after(GRACE_S):
            await process.aclose()
