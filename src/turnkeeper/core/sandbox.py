"""Sandbox: what the kernel lets a model's commands change and reach, decided from the settings and the rules.

| Mode | Commands may write |
|---|---|
| ``read-only`` | nothing; always the mode of an agent whose rules deny ``edit`` |
| ``workspace`` | the project, a temporary directory of the session, caches of development tools, configured paths |
| ``off`` | whatever the user may |
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from turnkeeper.core.permission import evaluate
from turnkeeper.model.config import SandboxMode
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import Value

EXTERNAL: Final = "external_directory"
_ANY: Final = "/"
"""Matches patterns about everything, and none about some files or directories."""
_REFUSALS: Final = re.compile(
    r"permission denied|operation not permitted|read-only file ?system|no new privileges|cross-device link"
    r"|\bE(?:ACCES|PERM|ROFS|XDEV)\b",
    re.IGNORECASE,
)
_UNREACHED: Final = re.compile(
    r"could not resolve|name resolution|network is unreachable|failed to connect|getaddrinfo|ENOTFOUND|EAI_AGAIN",
    re.IGNORECASE,
)
_LOOKED_AT_CHARS: Final = 20_000
"""How much of the end of an output is searched for a refusal."""


class SandboxPlaces(Value):
    """The places of a machine that a sandbox treats in a special way. All paths are absolute and without links."""

    caches: tuple[str, ...] = ()
    """Directories that package managers and compilers write."""
    devices: tuple[str, ...] = ()
    """Devices that ordinary programs write, such as ``/dev/null``."""
    shared: tuple[str, ...] = ()
    """Directories of memory that programs share, which files can be kept in."""
    system: tuple[str, ...] = ()
    """Paths that programs must read in order to run at all."""
    protected: tuple[str, ...] = ()
    """Files of this program that no command may write, wherever they are."""
    hidden: tuple[str, ...] = ()
    """Files with keys that no command may read."""


class SandboxPolicy(Value):
    """The sandbox of a directory, before the rules of an agent are known."""

    mode: SandboxMode = "off"
    project: tuple[str, ...] = ()
    """The session's directory, its worktree, and the git directories of it."""
    write: tuple[str, ...] = ()
    """Configured paths."""
    network: bool = True
    places: SandboxPlaces = SandboxPlaces()
    home: str = "/"


class Confinement(Value):
    """The permissions of one confined command. A path stands for everything below it."""

    mode: Literal["read-only", "workspace"]
    write: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    """Not writable, also below a path of ``write``."""
    read: tuple[str, ...] | None = None
    """None: everything but ``hidden``."""
    needed: tuple[str, ...] = ()
    """What is read where ``read`` is None and a directory cannot be listed in order to leave ``hidden`` out."""
    hidden: tuple[str, ...] = ()
    network: bool = True
    is_by_rule: bool = False
    """Whether the mode is ``read-only`` because the agent's rules deny ``edit``."""
    described: tuple[str, ...] = ()
    """The paths of ``write`` that are worth naming to a reader."""
    temporary: str | None = None
    """The directory for temporary files of the command."""

    @property
    def says(self) -> str:
        """A text about the permissions, for the model and the user."""
        what = "nothing is writable" if self.mode == "read-only" else f"writable are {', '.join(self.described)}"
        reads = "" if self.read is None else "; files outside the project are not readable"
        return f"mode {self.mode}: {what}{reads}{'' if self.network else '; there is no network'}"

    @property
    def refused(self) -> tuple[object, ...]:
        """The mode and the restrictions besides the writable paths: equal where as much may be read and reached."""
        return self.mode, self.read is not None, self.hidden, self.network

    def also(self, directories: Iterable[str]) -> "Confinement":
        """A copy that may also write in directories that the user allowed; a read-only command stays read-only."""
        added = tuple(one for one in directories if one not in self.write)
        if not added:
            return self
        read = None if self.read is None else (*self.read, *added)
        if self.mode == "read-only":
            return self.but(read=read)
        return self.but(write=(*self.write, *added), read=read, described=(*self.described, *added))

    def writing(self, file: str) -> "Confinement":
        """A copy that may also write one file, also for a read-only command."""
        read = None if self.read is None else (*self.read, file)
        return self.but(write=(*self.write, file), read=read)

    def reading(self, *paths: str) -> "Confinement":
        """A copy that writes nothing, and may also read these paths."""
        read = None if self.read is None else (*self.read, *paths)
        return self.but(mode="read-only", write=(), read=read)


