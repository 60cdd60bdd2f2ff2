"""The command that shows which model answers here and why, and writes the user's own choice."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import candidates
from turnkeeper.cli.config import FATES, place_of, said_by
from turnkeeper.cli.config_edit import own_files, user_file
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.models import local_settings
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, note
from turnkeeper.cli.screen import Screen, harmless
from turnkeeper.model.refusal import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.workspace.config import LoadedSettings


async def default(
    model: Annotated[
        str | None,
        Parameter(
            metavar="PROVIDER/MODEL",
            help="Make this your default model, in your own file.",
            completer=candidates.models,
        ),
    ] = None,
    /,
    *,
    unset: Annotated[bool, Parameter(help="Remove your choice from your own files.")] = False,
    options: Options,
) -> None:
    """Show which model answers here and why, or choose your own default.

    It answers prompts that name none, unless the agent or the session has one.
    The strongest layer that sets `model` holds; without one it is chosen by your
    keys. A choice is written to your own file in ~/.config/turnkeeper, whose
    comments and layout stay; if that cannot be done, you are told what to paste.
    The file of a project is never written. With --json the answer is {"model",
    "why", "said", "agent", "changed"}; "said" is that of `config explain`.

    For example:
      turnkeeper models default
      turnkeeper models default anthropic/claude-sonnet-4-5
      turnkeeper models default --unset
    """
    if model is not None and unset:
        raise UsageError("give a model or --unset, not both")
    loaded, catalog = await local_settings(options.environ)
    changed: list[str] = []
    if model is not None:
        catalog.named(model)
        changed = [str(_choose(user_file(options.environ), model))]
    elif unset:
        changed = [str(file) for file in _forget(own_files(options.environ))]
    if changed:
        loaded, catalog = await local_settings(options.environ)
    shown = _Shown(loaded, catalog, options)
    answer(options, {**shown.wire(), "changed": changed}, lambda screen: shown.text(screen, changed, model))
    if unset and not changed and not options.json:
        note("None of your own files sets a model.")


class _Shown:
    """The model that answers, and why."""

    def __init__(self, loaded: "LoadedSettings", catalog: "Catalog", options: Options) -> None:
        from turnkeeper.core.agents import default_agent
        from turnkeeper.providers import choice
        from turnkeeper.run.directories import configured_agents
        from turnkeeper.workspace import auth

        credentials = auth.credentials(options.environ)
        self.said = said_by(loaded, ("model",))
        agent = default_agent(configured_agents(loaded.config, options.environ), loaded.config)
        own = agent.model
        self.agent = {"name": agent.name, "model": f"{own.provider_id}/{own.model_id}"} if own is not None else None
        try:
            found = choice.default_model(catalog, loaded.config, credentials)
        except NotFound as error:
            self.model, self.why = loaded.config.model or "", f"{self._place()}, but {error}"
            return
        key = choice.key(catalog.provider(found.provider_id), credentials)
        self.model = f"{found.provider_id}/{found.id}"
        self.why = self._place() if loaded.config.model else self._reason(key.origin if key else None)

    def _place(self) -> str:
        holding = next(one for one in reversed(self.said) if one["fate"] == "holds")
        return f"set in {place_of(holding)} ({holding['layer']})"

    def _reason(self, origin: str | None) -> str:
        if self.model == "offline/tk-1":
            return "no file sets `model`, and no provider has a key of its own"
        return f"no file sets `model`; it is the best model for which there is a key ({origin or 'needs none'})"

    def wire(self) -> dict[str, object]:
        """As JSON."""
        return {"model": self.model, "why": self.why, "said": self.said, "agent": self.agent}

    def text(self, screen: Screen, changed: list[str], wanted: str | None) -> str:
        """For people."""
        verb = "Wrote" if wanted is not None else "Removed the model from"
        lines = [f"{verb} {screen.path(file)}" for file in changed]
        lines += [f"{screen.paint(harmless(self.model), 'bold')}: {harmless(self.why)}"]
        for one in reversed(self.said):
            if one["fate"] != "holds":
                lines.append(f"  {harmless(place_of(one))}: {harmless(json.dumps(one['value']))}")
                lines.append(f"    {FATES[str(one['fate'])]}{'; ' if one['note'] else ''}{one['note']}")
        if self.agent is not None:
            lines.append(f"The agent {harmless(self.agent['name'])} has its own: {harmless(self.agent['model'])}")
        if wanted is not None and wanted != self.model:
            lines.append(f"Elsewhere {harmless(wanted)} answers; here a stronger file or variable decides.")
        return "\n".join(lines)


def _choose(file: Path, model: str) -> Path:
    from turnkeeper.text import member_edit

    edit = member_edit.with_toml_member if file.suffix == ".toml" else member_edit.with_jsonc_member
    paste = f"model = {json.dumps(model)}" if file.suffix == ".toml" else f'"model": {json.dumps(model)}'
    _write(file, _edited(file, lambda text: edit(text, "model", model), f"put this at its top: {paste}"))
    return file


def _forget(files: list[Path]) -> list[Path]:
    """Remove the model from all files that set it; from none if one of them cannot be edited."""
    from turnkeeper.text import member_edit

    found = []
    for file in files:
        edit = member_edit.without_toml_member if file.suffix == ".toml" else member_edit.without_jsonc_member
        text = _edited(file, partial(edit, key="model"), "remove `model` from it")
        if text != _text(file):
            found.append((file, text))
    for file, text in found:
        _write(file, text)
    return [file for file, _ in found]


def _edited(file: Path, edit: Callable[[str], str | None], advice: str) -> str:
    edited = edit(_text(file))
    if edited is None:
        raise Conflict(f"{str(file)!r} cannot be changed without losing its layout, so it was left alone; {advice}")
    return edited


def _text(file: Path) -> str:
    from turnkeeper.workspace import settings_source

    if not os.path.lexists(file):
        return ""
    try:
        return settings_source.content_of(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{str(file)!r} is no text: {error}") from error


def _write(file: Path, text: str) -> None:
    from turnkeeper.workspace import files

    files.write_whole(file, text.encode())
