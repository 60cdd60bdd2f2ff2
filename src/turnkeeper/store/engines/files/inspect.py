"""The facts of a tree for ``doctor``: its size, and problems of its files."""

import os
from collections.abc import Iterator

import msgspec

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.files.documents import entries
from turnkeeper.store.engines.files.earlier import UNCOMMITTED
from turnkeeper.store.engines.files.names import LOG_SUFFIX, OWN_NAMES, decoded, relative
from turnkeeper.store.engines.files.tree import FORM, Tree


def facts(tree: Tree) -> dict[str, str | int | list[str]]:
    """Path, bytes, the version of msgspec, and problems. Reads every file."""
    problems = [*_document_problems(tree, ""), *_log_problems(tree), *_set_aside(tree), *_form(tree)]
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
        if not parent and name in OWN_NAMES:
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
                tree.documents.sound(prefix + listed)
            except (StoreUnavailable, OSError) as error:
                yield str(error)


def _log_problems(tree: Tree) -> Iterator[str]:
    logs: set[str] = set()
    for folder, suffix in ((tree.logs.directory, LOG_SUFFIX), (tree.logs.indexes, "")):
        for name in sorted(os.listdir(folder)):
            log = decoded(name.removesuffix(suffix), top=False) if name.endswith(suffix) else None
            if log is None:
                yield f"{folder}/{name} is not a log: nothing here has such a name, and it is ignored"
            else:
                logs.add(log)
    for log in sorted(logs):
        yield from tree.logs.problems(log)


def _set_aside(tree: Tree) -> Iterator[str]:
    for name in sorted(os.listdir(tree.aside)) if os.path.isdir(tree.aside) else []:
        if not name.partition(".")[2].startswith(UNCOMMITTED):
            yield f"{tree.aside}/{name} was found damaged and set aside; remove it once it was looked at"


def _form(tree: Tree) -> Iterator[str]:
    form = tree.form()
    if form is not None and form < FORM:
        yield f"{tree.directory} has the form of an older tree, and its migration did not come to its end"


def _size(directory: str) -> int:
    return sum(
        os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(directory) for name in names
    )
