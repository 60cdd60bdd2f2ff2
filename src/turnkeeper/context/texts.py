"""Model-visible prose: read from text files, which are reviewed like code."""

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The text of this name."""
    return files("turnkeeper.context").joinpath("prompts", f"{name}.txt").read_text("utf-8").strip()
