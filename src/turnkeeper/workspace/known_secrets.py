"""Known secrets: credentials, values of ``.env`` files, and the names of the user, the machine and its directories."""

import os
import pwd
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from turnkeeper.model.redaction import KnownSecret
from turnkeeper.model.refusal import Invalid
from turnkeeper.text.secret_names import env_values, is_placeholder, is_secret_variable
from turnkeeper.workspace import auth, paths
from turnkeeper.workspace.auth import ApiKey, AuthFile, Credential, OAuth, WellKnown

CREDENTIAL, ENV_VALUE, USER, HOST, HOME, DIRECTORY = "credential", "env-file", "user", "host", "home", "directory"
EMAIL: Final = "email"

VALUE_CHARS_MIN: Final = 8
"""Minimum length of an environment variable that counts as a credential."""
NAME_CHARS_MIN: Final = 3
ENV_FILE_BYTES_MAX: Final = 256 * 1024
DIRECTORIES_MAX: Final = 5_000
"""Maximum number of directories that are searched for ``.env`` files."""
DEPTH_MAX: Final = 6
LINE_CHARS_MIN: Final = 16
"""Minimum length of a line in a multi-line value that is a secret by itself."""

_LINE_BREAK: Final = re.compile(r"\\n|\r?\n")
_KEY_LINE: Final = re.compile(r"[^\s-]\S+")
_EMAIL: Final = re.compile(r"^[ \t]*email[ \t]*=[ \t]*\"?([^\s\"@]+@[^\s\"@]+)", re.M | re.I)

_SKIPPED_NAMES: Final = ".git node_modules .venv venv __pycache__ .tox .mypy_cache dist build target vendor"
_SKIPPED: Final = frozenset(_SKIPPED_NAMES.split())
_COMMON: Final = (
    "root user admin ubuntu debian runner node app dev test build guest nobody docker vagrant localhost host home me"
)
_COMMON_NAMES: Final = frozenset(_COMMON.split())


def known_secrets(environ: Mapping[str, str], directory: str) -> list[KnownSecret]:
    """The values that must not leave this machine with a session of this directory. Reads files, so it may be slow."""
    return [secret for secret in _all(environ, directory) if _is_text(secret.value)]


def _all(environ: Mapping[str, str], directory: str) -> Iterator[KnownSecret]:
    for credential in _credentials(environ):
        yield from (KnownSecret(kind=CREDENTIAL, value=one) for one in _values(credential) if one)
    for name, value in environ.items():
        if is_secret_variable(name) and len(value) >= VALUE_CHARS_MIN and value[0] != "/" and not is_placeholder(value):
            yield KnownSecret(kind=CREDENTIAL, value=value)
    for value in _env_file_values(Path(directory)):
        yield KnownSecret(kind=ENV_VALUE, value=value)
    yield from _places(environ, directory)
    yield from _names(environ)
    yield from _git_user(environ, directory)


def _credentials(environ: Mapping[str, str]) -> Iterator[Credential]:
    with suppress(Invalid, OSError, ValueError):
        yield from auth.credentials(environ).stored.values()
    with suppress(Invalid, OSError, ValueError):
        yield from AuthFile(paths.data(environ, paths.OPENCODE) / auth.NAME).read().values()


def _values(credential: Credential) -> Iterable[str]:
    match credential:
        case ApiKey(key=key):
            return (key,)
        case OAuth(refresh=refresh, access=access):
            return (refresh, access)
        case WellKnown(token=token):
            return (token,)


def _env_file_values(top: Path) -> Iterator[str]:
    if not top.is_dir() or top == Path(top.anchor):
        return
    for visited, (folder, folders, files) in enumerate(os.walk(top)):
        if visited >= DIRECTORIES_MAX:
            return
        deep = len(Path(folder).relative_to(top).parts) >= DEPTH_MAX
        folders[:] = [] if deep else sorted(name for name in folders if name not in _SKIPPED)
        for name in files:
            if name == ".env" or name.startswith(".env.") or name.endswith(".env"):
                for value in env_values(_read(Path(folder, name))).values():
                    yield from (value, *_lines(value))


def _lines(value: str) -> list[str]:
    """The lines of a value of several lines, as of a key: a command may print one of them alone."""
    lines = [one.strip() for one in _LINE_BREAK.split(value)]
    return [one for one in lines if len(one) >= LINE_CHARS_MIN and _KEY_LINE.fullmatch(one)] if len(lines) > 1 else []


def _read(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > ENV_FILE_BYTES_MAX:
            return ""
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _places(environ: Mapping[str, str], directory: str) -> Iterator[KnownSecret]:
    homes = {environ.get("HOME", ""), os.path.realpath(environ.get("HOME") or "/")}
    yield from (KnownSecret(kind=HOME, value=home.rstrip("/"), mask="~") for home in homes if len(home) > 4)
    for place in {directory, os.path.realpath(directory)} - homes:
        if place.count("/") > 1:
            yield KnownSecret(kind=DIRECTORY, value=place.rstrip("/"), mask="[project]")


def _names(environ: Mapping[str, str]) -> Iterator[KnownSecret]:
    users = {environ.get("USER", ""), environ.get("LOGNAME", ""), Path(environ.get("HOME") or "/").name}
    with suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        users |= {entry.pw_name, entry.pw_gecos.partition(",")[0]}
    hosts = {socket.gethostname(), environ.get("HOSTNAME", "")}
    hosts |= {host.partition(".")[0] for host in hosts}
    for kind, names in ((USER, users), (HOST, hosts)):
        for name in sorted(names):
            if len(name) >= NAME_CHARS_MIN and name.lower() not in _COMMON_NAMES:
                yield KnownSecret(kind=kind, value=name)


def _git_user(environ: Mapping[str, str], directory: str) -> Iterator[KnownSecret]:
    """The address of the user in the settings of git, which each commit shows."""
    home = Path(environ.get("HOME") or "/")
    settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [home / ".gitconfig", settings / "git/config", Path(directory, ".git/config")]
    found = {match[1] for file in files for match in _EMAIL.finditer(_read(file))}
    found |= {environ.get(f"GIT_{who}_EMAIL", "") for who in ("AUTHOR", "COMMITTER")} | {environ.get("EMAIL", "")}
    yield from (KnownSecret(kind=EMAIL, value=one) for one in sorted(found) if "@" in one)


def _is_text(value: str) -> bool:
    try:
        return bool(value.strip()) and value.encode() is not None
    except UnicodeEncodeError:
        return False