def temporary_of(confined: Confinement | None) -> dict[str, str]:
    """The variable that says where a confined program keeps temporary files; none if it has no such directory."""
    return {} if confined is None or confined.temporary is None else {"TMPDIR": confined.temporary}


def confinement(
    policy: SandboxPolicy, rules: Sequence[Rule], approvals: Sequence[Rule] = (), temporary: str | None = None
) -> Confinement | None:
    """How the commands of an agent with these rules are confined; None: not at all.

    Rules widen nothing, for a project's own files may hold them. ``approvals`` are what the user allowed for good;
    ``temporary`` is the session's directory for temporary files.
    """
    if policy.mode == "off":
        return None
    places = policy.places
    approved = [place for rule in approvals if rule.action == "allow" and (place := approved_directory(rule, policy))]
    # Also if some files are allowed: a command cannot be kept to the names that a pattern allows.
    is_by_rule = evaluate(rules, "edit", _ANY) == "deny"
    is_reading = policy.mode == "read-only" or is_by_rule
    own = (*policy.project, *((temporary,) if temporary else ()))
    described = (*own, *policy.write, *approved)
    write = () if is_reading else (*described, *places.caches)
    needed = (*described, *places.system, *places.caches)
    return Confinement(
        mode="read-only" if is_reading else "workspace",
        write=write,
        devices=places.devices if is_reading else (*places.devices, *places.shared),
        protected=places.protected,
        read=needed if evaluate(rules, EXTERNAL, _ANY) == "deny" else None,
        needed=needed,
        hidden=(*places.hidden, *_denied(rules, policy)),
        network=policy.network,
        is_by_rule=is_by_rule,
        described=() if is_reading else described,
        temporary=None if is_reading else temporary,
    )


def approved_directory(rule: Rule, policy: SandboxPolicy) -> str | None:
    """The directory that a rule about a directory outside the project names; None if it names none, or all."""
    return directory_of(rule.pattern, policy.home) if rule.permission == EXTERNAL else None


def directory_of(pattern: str, home: str) -> str | None:
    """The directory of a pattern like ``/somewhere/*``; None for all other patterns, and for one around the home."""
    place = re.sub(r"/\*{1,2}$", "", pattern)
    is_plain = place.startswith("/") and not re.search(r"[*?]", place) and place != pattern
    return place if is_plain and not _is_within(home, place) else None


def refusal_note(confined: Confinement, output: str, exit_code: int | None) -> str | None:
    """A line for a command that failed as if the sandbox had refused something; None if it looks otherwise."""
    if exit_code is None or exit_code <= 0:
        return None
    ending = output[-_LOOKED_AT_CHARS:]
    if not _REFUSALS.search(ending) and (confined.network or not _UNREACHED.search(ending)):
        return None
    offer = (
        "this agent may not change anything, so do without"
        if confined.is_by_rule
        else "repeat the call with outside: true to run the command outside the sandbox; the user is asked"
    )
    return f"[the sandbox may be the cause ({confined.says}); {offer}]"


def _denied(rules: Sequence[Rule], policy: SandboxPolicy) -> list[str]:
    """Directories that a rule denies and no later rule allows."""
    named = [directory_of(rule.pattern, "") for rule in rules if rule.permission == EXTERNAL and rule.action == "deny"]
    return [
        place
        for place in dict.fromkeys(one for one in named if one is not None)
        if evaluate(rules, EXTERNAL, f"{place}/*") == "deny"
        and not any(_is_within(one, place) for one in policy.project)
    ]


def _is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory, or is below it."""
    return f"{path.rstrip('/')}/".startswith(f"{directory.rstrip('/')}/")
