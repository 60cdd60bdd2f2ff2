"""The model of a prompt that is sent to a store, and what is said if no model has a key."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.model.catalog import ModelInfo
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session

OFFLINE_ANSWERS: Final = (
    "No model has a key, so the offline model answers, by simple rules. `turnkeeper auth login PROVIDER` or a "
    "variable such as ANTHROPIC_API_KEY enables a real model; `turnkeeper models` lists them."
)


async def model_of_prompt(
    tk: "Turnkeeper",
    note: Callable[[str], None],
    prompt: "Prompt",
    session: "Session | None",
    directory: Path,
    *,
    is_asked: bool,
) -> "ModelChoice | None":
    """The model of a prompt; None if the agent or the session decides.

    Raises Invalid, before a session is created, if a model that will be asked has no key or lacks the variant.
    """
    from turnkeeper.providers.catalog import OFFLINE
    from turnkeeper.workspace.project import identify, stored_place

    place = await (stored_place(session.directory) if session is not None else identify(directory))
    directories = tk.runtime.directories
    config = (await directories.look(place)).config  # Plugins may bring the model or the agent.
    own = config.agent(prompt.agent or (session.agent if session is not None else None)).model
    if prompt.model is not None:
        directories.model(place, prompt.model)
    if is_asked and (first := prompt.model or own) is not None:
        directories.require(place, first)
    decided = prompt.model or own or await _last_model(tk, session)
    default = directories.default_model(place) if decided is None else None
    if prompt.variant is not None and (answering := decided or default) is not None:
        _check_variant(directories.model(place, answering), prompt.variant)
    if default is None:
        return prompt.model
    if is_asked:
        directories.require(place, default)
    if default.provider_id == OFFLINE.provider_id and not config.config.model:
        note(OFFLINE_ANSWERS)
    return default


async def _last_model(tk: "Turnkeeper", session: "Session | None") -> "ModelChoice | None":
    """The model that a session used last. The offline model is none: a real one is used as soon as it has a key."""
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.providers.catalog import OFFLINE
    from turnkeeper.sessions.prompt import last_model

    if session is None:
        return None
    used = session.model
    last = (
        ModelChoice(provider_id=used.provider_id, model_id=used.id)
        if used is not None
        else await last_model(tk.store, session)
    )
    return last if last is not None and last.provider_id != OFFLINE.provider_id else None


def _check_variant(model: "ModelInfo", variant: str) -> None:
    """Raise Invalid for a variant that a model lacks. A model without any variants may just be unknown to us."""
    if model.variants and variant not in model.variants:
        known = ", ".join(model.variants)
        raise Invalid(f"{model.provider_id}/{model.id} has no variant {variant!r}; its variants are: {known}")
