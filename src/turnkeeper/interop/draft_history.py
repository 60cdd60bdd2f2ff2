"""Histories of a draft: links between messages, copies for branches, and totals."""

from turnkeeper.interop import shapes
from turnkeeper.interop.fields import usage
from turnkeeper.interop.raw import RawMessage, RawObject, derived_id
from turnkeeper.model.value import Json


def answer_prompts(history: list[RawMessage]) -> None:
    """Give each turn the id of the prompt before it."""
    prompt = ""
    for message in history:
        if message.info["role"] == "user":
            prompt = message.info["id"]
        else:
            message.info["parentID"] = prompt


def copied(message: RawMessage, names: dict[str, str], *, is_counted: bool) -> RawMessage:
    """A copy of a message for a branch. ``names`` has the new ids."""
    info = {**message.info, "id": names[message.info["id"]]}
    if "parentID" in info:
        info["parentID"] = names.get(info["parentID"], info["parentID"])
    parts: list[Json] = [
        {**part, "id": derived_id("prt", shapes.created(info), 0, info["id"], part["id"])}
        for part in message.parts
        if isinstance(part, dict)
    ]
    return RawMessage(info, parts, is_counted=is_counted)


def cost_of(message: RawMessage) -> float:
    """The cost of a message."""
    cost = message.info.get("cost")
    return cost if shapes.is_number(cost) else 0


def tokens_of(messages: list[RawMessage]) -> RawObject:
    """The tokens of all messages."""
    total = usage()
    for message in messages:
        found = shapes.tokens(message.info.get("tokens"))
        for kind in ("input", "output", "reasoning"):
            total[kind] += found[kind]
        for kind in ("read", "write"):
            total["cache"][kind] += found["cache"][kind]
    return total
