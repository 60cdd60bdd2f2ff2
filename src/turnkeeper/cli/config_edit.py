"""The command that opens a configuration file in an editor, and checks it afterwards."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import note
from turnkeeper.cli.screen import harmless, show
from turnkeeper.model.refusal import Forbidden, Invalid

if TYPE_CHECKING:
    from turnkeeper.workspace.project import ProjectPlace

NAME: Final = "turnkeeper.jsonc"
SCHEMA: Final = "config.schema.json"
SCAFFOLD: Final = f"""{{
  "$schema": "./{SCHEMA}",
  // "model": "anthropic/claude-sonnet-4-5",
  // "permission": {{"bash": "ask"}}
}}
"""


async def edit(
    *,
    global_: Annotated[bool, Parameter(name="--global", help="Your own settings; this is the default.")] = False,
    project: Annotated[bool, Parameter(help="The settings of the project of the working directory.")] = False,
    options: Options,
) -> int:
    """Open a configuration file in your editor, and check it afterwards.

    The editor is $VISUAL or $EDITOR. The strongest file that exists is opened.
    Without one, turnkeeper.jsonc is made, with a JSON Schema beside it by which
    editors complete keys; both are removed again if you change nothing. A file
    with mistakes stays as you saved it: what is wrong is listed, and the exit
    code is 1 if it is an error. A project's file holds in full once you trust it.

    For example:
      turnkeeper config edit
      turnkeeper config edit --project
    """
    from turnkeeper.workspace.project import identify

    if global_ and project:
        raise UsageError("give --global or --project, not both")
    if options.json:
        raise UsageError("an editor prints no JSON; `turnkeeper config check --json` does")
    editor = _editor(options.environ)
    place = await identify(Path.cwd())
    file = _project_file(place) if project else user_file(options.environ)
    is_new = not os.path.lexists(file)
    if is_new:
        _scaffold(file)
    before = file.read_bytes()
    ended = _opened(editor, file)
    if is_new and file.exists() and file.read_bytes() == before:
        _remove_scaffold(file)
        note(f"Nothing was changed, so there is no {harmless(str(file))}.")
        return OK
    if ended:
        note(f"{harmless(editor[0])} ended with exit code {ended}; the file is checked as it is.")
    return _checked(file, place, options, is_project=project)


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's strongest file of ours; turnkeeper.jsonc, if there is none."""
    from turnkeeper.workspace import paths

    found = user_files(environ)
    return found[-1] if found else paths.config(environ) / NAME


def user_files(environ: Mapping[str, str]) -> list[Path]:
    """The user's files of ours that exist, weakest first."""
    from turnkeeper.workspace import paths, setting_files

    found = [file for file in setting_files.user_files(environ) if os.path.lexists(file)]
    return [file for file in found if file.parent == paths.config(environ)]


def _editor(environ: Mapping[str, str]) -> list[str]:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Forbidden("an editor needs a terminal; change the file yourself, and run `turnkeeper config check`")
    given = environ.get("VISUAL") or environ.get("EDITOR")
    try:
        words = shlex.split(given or "")
    except ValueError as error:
        raise Invalid(f"VISUAL or EDITOR is no command: {error}") from error
    if not words:
        raise Forbidden("there is no editor; set VISUAL or EDITOR, as in EDITOR=nano")
    return words


def _opened(editor: list[str], file: Path) -> int:
    try:
        return subprocess.run([*editor, str(file)], check=False).returncode
    except OSError as error:
        raise Invalid(f"the editor {editor[0]!r} cannot be started: {error}; set VISUAL or EDITOR") from error


def _project_file(place: "ProjectPlace") -> Path:
    """The strongest file of a project; one in ``.turnkeeper``, if there is none."""
    from turnkeeper.workspace import setting_files

    files = [file for file in setting_files.project_files(place.top, place.top, {}) if isinstance(file, Path)]
    found = [file for file in files if os.path.lexists(file)]
    return found[-1] if found else place.top / ".turnkeeper" / NAME


def _scaffold(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SCAFFOLD, "utf-8")
    schema = file.parent / SCHEMA
    if not schema.exists():
        schema.write_text(schema_text(), "utf-8")


def _remove_scaffold(file: Path) -> None:
    file.unlink()
    schema = file.parent / SCHEMA
    if schema.exists() and schema.read_text("utf-8") == schema_text():
        schema.unlink()


def schema_text() -> str:
    """The JSON Schema of configuration files."""
    from turnkeeper.workspace import setting_docs

    return json.dumps(setting_docs.schema(), indent=2) + "\n"


def _checked(file: Path, place: "ProjectPlace", options: Options, *, is_project: bool) -> int:
    from turnkeeper.workspace import config
    from turnkeeper.workspace.trust import TrustedDirectories

    if not file.exists():
        note(f"{harmless(str(file))} is gone.")
        return OK
    [source] = config.checked_file(file, place.directory, options.environ)
    for line in (*source.errors, *source.warnings):
        show(harmless(line), to=sys.stderr)
    if source.errors:
        note("A server that runs keeps the last good settings of the file until this is mended.")
        return REFUSED
    note(f"{harmless(str(file))} is {'used, but for this' if source.warnings else 'right'}.")
    trusted = TrustedDirectories(options.environ)
    if is_project and not trusted.has_settings(file, file.read_bytes()):
        note("It holds only as far as it narrows what may happen, until `turnkeeper trust` trusts it as it is now.")
    return OK
