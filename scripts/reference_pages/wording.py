"""Types and docstrings, put into words for a reference page."""

import inspect
import re
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin


def said(thing: object) -> str:
    """A docstring as one paragraph of Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").split())
    return text.replace("``", "`")


def spelt(annotation: object) -> str:
    """A type for people who read JSON."""
    arguments = [argument for argument in get_args(annotation) if argument is not NoneType]
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        if set(arguments) == {int, float}:
            return "number"
        return " or ".join(dict.fromkeys(spelt(argument) for argument in arguments))
    if origin is Annotated:
        return spelt(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if origin is tuple:
        return f"list of {spelt(arguments[0])}"
    if origin in (dict, Mapping):
        inner = spelt(arguments[1])
        return "object" if inner == "any JSON" else f"object of {inner}"
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", object: "any JSON"}
    if isinstance(annotation, type):
        return plain.get(annotation, f"`{annotation.__name__}`")
    raise TypeError(f"no words for the type {annotation!r}; teach spelt() some")


def words(hint: object) -> str:
    """An annotation as it would be written, in a cell of a table."""
    text = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return "`" + text.replace("NoneType", "None").replace("|", "\\|") + "`"


def plainly(text: str) -> str:
    """A signature without modules in front of types, and without quotes around those that are imported late."""
    unquoted = re.sub(r"\*<class '([^']+)'>", r"Unpack[\1]", text)  # So Python shows the keywords of a TypedDict.
    unquoted = re.sub(r"(?<=: |> )'([^']+)'", r"\1", unquoted)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z_a-z])", "", unquoted)


def signature(method: Callable[..., object]) -> str:
    """The parameters as a caller writes them, without modules in front of the types."""
    found = inspect.signature(method)
    own = [parameter for key, parameter in found.parameters.items() if key not in ("self", "cls")]
    text = plainly(str(found.replace(parameters=own)))
    if len(text) <= 90:
        return text
    keyword = False
    lines = []
    for parameter in own:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            keyword = True
            lines.append("    *,")
        lines.append(f"    {parameter},")
    inner = plainly("\n".join(lines))
    return f"(\n{inner}\n){text[text.rindex(')') + 1 :]}"


def json_type(schema: Mapping[str, object]) -> str:
    """A type of JSON schema, in a cell of a table."""
    match schema:
        case {"enum": list(choices)}:
            return " or ".join(f"`{choice}`" for choice in choices)
        case {"type": "array", "items": {"type": "object", "properties": dict(fields)}}:
            return f"list of objects with {', '.join(f'`{name}`' for name in fields)}"
        case {"type": "array", "items": {"type": inner}}:
            return f"list of {inner}s"
        case {"type": kind}:
            return str(kind)
    raise TypeError(f"no words for the schema {schema!r}; teach json_type() some")
