"""The command that shows which model answers here and why, and writes the user's own choice."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import candidates, own_files
from turnkeeper.cli.config import fate_of, place_of, said_by
from turnkeeper.cli.config_edit import user_file, user_files
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.models import local_settings
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, remark
from turnkeeper.cli.screen import Screen, harmless
from turnkeeper.model.refusal import NotFound

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
        found = own_files.edit_all(user_files(options.environ), _without, "remove `model` from it")
        changed = [str(file) for file in found]
    if changed:
        loaded, catalog = await local_settings(options.environ)
    shown = _Shown(loaded, catalog, options)
    answer(options, {**shown.wire(), "changed": changed}, lambda screen: shown.text(screen, changed, model))
    if unset and not changed:
        remark(options, "None of your own files sets a model.")


class _Shown:
    """The model that answers, and why."""

    def __init__(self, loaded: "LoadedSettings", catalog: "Catalog", options: Options) -> None:
        from turnkeeper.core.agents import default_agent
        from turnkeeper.providers import choice
        from turnkeeper.run.configured import configured_agents
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
                lines.append(f"    {fate_of(one)}")
        if self.agent is not None:
            lines.append(f"The agent {harmless(self.agent['name'])} has its own: {harmless(self.agent['model'])}")
        if wanted is not None and wanted != self.model:
            lines.append(f"Elsewhere {harmless(wanted)} answers; here a stronger file or variable decides.")
        return "\n".join(lines)


def _choose(file: Path, model: str) -> Path:
    from turnkeeper.text import member_edit, toml_edit

    def edit(text: str) -> str | None:
        if file.suffix == ".toml":
            return toml_edit.with_toml_member(text, "model", model)
        return member_edit.with_jsonc_member(text, ["model"], model)

    paste = f"model = {json.dumps(model)}" if file.suffix == ".toml" else f'"model": {json.dumps(model)}'
    own_files.write(file, own_files.edited(file, edit, f"put this at its top: {paste}"))
    return file


def _without(file: Path, text: str) -> str | None:
    from turnkeeper.text import member_edit, toml_edit

    if file.suffix == ".toml":
        return toml_edit.without_toml_member(text, "model")
    return member_edit.without_jsonc_member(text, ["model"])
