"""The prompt of a typed text. The session attaches the files and agents that the text mentions after ``@``."""

from turnkeeper.core.mentions import mentions
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.prompt import Prompt, TextInput


def prompt(text: str, *, agent: str | None, model: ModelChoice | None, delivery: Delivery = "steer") -> Prompt:
    """The prompt. A name after ``@`` that is neither a file nor an agent stays text: it may be an address."""
    said = TextInput(text=text, mentions=bool(mentions(text)))
    return Prompt(parts=(said,), agent=agent, model=model, delivery=delivery)
