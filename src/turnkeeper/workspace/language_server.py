"""One language server: its process, and the conversation with it in JSON-RPC over its standard input and output."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import anyio
import msgspec
from anyio.abc import ByteReceiveStream
from anyio.streams.buffered import BufferedByteReceiveStream

from turnkeeper.core.sandbox import Confinement, temporary_of
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text.server_symbols import server_symbols
from turnkeeper.text.symbols import Symbol
from turnkeeper.workspace.after_edit import Diagnostic
from turnkeeper.workspace.children import RunningProcess, started
from turnkeeper.workspace.lsp_commands import PYTHON, C, ServerCommand, program_of

log = logging.getLogger(__name__)
T = TypeVar("T")

SETTLED_S: Final = 0.15
"""Time that a server has after its diagnostics to publish more complete ones."""
GRACE_S: Final = 1.0
"""Grace period between the request to end and a kill: a server holds no data that could be lost."""
HEADER_BYTES_MAX: Final = 4096
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
OPEN_MAX: Final = 64
"""Maximum number of files that a server keeps open: each costs memory and time."""
ERROR: Final = 1
"""The severity of an error; warnings and hints have higher numbers."""

_LANGUAGES: Final[Mapping[str, str]] = {
    **dict.fromkeys(PYTHON, "python"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys(C, "cpp"),
    ".c": "c",
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
    ".go": "go",
    ".rs": "rust",
}


class _Output(ByteReceiveStream):
    """The output of a process as a stream."""

    def __init__(self, process: RunningProcess) -> None:
        self._process = process

    async def receive(self, max_bytes: int = 65536) -> bytes:
        piece = await self._process.read()
        if not piece:
            raise anyio.EndOfStream
        return piece

    async def aclose(self) -> None:
        """Nothing: the caller that started the process also ends it."""


class _Document(msgspec.Struct):
    """A file that is open in the server, with the diagnostics that the server published last."""

    version: int
    text_hash: int
    errors: tuple[Diagnostic, ...] = ()
    heard: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when the server has published diagnostics of this version."""
    heard_at: float = 0.0
    """The time of the newest diagnostics."""
    heard_more: anyio.Event = msgspec.field(default_factory=anyio.Event)


