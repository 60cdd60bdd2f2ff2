"""Output: the bounded output of a tool for the model, and the whole output for the record."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from turnkeeper.core.bounding import Bounded, TurnMedia, TurnShare, bound, count_lines, kept_hint
from turnkeeper.core.handles import handle
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX
from turnkeeper.core.settling import completed
from turnkeeper.mint import Mint
from turnkeeper.model.parts import FilePart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import JsonObject
from turnkeeper.text.surrogates import clean, clean_object
from turnkeeper.tools.tool import Attachment, ToolOutput

log = logging.getLogger(__name__)

Keep: TypeAlias = Callable[[str], Awaitable[Path]]
"""Writes a whole output to a file that tools can read. Returns its path; OSError if it cannot be written."""


class BoundOutput(NamedTuple):
    """``output`` is what the model is shown. ``bounded.full``, if not None, and ``withheld`` are to be kept beside it;
    ``path`` names a file that holds the former.
    """

    output: ToolOutput
    bounded: Bounded
    withheld: tuple[Attachment, ...] = ()
    path: str | None = None


class Bounds:
    """The limits of one turn's results. A cut output stays whole in the store under its handle, and in a file."""

    def __init__(
        self, *, lines_max: int = OUTPUT_LINES_MAX, bytes_max: int = OUTPUT_BYTES_MAX, keep: Keep | None = None
    ) -> None:
        self._lines_max, self._bytes_max, self._keep = lines_max, bytes_max, keep
        self._share, self._media = TurnShare(bytes_max), TurnMedia()

    async def bound(self, output: ToolOutput) -> BoundOutput:
        """Bound an output and say in its metadata whether it was cut. Never fails: a file is a convenience.

        A tool that bounded its own output said so (``truncated``), and is cut only where the turn has no room for it.
        """
        output, withheld = self._within_media(output.but(output=clean(output.output)))
        size = len(output.output.encode())
        is_own = "truncated" in output.metadata
        lines_max = size + 1 if is_own else self._lines_max
        bytes_max = self._share.room if is_own else min(self._bytes_max, self._share.room)
        if size <= bytes_max and (lines := count_lines(output.output.encode())) <= lines_max:
            self._share.take(size)
            whole = Bounded(text=output.output, lines=lines, bytes=size)
            return BoundOutput(output.but(metadata={"truncated": False, **output.metadata}), whole, withheld)
        # Taken before anything is waited for: other results of the turn are bounded meanwhile.
        self._share.take(bytes_max)
        path, warning = await self._kept(output.output)
        hint = kept_hint(handle(output.output), path, warning, lost_bytes=output.lost_bytes)
        bounded = bound(output.output, lines_max=lines_max, bytes_max=bytes_max, hint=hint)
        self._share.take(len(bounded.text.encode()) - bytes_max)  # It may have been cut for its lines, and be shorter.
        told = {"outputPath": path} if path is not None else {"outputWarning": warning} if warning is not None else {}
        metadata = {**output.metadata, "truncated": True, **told}
        return BoundOutput(output.but(output=bounded.text, metadata=metadata), bounded, withheld, path)

    async def _kept(self, text: str) -> tuple[str | None, str | None]:
        """The file with the whole text, or the reason why it was not written."""
        if self._keep is None:
            return None, None
        try:
            return str(await self._keep(text)), None
        except OSError as error:
            log.warning("a whole output is in the store only, and in no file: %s", error)
            return None, clean(error.strerror or str(error))

    def _within_media(self, output: ToolOutput) -> tuple[ToolOutput, tuple[Attachment, ...]]:
        """The output with as many files as may be shown, and a line for each of the others."""
        shown = self._media.admit([len(file.url) for file in output.attachments])
        if all(shown):
            return output, ()
        withheld = tuple(file for file, is_shown in zip(output.attachments, shown, strict=True) if not is_shown)
        lines = [output.output, *map(_placeholder, withheld)]
        kept = tuple(file for file, is_shown in zip(output.attachments, shown, strict=True) if is_shown)
        return output.but(output="\n".join(filter(None, lines)), attachments=kept), withheld


def _placeholder(file: Attachment) -> str:
    name = f"{clean(file.filename)} ({clean(file.mime)})" if file.filename else clean(file.mime)
    return (
        f"[{name} is left out: there are too many files, or they are too large. recall with handle {handle(file.url)}]"
    )


def settled(part: ToolPart, bound: BoundOutput, mint: Mint, more: JsonObject) -> ToolCompleted:
    """The state of a call that has succeeded with an output. ``more`` is added to its metadata."""

    def stored(file: Attachment) -> FilePart:
        return FilePart(
            id=mint.part_id(),
            session_id=part.session_id,
            message_id=part.message_id,
            mime=file.mime,
            filename=file.filename,
            url=file.url,
        )

    output = bound.output
    title, metadata = clean(output.title), clean_object({**output.metadata, **more})
    return completed(part, mint.now(), clean(output.output), title=title, metadata=metadata).but(
        attachments=tuple(map(stored, output.attachments)) or None,
        withheld=tuple(map(stored, bound.withheld)) or None,
        output_paths=(bound.path,) if bound.path is not None else None,
        full=bound.bounded.full,
    )
