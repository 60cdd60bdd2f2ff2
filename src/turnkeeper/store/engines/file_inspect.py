"""What ``doctor`` wants to know about a tree: how big it is, and every file that is not as it should be."""

import os
from collections.abc import Iterator

import msgspec

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.file_listing import entries
from turnkeeper.store.engines.file_names import (
    LOG_DIRECTORY,
    LOG_SUFFIX,
    MARKER,
    OWN_DIRECTORY,
    decoded,
    relative,
)
from turnkeeper.store.engines.file_tree import Tree


def facts(tree: Tree) -> dict[str, str | int | list[str]]:
    """Path, bytes, the version of msgspec, and problems. Reads every file; only inside ``reading``."""
    problems = [*_document_problems(tree, ""), *_log_problems(tree)]
    return {
        "path": tree.directory,
        "bytes": _size(tree.directory),
        "msgspec": msgspec.__version__,
        "problems": problems,
    }


def _document_problems(tree: Tree, parent: str) -> Iterator[str]:
    prefix = parent + "/" if parent else ""
    folder = f"{tree.directory}/{relative(parent)}" if parent else tree.directory
    seen: set[str] = set()
    for name, listed in sorted(entries(tree.directory, parent), key=lambda entry: entry[0]):
        if not parent and name in (LOG_DIRECTORY, MARKER, OWN_DIRECTORY):
            continue
        if listed is None:
            yield f"{folder}/{name} is not a document: nothing here has such a name, and it is ignored"
        elif listed in seen:
            yield f"{folder}/{name} is ignored: the document has another file, which counts"
        elif listed.endswith("/"):
            yield from _document_problems(tree, prefix + listed[:-1])
        else:
            seen.add(listed)
            try:
                tree.documents.read(prefix + listed)
            except (StoreUnavailable, OSError) as error:
                yield str(error)


def _log_problems(tree: Tree) -> Iterator[str]:
    for name in sorted(os.listdir(tree.logs.directory)):
        log = decoded(name.removesuffix(LOG_SUFFIX), top=False) if name.endswith(LOG_SUFFIX) else None
        if log is None:
            yield f"{tree.logs.directory}/{name} is not a log: nothing here has such a name, and it is ignored"
        else:
            yield from tree.logs.problems(log)
    for name in sorted(os.listdir(tree.logs.indexes)):
        log = decoded(name, top=False)
        if log is not None and tree.logs.length(log) and not os.path.exists(tree.logs.files(log)[0]):
            yield f"log {log!r} is damaged: {tree.logs.files(log)[0]} is gone"


def _size(directory: str) -> int:
    return sum(
        os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(directory) for name in names
    )
