"""Skills from addresses: an ``index.json`` names skills and their files, which are kept in the data directory.

Directories of caches are not used: the commands of a model may write them. Each download is a folder of its own, named
by its content, and ``current.json`` names the newest one. So a reader never sees half a download, and an unchanged
skill keeps its path. If a download fails, the last one is used.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.core.limits import (
    FETCH_FAILED_S,
    FETCH_S,
    SKILL_BYTES_MAX,
    SKILL_DOWNLOAD_S,
    SKILL_FRESH_S,
    SKILL_INDEX_BYTES_MAX,
    SKILL_INDEX_FILES_MAX,
    SKILL_INDEX_MAX,
)
from turnkeeper.core.skills import is_name
from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.model.value import Value
from turnkeeper.workspace import files, paths, web
from turnkeeper.workspace.skill_files import NAME
from turnkeeper.workspace.web import Address

FOLDER: Final = "skills"
CURRENT: Final = "current.json"


class IndexedSkill(Value):
    """A skill of an index."""

    name: str
    files: tuple[str, ...] = ()
    version: str | None = None


class SkillIndex(Value):
    """The ``index.json`` below an address."""

    skills: tuple[IndexedSkill, ...] = ()


class Current(Value):
    """The newest download of an address."""

    folder: str
    index: SkillIndex = SkillIndex()


class _Checked(NamedTuple):
    at: float
    problems: tuple[str, ...]
    has_failed: bool


class Downloaded(NamedTuple):
    """The folders of downloaded skills, and the problems of failed downloads."""

    folders: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


class SkillDownloads:
    """Downloads skills, at most once at a time for each address."""

    def __init__(
        self,
        environ: Mapping[str, str],
        group: TaskGroup | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        first_wait_s: float = FETCH_S,
    ) -> None:
        """``group`` is where downloads go on while turns are run. None: each is waited for."""
        self._environ, self._group, self._clock, self._first_wait_s = environ, group, clock, first_wait_s
        self._checked: dict[str, _Checked] = {}
        self._running: dict[str, anyio.Event] = {}
        self._awaited: set[str] = set()

    async def folders(self, urls: Sequence[str], *, private: bool = False) -> Downloaded:
        """The skills of these addresses. Only the first download of an address is waited for, up to a time limit.

        ``private``: addresses of this machine and of private networks are allowed.
        """
        if not urls:
            return Downloaded()
        async with anyio.create_task_group() as group:
            for url in urls:
                group.start_soon(self._refresh, url, private)
        found = [place for url in urls if (place := _current_folder(self._root(url))) is not None]
        checked = [self._checked[url] for url in urls if url in self._checked]
        return Downloaded(tuple(found), tuple(problem for one in checked for problem in one.problems))

    async def _refresh(self, url: str, private: bool) -> None:
        known = self._checked.get(url)
        fresh_s = FETCH_FAILED_S if known is not None and known.has_failed else SKILL_FRESH_S
        if known is not None and self._clock() - known.at < fresh_s:
            return
        if self._group is None:
            await self._download(url, private)
            return
        if (running := self._running.get(url)) is None:
            running = self._running[url] = anyio.Event()
            self._group.start_soon(self._download, url, private)
        if url not in self._awaited and _current_folder(self._root(url)) is None:
            self._awaited.add(url)
            with anyio.move_on_after(self._first_wait_s):
                await running.wait()

    async def _download(self, url: str, private: bool) -> None:
        try:
            with anyio.fail_after(SKILL_DOWNLOAD_S):
                problems = await _Download(url, self._root(url), private).run()
            self._checked[url] = _Checked(self._clock(), problems, has_failed=False)
        except (Refusal, OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            words = "it took too long" if isinstance(error, TimeoutError) else str(error)
            self._checked[url] = _Checked(self._clock(), (f"{url}: no skills were downloaded: {words}",), True)
        finally:
            if (running := self._running.pop(url, None)) is not None:
                running.set()

    def _root(self, url: str) -> Path:
        return paths.data(self._environ) / FOLDER / sha256(url.encode("utf-8", "replace")).hexdigest()[:16]


class _Download:
    """One download of one index."""

    def __init__(self, url: str, root: Path, private: bool) -> None:
        self._base, self._root = f"{url.rstrip('/')}/", root
        self._may_connect = _anything if private else web.is_public
        self._bytes_left, self._files_left = SKILL_INDEX_BYTES_MAX, SKILL_INDEX_FILES_MAX
        self._problems: list[str] = []

    async def run(self) -> tuple[str, ...]:
        """Download new and changed skills; returns the problems of skills. Raises Refusal, OSError or MsgspecError."""
        index = msgspec.json.decode(await self._fetch("index.json"), type=SkillIndex)
        before = _current(self._root)
        contents: dict[str, bytes] = {}
        for skill in index.skills[:SKILL_INDEX_MAX]:
            try:
                contents |= await self._skill(skill, before)
            except Refusal as error:
                self._problems.append(f"{self._base}: the skill {skill.name!r:.80} is skipped: {error}")
        if len(index.skills) > SKILL_INDEX_MAX:
            self._problems.append(f"{self._base}: only the first {SKILL_INDEX_MAX} skills of the index are used")
        await to_thread.run_sync(_store, self._root, contents, index, before)
        return tuple(self._problems)

    async def _skill(self, skill: IndexedSkill, before: Current | None) -> dict[str, bytes]:
        """The files of a skill by their paths below the download."""
        if not is_name(skill.name):
            raise Invalid("it cannot have this name")
        if NAME not in skill.files:
            raise Invalid(f"it has no {NAME}")
        wrong = next((name for name in skill.files if not _is_inside(name)), None)
        if wrong is not None:
            raise Invalid(f"{wrong!r:.80} is no path of a file of the skill")
        if len(skill.files) > self._files_left:
            raise Invalid(f"the index has more than {SKILL_INDEX_FILES_MAX} files")
        self._files_left -= len(skill.files)
        if before is not None and skill.version is not None and skill in before.index.skills:
            with suppress(OSError, Refusal):
                return await to_thread.run_sync(_kept, self._root / before.folder, skill)
        return {f"{skill.name}/{name}": await self._fetch(f"{skill.name}/{name}") for name in skill.files}

    async def _fetch(self, name: str) -> bytes:
        bytes_max = min(SKILL_BYTES_MAX, self._bytes_left)
        url = urljoin(self._base, quote(name))
        fetched = await web.fetch(url, timeout_s=SKILL_DOWNLOAD_S, bytes_max=bytes_max, may_connect=self._may_connect)
        self._bytes_left -= len(fetched.content)
        return fetched.content


def _kept(folder: Path, skill: IndexedSkill) -> dict[str, bytes]:
    """The files of a skill from the last download."""
    names = [f"{skill.name}/{name}" for name in skill.files]
    return {name: files.read_bytes(folder / name, SKILL_BYTES_MAX) for name in names}


def _store(root: Path, contents: Mapping[str, bytes], index: SkillIndex, before: Current | None) -> None:
    """Write a download and make it the current one. Only the previous one is kept besides."""
    name = sha256(json.dumps([[k, sha256(v).hexdigest()] for k, v in sorted(contents.items())]).encode()).hexdigest()[
        :16
    ]
    if not (root / name).is_dir():
        unfinished = root / files.own_name(f"{name}.")
        unfinished.mkdir(parents=True)
        for path, content in contents.items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / path).write_bytes(content)
        try:
            unfinished.rename(root / name)
        except OSError:  # Another process was first.
            shutil.rmtree(unfinished, ignore_errors=True)
    files.write_whole(root / CURRENT, msgspec.json.encode(Current(folder=name, index=index)))
    kept = {name, CURRENT, *([before.folder] if before is not None else [])}
    for old in set(os.listdir(root)) - kept:
        if "." not in old:  # Unfinished downloads of other processes have a dot.
            shutil.rmtree(root / old, ignore_errors=True)


def _current(root: Path) -> Current | None:
    try:
        return msgspec.json.decode(files.read_bytes(root / CURRENT, SKILL_INDEX_BYTES_MAX), type=Current)
    except (OSError, Refusal, msgspec.MsgspecError):
        return None


def _current_folder(root: Path) -> Path | None:
    current = _current(root)
    return root / current.folder if current is not None and _is_inside(current.folder) else None


def _is_inside(name: str) -> bool:
    """Whether a path stays below the folder it is relative to."""
    parts = name.split("/")
    return len(name) <= 512 and not any(part in ("", ".", "..") for part in parts) and not set(name) & {"\\", "\0"}


def _anything(address: Address) -> bool:
    return True
