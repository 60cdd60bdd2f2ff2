"""Formatters: programs that are run over a file after an edit, each within a time limit. A failure costs a note.

They are confined like the commands of a model, and may also write the file that the call was allowed to change.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from anyio import to_thread

from turnkeeper.core import flags
from turnkeeper.core.limits import FORMAT_S
from turnkeeper.core.sandbox import temporary_of
from turnkeeper.model.config import FormatterConfig
from turnkeeper.workspace.after_edit import Confine, FormatOutcome
from turnkeeper.workspace.children import started

FILE: Final = "$FILE"
"""Placeholder for the path of the file in a command."""
_COMPLAINT_CHARS: Final = 300


class Formatter(NamedTuple):
    """One program. ``is_required``: a person named its command, and is told if it is missing."""

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    environment: Mapping[str, str]
    is_required: bool = True


_WEB: Final = (
    *(".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".html", ".css", ".scss", ".less"),
    *(".vue", ".svelte", ".json", ".jsonc", ".yaml", ".yml", ".md", ".mdx", ".graphql"),
)
BUILT_IN: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "clang-format": (("clang-format", "-i", FILE), (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")),
    "gofmt": (("gofmt", "-w", FILE), (".go",)),
    "prettier": (("prettier", "--write", FILE), _WEB),
    "ruff": (("ruff", "format", FILE), (".py", ".pyi")),
    "rustfmt": (("rustfmt", FILE), (".rs",)),
    "shfmt": (("shfmt", "-w", FILE), (".sh", ".bash")),
    "terraform": (("terraform", "fmt", FILE), (".tf", ".tfvars")),
    "zig": (("zig", "fmt", FILE), (".zig",)),
}
"""Formatters that are used where they are installed: command and extensions."""


OXFMT: Final = "oxfmt"
_OXFMT: Final = ((OXFMT, FILE), (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"))


def configured(
    config: bool | Mapping[str, FormatterConfig] | None, environ: Mapping[str, str]
) -> tuple[Formatter, ...]:
    """The formatters that a configuration asks for, in the order of their names."""
    if not config and not isinstance(config, Mapping):
        return ()
    own: Mapping[str, FormatterConfig] = config if isinstance(config, Mapping) else {}
    built_in = {**BUILT_IN, OXFMT: _OXFMT} if flags.OXFMT.is_on(environ) else BUILT_IN
    found = []
    for name in sorted({*built_in, *own}):
        given = own.get(name, FormatterConfig())
        command, extensions = built_in.get(name, ((), ()))
        formatter = Formatter(
            name, given.command or command, given.extensions or extensions, given.environment, given.command is not None
        )
        if not given.disabled and formatter.command:
            found.append(formatter)
    return tuple(found)


class Formatters:
    """The formatters of one directory."""

    def __init__(
        self,
        formatters: Sequence[Formatter],
        directory: Path,
        environ: Mapping[str, str],
        *,
        timeout_s: float = FORMAT_S,
    ) -> None:
        self._formatters, self._directory, self._environ, self._timeout_s = formatters, directory, environ, timeout_s

    async def format(self, path: Path, confine: Confine) -> FormatOutcome:
        """Run the formatters for this file, one after the other. Never fails."""
        ran: list[str] = []
        failures: list[str] = []
        for formatter in self._formatters:
            if path.suffix.lower() not in formatter.extensions:
                continue
            program = shutil.which(formatter.command[0], path=self._environ.get("PATH"))
            if program is None:
                if formatter.is_required:
                    failures.append(f"{formatter.name} is not installed: {formatter.command[0]!r} was not found.")
                continue
            failure = await self._run(formatter, program, path, confine)
            # Also one that failed may have changed the file.
            ran.append(formatter.name)
            if failure is not None:
                failures.append(f"{formatter.name} {failure}")
        return FormatOutcome(ran=tuple(ran), failures=tuple(failures))

    async def _run(self, formatter: Formatter, program: str, path: Path, confine: Confine) -> str | None:
        """The failure of a formatter as text; None if it succeeded."""
        arguments = [program, *(word.replace(FILE, str(path)) for word in formatter.command[1:])]
        output = bytearray()
        try:
            confined = await to_thread.run_sync(confine)
            environ = {**self._environ, **temporary_of(confined), **formatter.environment}
            if confined is not None:
                confined = confined.writing(os.path.realpath(path))
            with anyio.fail_after(self._timeout_s):
                async with started(
                    arguments, self._directory, environ, grace_s=0.5, confined=confined, is_of_model=True
                ) as running:
                    while piece := await running.read():
                        output += piece[: _COMPLAINT_CHARS * 4 - len(output)]
                    code = await running.wait()
        except TimeoutError:
            return f"was stopped after {self._timeout_s:g} s."
        except OSError as error:
            return f"cannot be run: {error.strerror or error}."
        if code == 0:
            return None
        complaint = " ".join(output.decode("utf-8", "replace").split())[:_COMPLAINT_CHARS]
        return f"failed with exit code {code}: {complaint or 'it printed nothing'}"
