"""The texts that a model is sent, read from text files."""

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The text of this name."""
    return files("turnkeeper.context").joinpath("prompts", f"{name}.txt").read_text("utf-8").strip()


@cache
def agent_prompts() -> dict[str, str]:
    """The prompts of the built-in agents that have their own, by name."""
    return {name: text(name) for name in ("explore", "compaction", "title", "summary")}
