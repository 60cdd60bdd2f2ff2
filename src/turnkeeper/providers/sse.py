"""Server-sent events: an incremental parser with a maximum event size."""

EVENT_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of an event; a generated image is a few MiB in one line."""

SseEvent = tuple[bytes, bytes]
"""The name of an event, which may be empty, and its data lines joined by newlines."""


class EventTooLarge(Exception):
    """An event is larger than the limit."""


class SseParser:
    """Parses chunks of bytes, split anywhere, and returns complete events."""

    def __init__(self, *, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._limit = event_bytes_max
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._ends_in_cr = False
        self._is_first = True
        self._name = b""
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Parse a chunk and return the events that it completes."""
        if self._ends_in_cr or b"\r" in chunk:
            chunk = self._without_cr(chunk)
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        if self._tail:
            chunk = b"".join((*self._tail, chunk))
        lines = chunk.split(b"\n")
        self._tail, self._tail_size = [], 0
        self._keep(lines.pop())
        if self._is_first:
            self._is_first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        return self._events(lines)

    def end(self) -> list[SseEvent]:
        """The last event, if the stream ended without its blank line."""
        return self.feed(b"\n\n")

    def _events(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append((self._name, data))
                    self._data = []
                self._name, self._data_size = b"", 0
            elif line.startswith(b"data:"):
                value = line[6:] if line.startswith(b"data: ") else line[5:]
                self._data_size += len(value)
                self._check(self._data_size)
                self._data.append(value)
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ")
        return events

    def _without_cr(self, chunk: bytes) -> bytes:
        """The chunk with line ends as newlines; a carriage return at its end is kept for the next chunk."""
        if self._ends_in_cr:
            chunk = b"\r" + chunk
        self._ends_in_cr = chunk.endswith(b"\r")
        if self._ends_in_cr:
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            self._check(self._tail_size + self._data_size)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(f"an event of the stream is larger than {self._limit} bytes")
