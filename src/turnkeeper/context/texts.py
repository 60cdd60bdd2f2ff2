"""The texts that a model is sent, read from text files."""

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The text of this name."""
    return files("turnkeeper.context").joinpath("prompts", f"{name}.txt").read_text("utf-8").strip()
