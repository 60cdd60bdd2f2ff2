"""Sandbox: the paths of this machine that a confinement uses, and the restrictions that apply it to a command.

On Linux the rules and the filter are made here, and the command's own process applies them before it executes its
program. On macOS ``sandbox-exec`` starts the command. Elsewhere nothing is confined.
"""

import errno
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import flags
from turnkeeper.core.sandbox import Confinement, SandboxPlaces, SandboxPolicy
from turnkeeper.model.config import SandboxConfig, SandboxMode
from turnkeeper.workspace import auth, capabilities, files, git, landlock, path_steps, paths, seatbelt, seccomp
from turnkeeper.workspace.guard import Restrictions

log = logging.getLogger(__name__)


class _Cache(NamedTuple):
    """A cache directory of a program."""

    path: str
    """Path below the home directory."""
    program: str | None = None
    """The program for which a missing directory is created: a confined program could not create it."""
    variable: str | None = None
    """The environment variable that moves the directory: to ``below`` in its value."""
    below: str = ""


CACHES: Final = (
    _Cache(".cache", "sh", "XDG_CACHE_HOME"),
    _Cache(".npm", "npm", "npm_config_cache"),
    _Cache(".node-gyp"),
    *(_Cache(f".yarn/berry/{one}", "yarn") for one in ("cache", "index", "metadata")),
    _Cache(".pnpm-store"),
    _Cache(".local/share/pnpm/store", "pnpm", "PNPM_HOME", "store"),
    _Cache(".local/state/pnpm", "pnpm"),
    _Cache(".bun/install/cache", "bun"),
    _Cache(".local/share/virtualenv", "virtualenv"),
    _Cache(".cargo/registry", "cargo", "CARGO_HOME", "registry"),
    _Cache(".cargo/git", "cargo", "CARGO_HOME", "git"),
    _Cache(".cargo/.package-cache", None, "CARGO_HOME", ".package-cache"),
    _Cache(".cargo/.global-cache", None, "CARGO_HOME", ".global-cache"),
    _Cache("go/pkg", "go", "GOPATH", "pkg"),
    *(
        _Cache(f".gradle/{one}", "gradle", "GRADLE_USER_HOME", one)
        for one in ("caches", "wrapper", "daemon", "native", "notifications", ".tmp")
    ),
    _Cache(".m2/repository", "mvn"),
    _Cache(".ivy2/cache"),
    _Cache(".sbt/boot"),
    _Cache(".nuget/packages", "dotnet", "NUGET_PACKAGES"),
    _Cache(".gem/specs"),
    _Cache(".bundle/cache", "bundle"),
    _Cache(".composer/cache"),
    _Cache(".cabal/packages"),
    _Cache(".stack/pantry"),
    _Cache(".hex/packages", "mix", "HEX_HOME", "packages"),
    _Cache(".hex/cache.ets", None, "HEX_HOME", "cache.ets"),
    _Cache(".conan2/p", "conan", "CONAN_HOME", "p"),
    # Not the whole directory: its file of settings can name a program to run.
    *(_Cache(f".ccache/{one}", None, "CCACHE_DIR", one) for one in (*"0123456789abcdef", "tmp", "lock")),
    *(
        _Cache(f".pub-cache/{one}", "dart", "PUB_CACHE", one)
        for one in ("hosted", "hosted-hashes", "git", "_temp", "log")
    ),
    _Cache(".terraform.d/plugin-cache"),
    _Cache(".nv/ComputeCache"),
    _Cache("Library/Caches"),
)
"""Cache directories that confined commands may write. They hold nothing that runs outside of the sandbox: no programs
on PATH, toolchains or environments, and no files that a program reads at its start."""

DEVICES: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"),
    *("/dev/dri", "/dev/kfd", "/dev/nvidia*", "/dev/fuse"),
)

SHARED: Final = ("/dev/shm", "/dev/mqueue")

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap"),
    *("/proc", "/sys", "/dev", "/run", "/var/lib", "/System", "/Library"),
)
TOOLCHAINS: Final = (
    *(".pyenv", ".nvm", ".volta", ".asdf", ".sdkman", ".rbenv", ".nodenv", ".jenv", ".cargo", ".rustup", "go", ".bun"),
    *(".deno", ".nix-profile", ".local/bin", ".local/lib", ".local/share/mise", ".local/share/fnm", ".ghcup"),
    *(".gitconfig", ".config/git", ".config/pip", ".config/go"),
    *(".local/share/uv", ".local/share/pnpm", ".local/share/virtualenvs", ".local/share/hatch", ".local/share/pdm"),
    *(".yarn", ".gradle", ".m2", ".ivy2", ".sbt", ".nuget", ".gem", ".bundle", ".stack", ".hex", ".mix", ".conan2"),
    *(".ccache", ".pub-cache", ".ipython", ".matplotlib", ".nv"),
)
"""Paths below the home directory that programs need to read."""


def unavailable(platform: str = sys.platform) -> str | None:
    """The reason why commands cannot be confined here; None if they can be."""
    if platform == "linux":
        return None if landlock.abi() else "this kernel has no Landlock, or has it switched off"
    if platform == "darwin":
        return None if os.access(seatbelt.PROGRAM, os.X_OK) else f"{seatbelt.PROGRAM} is missing"
    return f"there is no sandbox for {platform}"


@cache
def warn(reason: str) -> None:
    """Tell the user, once, that commands run unconfined."""
    log.warning("commands are not confined by a sandbox: %s; the permission rules alone hold", reason)


