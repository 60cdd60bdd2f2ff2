"""Paths of data and configuration: this program's XDG directories, and opencode's. Nothing is created."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

PROGRAM: Final = "turnkeeper"
OPENCODE: Final = "opencode"
DATA_VARIABLE: Final = "TURNKEEPER_DATA"

REPOSITORY: Final = ".git"
"""The entry at the top of a repository."""
USER_SETTINGS: Final = "config.json"
"""A further name of a configuration file, only in the user's configuration directories."""
SETTINGS: Final = ("opencode.json", "opencode.jsonc", "turnkeeper.json", "turnkeeper.jsonc", "turnkeeper.toml")
FOLDER_SETTINGS: Final = "config.toml"
"""A further name of a configuration file, only in directories of settings; the weakest in its directory."""
SETTINGS_FOLDERS: Final = (".opencode", ".turnkeeper")


def data(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """The directory of the sessions; ``TURNKEEPER_DATA`` overrides it for this program."""
    if program == PROGRAM and environ.get(DATA_VARIABLE):
        return _home_expanded(environ, environ[DATA_VARIABLE])
    return _base(environ, "XDG_DATA_HOME", ".local/share", program)


def config(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """The user's configuration directory."""
    return _base(environ, "XDG_CONFIG_HOME", ".config", program)


def state(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """The directory of files to keep on this machine only, such as logs."""
    return _base(environ, "XDG_STATE_HOME", ".local/state", program)


def opencode_database(environ: Mapping[str, str]) -> Path | None:
    """opencode's database: ``OPENCODE_DB`` (absolute, or in its data directory), else the default one.

    None for a database in memory. The file may not exist.
    """
    name = environ.get("OPENCODE_DB") or "opencode.db"
    return None if name == ":memory:" else data(environ, OPENCODE) / name


def opencode_storage(environ: Mapping[str, str]) -> Path:
    """The JSON tree that opencode wrote before it had a database."""
    return data(environ, OPENCODE) / "storage"


def home(environ: Mapping[str, str]) -> Path:
    """The home directory. Raises ValueError if the environment names none."""
    return Path(_home(environ))


def _base(environ: Mapping[str, str], variable: str, default: str, program: str) -> Path:
    given = environ.get(variable, "")
    # The XDG specification requires that a relative path is ignored.
    return _joined(given, program) if given.startswith("/") else _joined(_home(environ), default, program)


@lru_cache(maxsize=64)  # Every turn asks for the same few, some twenty times.
def _joined(*parts: str) -> Path:
    return Path(*parts)


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not home:
        raise ValueError(f"neither HOME nor {DATA_VARIABLE} is set; set {DATA_VARIABLE} to the directory to use")
    return home


def _home_expanded(environ: Mapping[str, str], given: str) -> Path:
    """Expand a leading ``~``, which service files and .env files do not expand."""
    first, _, rest = given.partition("/")
    return Path(_home(environ), rest) if first == "~" else Path(given)
