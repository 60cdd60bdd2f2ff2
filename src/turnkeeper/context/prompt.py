"""The prompt component: who the model is here. The agent's own prompt, else the one for its family."""

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
"""What a model's name holds, and which text is written for that family; first match wins, else ``base`` alone."""


def family_prompt(api_id: str) -> str:
    """The prompt of a model's family: what holds for all, and what this family needs to be told besides."""
    name = api_id.lower()
    special = next((which for part, which in FAMILIES if part in name), None)
    return f"{text('base')}\n\n{text(special)}" if special is not None else text("base")


async def load(sampling: Sampling) -> Sample:
    """The prompt in force."""
    prompt = sampling.agent.prompt or family_prompt(sampling.model.api_id)
    return Loaded(
        baseline=prompt, update=f"From now on these are your instructions, in place of earlier ones:\n{prompt}"
    )


PROMPT = ContextComponent("core/prompt", load, waits=False)