class LanguageServer:
    """One server process and the conversation with it."""

    def __init__(
        self,
        command: ServerCommand,
        root: Path,
        environ: Mapping[str, str],
        confined: Confinement | None,
        *,
        start_s: float,
    ) -> None:
        """``start_s`` is the time from now for which requests wait for the start of the server."""
        self._command, self._root, self._environ, self._confined = command, root, environ, confined
        self._start_deadline = anyio.current_time() + start_s
        self._process: RunningProcess | None = None
        self._ready = anyio.Event()
        self._is_dead = False
        self._owes_since: float | None = None
        """The time of the oldest request since the server last answered; None if none is open."""
        self._is_reported = False
        self._number, self._version = 0, 0
        self._answers: dict[int, tuple[anyio.Event, list[Json]]] = {}
        self._documents: dict[str, _Document] = {}
        self._turn = anyio.Lock()
        self._writing = anyio.Lock()

    @property
    def is_useful(self) -> bool:
        """Whether the server can still answer: it has not ended and was not given up."""
        return not self._is_dead

    # --- The process -------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run the server until it ends or is given up. Never raises an error: a server is a convenience."""
        try:
            await self._serve()
        except Exception as error:
            # A failure of a program that is not ours must not end the sessions of this process.
            log.warning("the language server %s ended: %s", self._command.name, error or type(error).__name__)
        finally:
            self._is_dead = True
            self._ready.set()
            for document in self._documents.values():
                document.heard.set()
            for answered, result in self._answers.values():
                result.append(None)
                answered.set()

    async def _serve(self) -> None:
        program = program_of(self._command, self._environ)
        if program is None:
            return
        arguments = [program, *self._command.command[1:]]
        environ = {**self._environ, **temporary_of(self._confined), **dict(self._command.environment)}
        async with started(
            arguments, self._root, environ, grace_s=GRACE_S, confined=self._confined, has_input=True, is_of_model=True
        ) as process:
            self._process = process
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._initialize)
                await self._listen(process)
                tasks.cancel_scope.cancel()

    async def _initialize(self) -> None:
        root = self._root.as_uri()
        await self._request(
            "initialize",
            {
                # Without our process id: a confined server cannot look for our process, and would take us for dead.
                "processId": None,
                "rootUri": root,
                "workspaceFolders": [{"uri": root, "name": self._root.name}],
                "initializationOptions": msgspec.json.decode(self._command.initialization),
                "capabilities": {
                    "textDocument": {
                        "synchronization": {"didSave": True},
                        "publishDiagnostics": {"versionSupport": True},
                        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
                    },
                    "workspace": {"configuration": True, "workspaceFolders": True},
                },
            },
        )
        await self._notify("initialized", {})
        self._ready.set()

    # --- Messages ----------------------------------------------------------------------------------------------

    async def _listen(self, process: RunningProcess) -> None:
        stream = BufferedByteReceiveStream(_Output(process))
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
        elif isinstance(number, int):
            self._has_answered()  # Also for an answer that came too late.
            if number in self._answers:
                answered, result = self._answers.pop(number)
                result.append(message.get("result"))
                answered.set()

    def _reply(self, method: str, params: Json) -> Json:
        """The result for a request of the server, which must not wait for one."""
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
            return  # The diagnostics are of an older text.
        found = [_diagnostic(one) for one in listed if isinstance(one, dict) and one.get("severity", ERROR) == ERROR]
        document.errors = tuple(one for one in found if one is not None)
        document.heard_at = anyio.current_time()
        document.heard.set()
        document.heard_more.set()
        self._has_answered()

    async def _request(self, method: str, params: JsonObject) -> Json:
        self._number += 1
        answered, result = anyio.Event(), list[Json]()
        self._answers[self._number] = answered, result
        number = self._number
        self._owes_answer()
        try:
            await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await answered.wait()
        finally:
            self._answers.pop(number, None)  # The wait may have been cancelled.
        return result[0]

    async def _notify(self, method: str, params: JsonObject) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def _send(self, message: JsonObject) -> None:
        body = msgspec.json.encode(message)
        assert self._process is not None
        async with self._writing:
            await self._process.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    # --- Checking ----------------------------------------------------------------------------------------------

    async def prepare(self, path: Path, text: str, timeout_s: float) -> None:
        """Open a text in the server, which finds its errors while the model works on its edit."""

        async def tell() -> tuple[()]:
            await self._tell(path, text)
            return ()

        await self._answered(tell, timeout_s)

    async def new_errors(self, path: Path, before: str | None, after: str, timeout_s: float) -> tuple[Diagnostic, ...]:
        """The errors of the new text that the old text did not have; empty if the server does not answer in time."""

        async def check() -> tuple[Diagnostic, ...]:
            known = await self._errors_before(path, before)
            return _new(known, await self._errors(path, after))

        return await self._answered(check, timeout_s)

    async def symbols(self, path: Path, text: str, timeout_s: float) -> tuple[Symbol, ...]:
        """The symbols of a file with this text; empty if the server does not answer in time."""
        named: JsonObject = {"textDocument": {"uri": path.as_uri()}}

        async def ask() -> tuple[Symbol, ...]:
            # The file is closed before and afterwards, so that later diagnostics are not compared with this text.
            if path.as_uri() in self._documents:
                await self._close(path.as_uri())
            await self._open(path, text)
            try:
                return server_symbols(await self._request("textDocument/documentSymbol", named))
            finally:
                with anyio.move_on_after(GRACE_S, shield=True), suppress(BrokenPipeError):
                    await self._notify("textDocument/didClose", named)

        return await self._answered(ask, timeout_s)

    async def _answered(self, ask: Callable[[], Awaitable[tuple[T, ...]]], timeout_s: float) -> tuple[T, ...]:
        """The result of a request; empty after the timeout. Only one request runs at a time.

        The timeout counts from the oldest unanswered request. After it, the server gets no request until it has
        answered one, however late.
        """
        await self._wait_started()
        asked_at = anyio.current_time() if self._owes_since is None else self._owes_since
        with anyio.CancelScope(deadline=asked_at + timeout_s) as waiting:
            async with self._turn:
                if not self._ready.is_set() or self._is_dead:
                    return ()
                with suppress(BrokenPipeError):
                    return await ask()
        if waiting.cancelled_caught:
            self._report("does not answer and is not asked until it does")
        return ()

    def _owes_answer(self) -> None:
        if self._owes_since is None:
            self._owes_since = anyio.current_time()

    def _has_answered(self) -> None:
        self._owes_since, self._is_reported = None, False

    def _report(self, what: str) -> None:
        if not self._is_reported:
            self._is_reported = True
            log.warning("the language server %s %s", self._command.name, what)

    async def _wait_started(self) -> None:
        """Wait until the server has answered the first request, but not beyond the deadline of its start."""
        if self._ready.is_set() or anyio.current_time() >= self._start_deadline:
            return
        with anyio.CancelScope(deadline=self._start_deadline) as waiting:
            await self._ready.wait()
        if waiting.cancelled_caught:
            self._report("starts slowly and is not waited for")

    async def _errors_before(self, path: Path, before: str | None) -> tuple[Diagnostic, ...]:
        """The errors of the text before the edit, which is opened in the server if the file is not open yet."""
        document = self._documents.get(path.as_uri())
        if document is None and before is not None:
            document = await self._tell(path, before)
        return await self._errors_of(document) if document is not None else ()

    async def _errors(self, path: Path, text: str) -> tuple[Diagnostic, ...]:
        return await self._errors_of(await self._tell(path, text))

    async def _errors_of(self, document: _Document) -> tuple[Diagnostic, ...]:
        await document.heard.wait()
        # Servers often publish what the parser finds first, and what the type checker finds a moment later.
        while (left := document.heard_at + SETTLED_S - anyio.current_time()) > 0:
            document.heard_more = anyio.Event()
            with anyio.move_on_after(left):
                await document.heard_more.wait()
        return document.errors

    async def _tell(self, path: Path, text: str) -> _Document:
        """Synchronise a text to the server, unless the server already has it. The diagnostics arrive later."""
        uri, known = path.as_uri(), self._documents.get(path.as_uri())
        if known is not None and known.text_hash == hash(text):
            return known
        self._owes_answer()
        document = _Document(version=self._version + 1, text_hash=hash(text))
        self._documents.pop(uri, None)  # The document moves to the end: the first one is closed first.
        self._documents[uri] = document
        try:
            if known is None:
                await self._open(path, text)
            else:
                await self._change(uri, text)
        except BaseException:
            self._documents.pop(uri, None)  # How much of the text the server received is unknown.
            raise
        if len(self._documents) > OPEN_MAX:
            await self._close(next(iter(self._documents)))
        return document

    async def _change(self, uri: str, text: str) -> None:
        self._version += 1
        named: JsonObject = {"uri": uri, "version": self._version}
        await self._notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})
        await self._notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": text})

    async def _close(self, uri: str) -> None:
        del self._documents[uri]
        await self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def _open(self, path: Path, text: str) -> None:
        """Open a text in the server. No version number is used twice: diagnostics of an older text may arrive late."""
        self._version += 1
        language = _LANGUAGES.get(path.suffix.lower(), path.suffix.lower().lstrip("."))
        opened: JsonObject = {"uri": path.as_uri(), "version": self._version, "languageId": language, "text": text}
        await self._notify("textDocument/didOpen", {"textDocument": opened})


def _diagnostic(given: JsonObject) -> Diagnostic | None:
    match given:
        case {"range": {"start": {"line": int(line), "character": int(character)}}, "message": str(message)}:
            return Diagnostic(line=line + 1, character=character + 1, message=message, whole=given)
    return None


def _new(known: Sequence[Diagnostic], found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that occur more often than before. Lines move with an edit, so only messages are compared."""
    left = Counter(one.message for one in known)
    new = []
    for one in found:
        if left[one.message] > 0:
            left[one.message] -= 1
        else:
            new.append(one)
    return tuple(new)
