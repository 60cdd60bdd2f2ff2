"""Server-sent events, read incrementally from bytes. Bounded: no line or event can fill the memory."""

EVENT_BYTES_MAX = 16 * 1024 * 1024
"""The largest event we take: a generated image is a few MiB in one line."""

SseEvent = tuple[bytes, bytes]
"""The event's name, empty if it has none, and its data; several data lines are joined by newlines."""


class EventTooLarge(Exception):
    """An event grew past the limit."""


class SseParser:
    """Fed bytes as they come, cut anywhere; gives the events that are complete."""

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
        """The events that this chunk completes."""
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
        """The event that the end of the stream completes, if its last blank line is missing."""
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
        """The chunk with every line end as a newline; a last carriage return waits for what may follow it."""
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