def is_confined(given: SandboxMode | SandboxConfig) -> bool:
    """Whether commands run in a sandbox with this configuration."""
    mode = given if isinstance(given, str) else given.mode
    return mode != "off" and unavailable() is None


def policy(
    given: SandboxMode | SandboxConfig, directory: Path, worktree: Path, environ: Mapping[str, str]
) -> SandboxPolicy:
    """The configured sandbox of a directory; ``off``, with a warning, if this machine has none.

    Raises OSError if the directory was replaced by a link: the target of the link must not become writable.
    """
    given = SandboxConfig(mode=given) if isinstance(given, str) else given
    mode = given.mode or "workspace"
    if mode == "off":
        return SandboxPolicy()
    if (reason := unavailable()) is not None:
        warn(reason)
        return SandboxPolicy()
    if files.is_moved(directory):
        raise OSError(errno.EXDEV, "The session's directory has become a link to another", str(directory))
    home = environ.get("HOME") or str(Path.home())
    written = [str(directory / (home + one[1:] if one.startswith("~") else one)) for one in given.write or ()]
    project, found = _outermost(_real(_project(directory, worktree))), places(environ)
    caches = list(_caches(home, environ))
    writable = (*project, *_real([*caches, *written]))
    return SandboxPolicy(
        mode=mode,
        project=project,
        write=_beside(written, writable),
        network=given.network is not False,
        places=found.but(caches=_beside(caches, writable)),
        home=home,
    )


def places(environ: Mapping[str, str]) -> SandboxPlaces:
    """The places of this machine and its user. Missing caches of programs that are installed are made."""
    home = environ.get("HOME") or str(Path.home())
    own = _own({**environ, "HOME": home})
    return SandboxPlaces(
        caches=_real(_caches(home, environ)),
        devices=tuple(sorted(path for pattern in DEVICES for path in glob(pattern))),
        shared=tuple(filter(os.path.isdir, SHARED)),
        system=_real([*SYSTEM, *(f"{home}/{one}" for one in TOOLCHAINS), *_programs(environ)]),
        protected=_real(map(str, own)),
        hidden=_real(str(place / auth.NAME) for place in own),
    )


def restrictions(confined: Confinement) -> tuple[Restrictions, int] | None:
    """The restrictions of a command: a filter, and a descriptor of rules. Raises OSError if they cannot be made."""
    if sys.platform != "linux":
        return None
    filter = seccomp.restrictions(confined)._replace(powers=capabilities.KEPT)
    return filter, landlock.ruleset(confined)


def arguments_of(confined: Confinement, arguments: list[str]) -> list[str]:
    """The command line that starts a command in its confinement."""
    return seatbelt.confined_arguments(arguments, confined) if sys.platform == "darwin" else arguments


def _project(directory: Path, worktree: Path) -> Iterator[str]:
    """The session's directory, its worktree, and the git directories of the worktree that lie elsewhere."""
    yield str(directory)
    if str(worktree) == worktree.anchor:
        return
    yield str(worktree)
    if (checkout := git.worktree(worktree)) is not None:
        yield from map(str, git.belonging(checkout))


def _caches(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    for one in CACHES:
        moved = environ.get(one.variable or "", "")
        path = os.path.join(moved, one.below) if os.path.isabs(moved) else os.path.join(home, one.path)
        path = path.rstrip("/")
        if one.program and not os.path.lexists(path) and shutil.which(one.program, path=environ.get("PATH")):
            with suppress(OSError):  # A home that cannot be written has no caches.
                os.makedirs(path, mode=0o700, exist_ok=True)
        if os.path.exists(path):
            yield path


def _programs(environ: Mapping[str, str]) -> Iterator[str]:
    """The directories that a shell finds programs in, and the environments and version managers they belong to."""
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder):
            yield folder
            above = os.path.dirname(folder)
            if os.path.basename(folder) == "shims" or os.path.exists(os.path.join(above, "pyvenv.cfg")):
                yield above


def _own(environ: Mapping[str, str]) -> list[Path]:
    """The directories of this program's and opencode's data, state and settings."""
    kinds = (paths.data, paths.config, paths.state)
    own = [kind(environ, program) for program in (paths.PROGRAM, paths.OPENCODE) for kind in kinds]
    return [*own, *map(Path, filter(os.path.isabs, flags.CONFIG_DIR.values(environ)))]


def _outermost(found: Sequence[str]) -> tuple[str, ...]:
    """The paths that are below none of the others."""
    return tuple(one for one in found if not any(one.startswith(f"{other.rstrip('/')}/") for other in found))


def _beside(found: Iterable[str], writable: Sequence[str]) -> tuple[str, ...]:
    """The resolved paths that need a rule: those below no writable place and reached by no link in one.

    A command could put a link in a writable place, and the target of the link must not become writable. A path below a
    writable place is writable without a rule of its own.
    """

    def is_below(path: str) -> bool:
        return any(path.startswith(f"{place.rstrip('/')}/") for place in writable)

    def by_own_link(path: str) -> bool:
        return any(os.path.islink(step) and is_below(step) for step in map(_without_slash, path_steps.steps(path)))

    return tuple(real for path in found if not by_own_link(path) and not is_below(real := os.path.realpath(path)))


def _without_slash(path: str) -> str:
    return path.rstrip("/") or "/"


def _real(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.realpath, found)))
