"""JSON Schema: what fits, what does not, and how it is said."""

import pytest

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.text.json_schema import VIOLATIONS_MAX, check_schema, violations

TREE: dict[str, object] = {
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    },
    "$ref": "#/$defs/node",
}
EITHER = [{"type": "string"}, {"type": "integer"}]

ROWS: list[tuple[dict[str, object], list[object], list[object]]] = [
    ({}, [None, 1, "x", [], {}], []),
    ({"type": "object"}, [{}], [[], None, "x"]),
    ({"type": "array"}, [[], [1]], [{}, "x"]),
    ({"type": "string"}, ["", "x"], [1, None]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "null"}, [None], [0, "", False]),
    ({"type": "number"}, [1, 1.5, -2], [True, "1"]),
    ({"type": "integer"}, [1, 2.0], [1.5, True, "1"]),
    ({"type": ["string", "null"]}, ["x", None], [1]),
    ({"type": "of another time"}, [1, "x"], []),
    ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", True, "1"]),
    ({"const": {"a": [1]}}, [{"a": [1]}], [{"a": [True]}, {"a": [2]}, 1]),
    ({"const": True}, [True], [1]),
    ({"required": ["a"]}, [{"a": None}, "no object"], [{}]),
    ({"properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}, {"b": "x"}], [{"a": "x"}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
    ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "x"}]),
    (
        {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        [{"x-a": "1"}],
        [{"x-a": 1}, {"a": "1"}],
    ),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 2, "c": 3}]),
    ({"items": {"type": "integer"}}, [[], [1, 2]], [[1, "x"]]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [[], ["x"]], [[1], ["x", 1]]),
    ({"minItems": 1, "maxItems": 2}, [[1]], [[], [1, 2, 3]]),
    ({"uniqueItems": True}, [[1, 2], [1, True]], [[1, 1], [{"a": 1}, {"a": 1}]]),
    ({"contains": {"type": "string"}}, [[1, "x"]], [[1], []]),
    ({"minLength": 2, "maxLength": 3}, ["ab", "äöü"], ["a", "abcd"]),
    ({"pattern": "^a+$"}, ["aa"], ["ab"]),
    ({"pattern": "(unclosed"}, ["anything"], []),
    ({"minimum": 1, "maximum": 3}, [1, 3], [0.5, 4]),
    ({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [2], [1, 3]),
    ({"multipleOf": 0.1}, [0.3, 1, 10**400], [0.35]),
    ({"multipleOf": 5}, [10, 0], [7]),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [0, 4]),
    ({"anyOf": EITHER}, ["x", 1], [None]),
    ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, [0, 4], [2]),
    ({"not": {"type": "string"}}, [1], ["x"]),
    (
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}},
        ["ab", 1],
        ["a", None],
    ),
    ({"if": {"type": "string"}}, ["a", None], []),
    (TREE, [{}, {"next": {"next": {}}}], [{"next": {"other": 1}}, 1]),
    ({"$ref": "#/nowhere"}, [1], []),
    ({"$defs": {"a/b~c": {"type": "string"}}, "$ref": "#/$defs/a~1b~0c"}, ["x"], [1]),
    ({"format": "email", "title": "T", "unknown": 1}, ["not checked"], []),
]


@pytest.mark.parametrize(("schema", "fitting", "wrong"), ROWS, ids=[str(row[0])[:60] for row in ROWS])
def test_values_fit_or_do_not(schema: dict[str, object], fitting: list[object], wrong: list[object]) -> None:
    assert [(value, found) for value in fitting if (found := violations(value, schema))] == []
    assert [value for value in wrong if not violations(value, schema)] == []


def test_a_violation_says_where_and_what() -> None:
    schema = {
        "type": "object",
        "properties": {
            "people": {"type": "array", "items": {"required": ["age"], "properties": {"age": {"minimum": 0}}}}
        },
    }
    assert violations({"people": [{"age": -1}, {}]}, schema) == [
        "$.people[0].age: -1 is less than the minimum of 0",
        '$.people[1]: "age" is a required property',
    ]
    assert violations(False, {"type": "integer"}) == ['$: false is not of type "integer"']


def test_not_more_is_said_than_a_model_can_use() -> None:
    assert len(violations(["x"] * 100, {"items": {"type": "integer"}})) == VIOLATIONS_MAX


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert violations(1, {"$ref": "#"}) == []
    twice = [{"$ref": "#/$defs/a"}] * 2
    check_schema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {"allOf": twice}}}}})
    chain: JsonObject = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(300)}
    check_schema({"$ref": "#/$defs/a0", "$defs": {**chain, "a300": {"type": "object"}}})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "of another time"}, "of another time"),
        ({"pattern": "(unclosed"}, "unclosed"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "leads out of the schema"),
        ({"$ref": "file:///etc/passwd"}, "leads out of the schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_and_nothing_is_fetched(schema: JsonObject, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        check_schema(schema)
    assert violations(1, schema) == []
