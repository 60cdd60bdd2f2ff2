"""The prompt component: the prompt of the agent, or else the prompt for the family of the model."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.texts import text
from turnkeeper.model.context import Loaded, Sample

FAMILIES = (
    ("codex", "codex"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
    ("claude", "anthropic"),
)
"""A part of a model's name, and the text for that family. The first match is used, or ``base`` alone."""


def family_prompt(api_id: str) -> str:
    """The prompt for a model: the text for all models, and that of its family."""
    name = api_id.lower()
    special = next((which for part, which in FAMILIES if part in name), None)
    return f"{text('base')}\n\n{text(special)}" if special is not None else text("base")


async def load(sampling: Sampling) -> Sample:
    """The current prompt."""
    prompt = sampling.agent.prompt or family_prompt(sampling.model.api_id)
    return Loaded(
        baseline=prompt, update=f"From now on these are your instructions, in place of earlier ones:\n{prompt}"
    )


PROMPT = ContextComponent("core/prompt", load, waits=False)
