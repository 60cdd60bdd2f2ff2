"""Explanation of a setting: its value in each layer, and the effect of that value."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from turnkeeper.core import provenance
from turnkeeper.core.provenance import MISSING, Path
from turnkeeper.model.value import Json, JsonObject

Fate: TypeAlias = Literal["holds", "joined", "merged", "overridden", "in part", "left out"]


class Said(NamedTuple):
    """The value of a setting in one layer, and its effect."""

    layer: int
    value: Json
    fate: Fate


def explained(
    written: Sequence[JsonObject], holding: Sequence[JsonObject], apart: Sequence[JsonObject], path: Path
) -> tuple[Said, ...]:
    """The value of a setting in each layer that has one, weakest first, with its effect.

    ``written`` are the layers as they are in their files, ``holding`` the parts of them that have effect. They differ
    where a project is not trusted, or may not widen a setting. ``apart`` are parts of such a project that have effect
    without being merged.
    """
    found = []
    strongest = next(iter(reversed(provenance.setters(holding, path))), None)
    for number in provenance.setters(written, path):
        value, kept = provenance.at(written[number], path), provenance.at(holding[number], path)
        rule = provenance.rule(path, value, value)
        if kept is MISSING:
            fate: Fate = "left out" if provenance.at(apart[number], path) is MISSING else "in part"
        elif kept != value:
            fate = "in part"
        elif strongest is None or number == strongest:
            fate = "holds"
        elif rule == "replaced" or not _reaches(holding[number + 1 :], path, rule):
            fate = "overridden"
        else:
            fate = rule
        found.append(Said(number, value, fate))
    return tuple(found)


def _reaches(stronger: Sequence[JsonObject], path: Path, rule: provenance.Rule) -> bool:
    """Whether no stronger layer puts something else in the place of a value, or of an object around it."""
    kind = dict if rule == "merged" else list
    for layer in stronger:
        for length in range(1, len(path) + 1):
            value = provenance.at(layer, path[:length])
            if value is not MISSING and not isinstance(value, dict if length < len(path) else kind):
                return False
    return True
