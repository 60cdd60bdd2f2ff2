"""Unknown fields of imported JSON, kept beside the value so that an export can restore them.

An overlay is ``{"set": {key: value}, "in": {key: overlay}}``: fields to add, and overlays for nested fields. Items of a
list are keyed by their index.
"""

from turnkeeper.model.value import JsonObject


def unknown(raw: object, known: object) -> JsonObject | None:
    """The overlay that turns ``known`` (JSON as we write it) back into ``raw`` (JSON as it came); None if nothing."""
    here: dict[str, object] = {}
    below: dict[str, object] = {}
    if isinstance(raw, dict) and isinstance(known, dict):
        for key, value in raw.items():
            if key not in known:
                here[key] = value
            elif (overlay := unknown(value, known[key])) is not None:
                below[key] = overlay
    elif isinstance(raw, list) and isinstance(known, list):
        for index, (value, ours) in enumerate(zip(raw, known, strict=False)):
            if (overlay := unknown(value, ours)) is not None:
                below[str(index)] = overlay
    if not here and not below:
        return None
    return {name: content for name, content in (("set", here), ("in", below)) if content}


def restore(known: object, overlay: JsonObject | None) -> object:
    """``known`` with the unknown fields put back. A field that ``known`` has keeps its value."""
    if not overlay:
        return known
    here, below = _object(overlay.get("set")), _object(overlay.get("in"))
    if isinstance(known, dict):
        kept = {key: restore(value, _object(below.get(key))) for key, value in known.items()}
        return {**kept, **{key: value for key, value in here.items() if key not in known}}
    if isinstance(known, list):
        return [restore(value, _object(below.get(str(index)))) for index, value in enumerate(known)]
    return known


def _object(value: object) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
