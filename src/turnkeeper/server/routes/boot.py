"""Requests that clients make at start: paths, projects, the repository, skills, and empty lists."""

import os
from pathlib import Path
from typing import Literal

import msgspec

from turnkeeper.core import flags
from turnkeeper.model.skill import Skill
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import route
from turnkeeper.store import keys
from turnkeeper.workspace import git, paths
from turnkeeper.workspace.project import GLOBAL


class Places(Value):
    """Paths of the server and of a directory."""

    home: str
    state: str
    config: str
    worktree: str
    directory: str


class ProjectTime(Value):
    """Milliseconds since 1970."""

    created: int
    updated: int
    initialized: int | None = None


class Project(Value):
    """A repository; ``global`` for all directories outside a repository."""

    id: str
    worktree: str
    vcs: Literal["git"] | None = None
    name: str | None = None
    time: ProjectTime
    sandboxes: tuple[str, ...] = msgspec.field(default_factory=tuple)


class ProjectDirectory(Value):
    """A directory of a project."""

    directory: str


class Branches(Value):
    """The branch that is checked out, and the default branch."""

    branch: str | None = None
    default_branch: str | None = msgspec.field(default=None, name="default_branch")


class Capabilities(Value):
    """Which experimental features are on."""

    background_subagents: bool


class Console(Value):
    """A hosted account; there is none."""

    console_managed_providers: tuple[str, ...]
    switchable_org_count: int


_project = msgspec.json.Decoder(Project)


async def path(call: PlainRequest) -> Places:
    """Paths of the server and of a directory."""
    environ, place = call.service.options.environ, await call.place()
    return Places(
        home=environ.get("HOME") or str(Path.home()),
        state=str(paths.state(environ)),
        config=str(paths.config(environ)),
        worktree=str(place.worktree),
        directory=str(place.directory),
    )


async def current_project(call: PlainRequest) -> JsonObject:
    """The project of a directory."""
    place, store = await call.place(), call.turnkeeper.store
    [stored] = await store.engine.get([keys.project(place.id)])
    if stored is not None:
        project = _project.decode(stored)
    else:
        now, is_global = call.service.started, place.id == GLOBAL
        worktree = "/" if is_global else str(place.main_worktree)
        vcs = None if is_global else place.vcs
        project = Project(id=place.id, worktree=worktree, vcs=vcs, time=ProjectTime(created=now, updated=now))
    is_faked = place.id == GLOBAL and flags.FAKE_VCS.value(call.service.options.environ) == "git"
    return _wire(project.but(vcs="git") if is_faked else project)


async def projects(call: PlainRequest) -> list[JsonObject]:
    """Every project that has had a session."""
    return [_wire(one) for one in await _projects(call)]


async def _projects(call: PlainRequest) -> list[Project]:
    return [_project.decode(body) for _, body in await call.turnkeeper.store.engine.scan(("project",))]


async def project_directories(call: PlainRequest) -> list[ProjectDirectory]:
    """The directories of a project."""
    found = [one for one in await _projects(call) if one.id == call.params["projectID"]]
    return [ProjectDirectory(directory=name) for one in found for name in (one.worktree, *one.sandboxes)]


async def vcs(call: PlainRequest) -> Branches:
    """The branch that is checked out."""
    place = await call.place()
    repository = await git.find(place.directory, os.environ) if place.vcs else None
    if repository is None:
        return Branches()
    return Branches(branch=await repository.branch(), default_branch=await repository.default_branch())


async def capabilities(call: PlainRequest) -> Capabilities:
    """Which experimental features are on: none."""
    return Capabilities(background_subagents=False)


async def console(call: PlainRequest) -> Console:
    """The hosted account: there is none."""
    return Console(console_managed_providers=(), switchable_org_count=0)


async def skills(call: PlainRequest) -> list[Skill]:
    """The skills of a directory, with their texts."""
    place = await call.place()
    found = await call.directories.skills(place, await call.directories.look(place))
    return list(found.skills)


def _wire(project: Project) -> JsonObject:
    """A project with its list of directories even if it is empty, because clients require the field."""
    said: JsonObject = msgspec.to_builtins(project)
    return {**said, "sandboxes": project.sandboxes}


async def empty_list(call: PlainRequest) -> list[JsonObject]:
    """An empty list: not implemented, but requested by clients at start."""
    return []


ROUTES = (
    route("GET", "/path", "path.get", path),
    route("GET", "/project", "project.list", projects, answer=list[Project]),
    route("GET", "/project/current", "project.current", current_project, answer=Project),
    route("GET", "/project/{projectID}/directories", "project.directories", project_directories),
    route("GET", "/vcs", "vcs.get", vcs),
    route("GET", "/experimental/capabilities", "experimental.capabilities.get", capabilities),
    route("GET", "/experimental/console", "experimental.console.get", console),
    route("GET", "/experimental/workspace", "experimental.workspace.list", empty_list),
    route("GET", "/experimental/workspace/status", "experimental.workspace.status", empty_list),
    route("GET", "/skill", "app.skills", skills),
    route("GET", "/lsp", "lsp.status", empty_list),
    route("GET", "/formatter", "formatter.status", empty_list),
)
