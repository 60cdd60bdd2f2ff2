"""Tree listing: reads what git prints about the files of one tree, and about their contents."""

import os
from collections.abc import Iterator, Sequence

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.workspace.shadow import is_hash


class TreeEntry(Value):
    """A file in a snapshot."""

    mode: str
    """``100644``, ``100755`` for an executable file, ``120000`` for a link."""
    blob: str


def trees(*hashes: str) -> tuple[str, ...]:
    """The hashes, if they are such; they become arguments of git."""
    for one in hashes:
        if not is_hash(one):
            raise NotFound(f"{one!r} is not the hash of a snapshot or a file in one")
    return hashes


def listed(listing: bytes) -> Iterator[tuple[str, TreeEntry]]:
    """The files of ``ls-tree -z``."""
    for line in filter(None, listing.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        mode, kind, blob = facts.decode("ascii").split(" ")
        if kind == "blob":
            yield os.fsdecode(name), TreeEntry(mode=mode, blob=blob)


def contents(blobs: Sequence[str], output: bytes) -> Iterator[tuple[str, bytes]]:
    """The contents that ``cat-file --batch`` prints. Raises NotFound if one is missing."""
    at = 0
    for blob in blobs:
        end = output.index(b"\n", at)
        head = output[at:end].split(b" ")
        if len(head) != 3:
            raise NotFound(f"the content {blob} is no longer kept")
        at = end + 1 + int(head[2])
        yield blob, output[end + 1 : at]
        at += 1
