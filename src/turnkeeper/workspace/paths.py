"""Where files live: this program's XDG directories, and opencode's for importing. Nothing is created."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROGRAM: Final = "turnkeeper"
OPENCODE: Final = "opencode"
DATA_VARIABLE: Final = "TURNKEEPER_DATA"

REPOSITORY: Final = ".git"
"""What stands at the top of a repository."""
USER_SETTINGS: Final = "config.json"
"""One more name for settings, in the user's own directory."""
SETTINGS: Final = ("opencode.json", "opencode.jsonc", "turnkeeper.json", "turnkeeper.jsonc")
SETTINGS_FOLDERS: Final = (".opencode", ".turnkeeper")


def data(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """Where sessions are kept; ``TURNKEEPER_DATA`` overrides it for this program."""
    if program == PROGRAM and environ.get(DATA_VARIABLE):
        return _home_expanded(environ, environ[DATA_VARIABLE])
    return _base(environ, "XDG_DATA_HOME", ".local/share") / program


def config(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """Where a person's settings are kept."""
    return _base(environ, "XDG_CONFIG_HOME", ".config") / program


def state(environ: Mapping[str, str], program: str = PROGRAM) -> Path:
    """Where things worth keeping but not worth moving are kept, such as logs."""
    return _base(environ, "XDG_STATE_HOME", ".local/state") / program


def opencode_database(environ: Mapping[str, str]) -> Path | None:
    """opencode's database: ``OPENCODE_DB`` (absolute, or in its data directory), else the usual one.

    None if its user keeps it in memory. Whether the file exists is for the caller to see.
    """
    name = environ.get("OPENCODE_DB") or "opencode.db"
    return None if name == ":memory:" else data(environ, OPENCODE) / name


def opencode_storage(environ: Mapping[str, str]) -> Path:
    """The JSON tree that opencode wrote before it had a database."""
    return data(environ, OPENCODE) / "storage"


def _base(environ: Mapping[str, str], variable: str, default: str) -> Path:
    given = environ.get(variable, "")
    # The XDG specification says that a relative path here is invalid and to be ignored.
    return Path(given) if Path(given).is_absolute() else _home(environ) / default


def _home(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not home:
        raise ValueError(f"neither HOME nor {DATA_VARIABLE} is set; set {DATA_VARIABLE} to the directory to use")
    return Path(home)


def _home_expanded(environ: Mapping[str, str], given: str) -> Path:
    """Expand a leading ``~``, which a service file or an .env file passes on as it is."""
    first, _, rest = given.partition("/")
    return _home(environ) / rest if first == "~" else Path(given)
