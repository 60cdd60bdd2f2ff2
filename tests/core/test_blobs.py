"""Blobs: long strings leave the event and come back to it."""

from hashlib import sha256

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core import blobs
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model import event as e
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import encode
from turnkeeper.testing.builders import a_call, a_text, a_user, an_assistant, completed

USER = a_user("ses_one", "msg_one")


def recorded(text: str) -> e.PartRecorded:
    return e.PartRecorded(part=a_text(USER, "prt_one", text))


# A long string is drawn as its seed: Hypothesis need not shrink 32,000 characters.
strings = st.text(max_size=20) | st.text(min_size=1, max_size=3).map(lambda seed: seed * BLOB_CHARS_MIN)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), json, max_size=4))
def test_lowering_what_was_lifted_gives_the_value_back(metadata: dict[str, object]) -> None:
    event = e.MetadataSet(metadata=metadata)
    lifted, found = blobs.lift(event, encode(event))
    assert blobs.lower(lifted, {name: body.decode() for name, body in found.items()}) == event
    assert blobs.references(encode(lifted)) == found.keys()
    assert all(name == sha256(body).hexdigest() for name, body in found.items())
    assert len(encode(lifted)) <= len(encode(event))


def test_a_string_is_lifted_from_the_limit_on_and_not_before() -> None:
    short, long = recorded("x" * (BLOB_CHARS_MIN - 1)), recorded("x" * BLOB_CHARS_MIN)
    assert blobs.lift(short, encode(short)) == (short, {})
    assert list(blobs.lift(long, encode(long))[1].values()) == [b"x" * BLOB_CHARS_MIN]


def test_equal_strings_are_one_blob() -> None:
    call = a_call(an_assistant("ses_one", "msg_a", "msg_one"), "prt_c", completed("y" * BLOB_CHARS_MIN))
    event = e.MessageRecorded(message=USER, parts=(call, call.but(id="prt_d"), a_text(USER, "prt_e", "z" * 40_000)))
    _, found = blobs.lift(event, encode(event))
    assert sorted(map(len, found.values())) == [BLOB_CHARS_MIN, 40_000]


def test_what_was_read_from_the_store_can_be_written_back() -> None:
    event = recorded("x" * BLOB_CHARS_MIN)
    lifted, found = blobs.lift(event, encode(event))
    assert blobs.lift(lifted, encode(lifted), found.keys()) == (lifted, {})


def test_text_that_reads_like_a_mark_of_a_foreign_blob_becomes_a_blob_itself() -> None:
    forged = recorded(blobs.MARK + "0" * 64)
    lifted, found = blobs.lift(forged, encode(forged))
    [(name, content)] = found.items()
    assert name != "0" * 64
    assert blobs.lower(lifted, {name: content.decode()}) == forged


def test_a_missing_blob_leaves_its_mark() -> None:
    event = recorded("x" * BLOB_CHARS_MIN)
    lifted, _ = blobs.lift(event, encode(event))
    assert blobs.lower(lifted, {}) == lifted


def test_a_text_put_together_from_marks_is_spelt_out() -> None:
    call = a_call(an_assistant("ses_one", "msg_a", "msg_one"), "prt_c", completed("words " * BLOB_CHARS_MIN))
    event = e.PartRecorded(part=call)
    lifted, found = blobs.lift(event, encode(event))
    [name] = found
    assert isinstance(lifted, e.PartRecorded)
    assert isinstance(lifted.part, ToolPart)
    assert isinstance(lifted.part.state, ToolCompleted)
    text = f"ls\n{lifted.part.state.output}"
    assert blobs.mentioned(text) == {name}
    assert blobs.spell_out(text, found) == "ls\n" + "words " * BLOB_CHARS_MIN
    assert blobs.spell_out(text, {}) == text


@given(st.dictionaries(st.text(max_size=5), json, max_size=4))
def test_spelling_out_json_is_lowering_what_it_says(metadata: dict[str, object]) -> None:
    event = e.MetadataSet(metadata=metadata)
    lifted, found = blobs.lift(event, encode(event))
    assert blobs.spelt(encode(lifted), found) == encode(event)


def test_only_a_value_that_is_a_whole_mark_is_spelt_out() -> None:
    name = sha256(b"long").hexdigest()
    mark = f"{blobs.MARK}{name}"
    near = {mark: 1, "a": f'"{mark}', "b": f'say "{mark}"', "c": f"{mark} ", "d": [mark, mark]}
    spelt = msgspec.json.decode(blobs.spelt(encode(near), {name: b"long"}))
    assert spelt == {**near, "d": ["long", "long"]}
    assert blobs.spelt(encode(mark), {}) == encode(mark)
