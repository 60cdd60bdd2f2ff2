"""Documentation of settings: the docstring below each field of Config, as a list and as a JSON Schema for editors.

The text is read from the source of the model, so that a new setting is documented where it is defined.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import getsource
from typing import Final, NamedTuple, get_args

import msgspec
from msgspec import inspect as types

from turnkeeper.core import trust
from turnkeeper.core.setting_checks import alternatives
from turnkeeper.model.config import Config
from turnkeeper.model.permission import Action
from turnkeeper.model.setting_names import UNUSED
from turnkeeper.model.value import Json, JsonObject

ENTRY: Final = "[]"
"""The step of a dotted key that stands for an entry of a list."""
NAMES: Final[Mapping[str, str]] = {
    "agent": "reviewer",
    "command": "test",
    "formatter": "prettier",
    "lsp": "pyright",
    "models": "large",
    "provider": "local",
}
"""The names that examples use for ``*``."""

_PARTS: Final = re.compile(
    r"^(?P<meaning>.*?)(?: Default: (?P<default>.*?)\.?)?(?: Example: `(?P<example>.*)`)?$", re.DOTALL
)
_ANYTHING: Final[JsonObject] = {"type": ["string", "number", "boolean", "object", "array", "null"]}
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class FieldDoc(NamedTuple):
    """The parsed docstring of a field."""

    meaning: str = ""
    default: str = ""
    example: str = ""


class SettingDoc(NamedTuple):
    """One setting: its dotted key, with ``*`` for a name and ``[]`` for an entry, and its documentation."""

    key: str
    type: str
    doc: FieldDoc
    merge: str
    """The way in which the value of a weaker layer is combined: joined, merged or replaced."""
    project: str
    """The effect of the setting in a file of an untrusted project."""
    example: Json
    document: JsonObject
    """A configuration file with nothing but the example."""


@cache
def setting_docs() -> tuple[SettingDoc, ...]:
    """Every setting, in the order of the model."""
    return tuple(_walk(Config, (), ()))


def schema() -> dict[str, object]:
    """The JSON Schema of a configuration file. Unknown keys are allowed, as the program allows them."""
    made = msgspec.json.schema(Config, schema_hook=lambda kind: dict(_ANYTHING))
    classes = {kind.__name__: kind for kind in _structs(Config)}
    for name, definition in made["$defs"].items():
        docs = field_docs(classes[name]) if name in classes else {}
        properties = {key: value for key, value in definition.get("properties", {}).items() if not key.startswith("$")}
        for key, value in properties.items():
            if (doc := docs.get(key)) is not None and doc.meaning:
                value["description"] = plain(doc)
            value.pop("default", None)
        definition["properties"] = properties
        definition.pop("description", None)
    top = made["$defs"]["Config"]["properties"]
    for key, meaning in UNUSED.items():
        if "." not in key and key not in top:
            top[key] = {"description": f"Of opencode: {meaning}."}
    top["$schema"] = {"type": "string", "description": "The address of this schema."}
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of Turnkeeper"}
    return {**title, **made}


@cache
def field_docs(kind: type) -> Mapping[str, FieldDoc]:
    """The documentation of the fields of a class, by their names in a file."""
    found: dict[str, FieldDoc] = {}
    for one in reversed(kind.__mro__):
        if issubclass(one, msgspec.Struct) and one.__module__.startswith("turnkeeper.model."):
            found |= _written(one)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    return {names[name]: doc for name, doc in found.items() if name in names}


def _written(kind: type) -> dict[str, FieldDoc]:
    body = _classes(kind.__module__)[kind.__name__].body
    found: dict[str, FieldDoc] = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        match node, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                parts = _PARTS.fullmatch(" ".join(text.split()).replace("``", "`"))
                assert parts is not None
                found[name] = FieldDoc(*(parts[part] or "" for part in FieldDoc._fields))
    return found


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    tree = ast.parse(getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _structs(kind: type) -> Iterator[type]:
    yield kind
    for field in _fields(kind):
        for one in _inner(field.type):
            if isinstance(one, types.StructType):
                yield from _structs(one.cls)


def _fields(kind: type) -> tuple[types.Field, ...]:
    info = types.type_info(kind)
    assert isinstance(info, types.StructType)
    return tuple(field for field in info.fields if not field.encode_name.startswith("$"))


def _inner(kind: types.Type) -> Iterator[types.Type]:
    """The alternatives of a type, and those of its entries."""
    for one in alternatives([kind]):
        yield one
        match one:
            case (
                types.DictType(value_type=inner) | types.ListType(item_type=inner) | types.VarTupleType(item_type=inner)
            ):
                yield from _inner(inner)


def _walk(kind: type, above: tuple[str, ...], within: tuple[type, ...]) -> Iterator[SettingDoc]:
    docs = field_docs(kind)
    for field in _fields(kind):
        name = field.encode_name
        path, doc = (*above, name), docs.get(name, FieldDoc())
        example = _example(field, doc)
        yield SettingDoc(
            ".".join(path).replace(f".{ENTRY}", ENTRY),
            _type_name(field.type),
            doc,
            _merge(path, field.type),
            trust.holds_untrusted(path),
            example,
            _document(path, example, (*within, kind)),
        )
        for one in alternatives([field.type]):
            for step, struct in _below(one):
                yield from _walk(struct, (*path, *step), (*within, kind))


def _below(kind: types.Type) -> Iterator[tuple[tuple[str, ...], type]]:
    match kind:
        case types.StructType(cls=struct):
            yield (), struct
        case types.DictType(value_type=types.StructType(cls=struct)):
            yield ("*",), struct
        case types.VarTupleType(item_type=types.StructType(cls=struct)):
            yield (ENTRY,), struct


def _merge(path: tuple[str, ...], kind: types.Type) -> str:
    if path in (("instructions",), ("plugin",)):
        return "joined"
    is_object = any(isinstance(one, types.StructType | types.DictType) for one in alternatives([kind]))
    return "merged" if is_object else "replaced"


def _document(path: tuple[str, ...], example: Json, kinds: tuple[type, ...]) -> JsonObject:
    """A file with one setting, and with the required fields of the objects around it."""
    value, owners = example, list(kinds)
    for index in range(len(path) - 1, -1, -1):
        step = path[index]
        if step == ENTRY:
            value = [value]
        elif step == "*":
            value = {NAMES.get(path[index - 1], "name"): value}
        else:
            owner = owners.pop()
            docs = field_docs(owner)
            required = [one for one in _fields(owner) if one.required and one.encode_name != step]
            value = {**{one.encode_name: _example(one, docs[one.encode_name]) for one in required}, step: value}
    assert isinstance(value, dict)
    return value


def _example(field: types.Field, doc: FieldDoc) -> Json:
    if doc.example:
        return json.loads(doc.example)
    return _made(alternatives([field.type]))


def _made(kinds: list[types.Type]) -> Json:
    """An example value made from the type alone; None if the type does not suffice."""
    for kind in kinds:
        match kind:
            case types.LiteralType(values=(first, *_)):
                return first
            case types.BoolType():
                return True
            case types.IntType(ge=least):
                return least or 1
            case types.FloatType():
                return 1.0
            case types.StructType(cls=struct):
                first_field = _fields(struct)[0]
                return {first_field.encode_name: _example(first_field, field_docs(struct)[first_field.encode_name])}
    return None


def _type_name(kind: types.Type) -> str:
    found = [one for one in alternatives([kind]) if not isinstance(one, types.NoneType)]
    if any(isinstance(one, types.LiteralType) and set(one.values) == set(get_args(Action)) for one in found):
        return "an action, or actions by permission and pattern"
    names = [_one_type(one) for one in found]
    return " or ".join(dict.fromkeys(names))


def _one_type(kind: types.Type) -> str:
    match kind:
        case types.LiteralType(values=values):
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case types.StrType():
            return "text"
        case types.BoolType():
            return "true or false"
        case types.IntType():
            return "whole number"
        case types.FloatType():
            return "number"
        case types.DictType(value_type=inner) if not isinstance(inner, types.AnyType):
            return f"by name: {_type_name(inner)}"
        case types.ListType(item_type=inner) | types.VarTupleType(item_type=inner):
            return f"list of {_type_name(inner)}"
        case _:
            return "object"


def plain(doc: FieldDoc) -> str:
    """The documentation of a field in one text, without links."""
    text = _LINK.sub(r"\1", doc.meaning)
    return f"{text} Default: {doc.default}." if doc.default else text
