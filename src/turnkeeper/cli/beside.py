"""What stands under a text of the model: the sources it names; and a file that the model made, in one line."""

from turnkeeper.cli.screen import one_line, size
from turnkeeper.core.sources import sources
from turnkeeper.model.parts import FilePart, TextPart


def source_lines(part: TextPart) -> list[str]:
    """The sources of a text, one in a line, numbered."""
    found = enumerate(sources(part.metadata), 1)
    return [f"[{number}] {one_line(' '.join(filter(None, (source.title, source.url))))}" for number, source in found]


def file_line(part: FilePart) -> str:
    """A file: its name or address, its kind, and its size where it is known."""
    if not part.url.startswith("data:"):
        return f"◆ {one_line(part.filename or part.url)} ({one_line(part.mime)})"
    amount = size(len(part.url.partition(",")[2]) * 3 // 4)
    return f"◆ {one_line(part.filename or 'a file')} ({one_line(part.mime)}, {amount})"
