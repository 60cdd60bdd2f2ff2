"""File versions: one file in many snapshots, and the version that added each of its lines."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from turnkeeper.core.limits import SNAPSHOT_S
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value
from turnkeeper.workspace import git
from turnkeeper.workspace.git_work import GitWork, in_thread
from turnkeeper.workspace.shadow import ALONE, has_begun, is_hash
from turnkeeper.workspace.shadow_repository import ShadowRepository
from turnkeeper.workspace.tree_listing import trees

_FILE: Final = "file"
_BRANCH: Final = "refs/heads/main"


class FileVersion(Value):
    """A file in a snapshot: the hash and size of its blob. ``blob`` is None if the snapshot lacks the file."""

    blob: str | None = None
    bytes: int = 0


async def file_versions(repository: ShadowRepository, name: str, wanted: Sequence[str]) -> dict[str, FileVersion]:
    """The version of a file in each of these trees. Trees that are no longer kept are left out."""
    if "\n" in name:
        raise Invalid(f"the name {name!r} has a line break, and is not looked up; rename the file")
    if not wanted or not has_begun(repository.place):
        return {}
    asked = "".join(f"{tree}\n{tree}:{name}\n" for tree in trees(*wanted))
    answer = await repository.ask("cat-file", "--batch-check", given=asked.encode("utf-8", "surrogateescape"))
    lines = answer.removesuffix(b"\n").split(b"\n")
    found: dict[str, FileVersion] = {}
    for tree, kept, file in zip(wanted, lines[::2], lines[1::2], strict=True):
        if kept.split(b" ")[1:2] == [b"tree"]:
            found[tree] = _version(file)
    return found


def _version(answer: bytes) -> FileVersion:
    words = answer.split(b" ")
    if len(words) == 3 and words[1] == b"blob" and is_hash(words[0].decode("ascii", "replace")):
        return FileVersion(blob=words[0].decode("ascii"), bytes=int(words[2]))
    return FileVersion()


async def line_origins(versions: Sequence[bytes | None], environ: Mapping[str, str]) -> list[int]:
    """The number of the version that added each line of the last version. A version of None has no file.

    Computed by ``git blame``: each version becomes a commit in a temporary repository. Raises GitFailed and GitStopped.
    """
    return await in_thread(SNAPSHOT_S, lambda work: _blamed(versions, environ, work))


def _blamed(versions: Sequence[bytes | None], environ: Mapping[str, str], work: GitWork) -> list[int]:
    with tempfile.TemporaryDirectory(prefix="turnkeeper-blame-") as folder:
        place = Path(folder)
        own = {**git.environment(environ), **ALONE, "GIT_DIR": folder}
        for arguments, given in (
            (("init", "--quiet", "--bare", "--template="), None),
            (("fast-import", "--quiet"), b"".join(_commits(versions))),
        ):
            with work.started(arguments, place, own, has_input=given is not None) as process:
                work.finish(process, given)
        with work.started(("blame", "--porcelain", _BRANCH, "--", _FILE), place, own) as process:
            return list(_numbers(work.finish(process)))


def _commits(versions: Sequence[bytes | None]) -> Iterator[bytes]:
    """The versions as commits for ``git fast-import``. The message of each is its number."""
    for number, content in enumerate(versions):
        message = str(number).encode()
        yield b"commit %s\ncommitter a <a> %d +0000\n" % (_BRANCH.encode(), number)
        yield b"data %d\n%s\n" % (len(message), message)
        if content is None:
            yield b"D %s\n" % _FILE.encode()
        else:
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (_FILE.encode(), len(content), content)


def _numbers(output: bytes) -> Iterator[int]:
    """The number of the commit of each line. Git prints the message of a commit with its first line only."""
    known: dict[bytes, int] = {}
    commit = b""
    is_head = True
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            yield known[commit]
            is_head = True
        elif is_head:
            commit, is_head = line.split(b" ")[0], False
        elif line.startswith(b"summary "):
            known[commit] = int(line.removeprefix(b"summary "))
