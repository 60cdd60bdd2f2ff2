"""The snapshots that a history names."""

import pytest

from turnkeeper.core.history_trees import KnownTree, TurnPatch, joined, newest, patches, trees
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, PatchPart, SnapshotPart, StepFinishPart, StepStartPart, TextPart
from turnkeeper.model.session import ZERO_TOKENS, Revert
from turnkeeper.testing.builders import a_user, an_assistant

HERE = "/home/me/prj"


def start(tree: str | None) -> StepStartPart:
    return StepStartPart(id="prt_start", session_id="ses_1", message_id="", snapshot=tree)


def finish(tree: str | None) -> StepFinishPart:
    return StepFinishPart(
        id="prt_finish",
        session_id="ses_1",
        message_id="",
        reason="stop",
        cost=0,
        tokens=ZERO_TOKENS,
        snapshot=tree,
    )


def patch(before: str, after: str | None, *files: str) -> PatchPart:
    return PatchPart(id="prt_patch", session_id="ses_1", message_id="", hash=before, after=after, files=files)


def again(tree: str) -> SnapshotPart:
    return SnapshotPart(id="prt_again", session_id="ses_1", message_id="", snapshot=tree)


def turn(id: str, *parts: Part) -> MessageWithParts:
    return MessageWithParts(info=an_assistant("ses_1", id, "msg_1"), parts=parts)


def known(*names: str) -> list[KnownTree]:
    return [KnownTree(tree=name, directory=HERE) for name in names]


TEXT = TextPart(id="prt_text", session_id="ses_1", message_id="", text="words")
PROMPT = MessageWithParts(info=a_user("ses_1", "msg_1"), parts=(TEXT,))


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((), ()),
        ((TEXT, start(None), finish(None)), ()),
        ((start("a"), TEXT, finish("b"), patch("a", "b", "f")), ("a", "b", "b")),
        ((start("a"), finish("a")), ("a", "a")),
        ((start("a"), again("b"), patch("b", "c", "f")), ("a", "b", "c")),
        ((patch("a", None, "f"),), ("a",)),
        ((start("a"), finish("b"), patch("a", None, "f")), ("a", "b")),
    ],
)
def test_the_snapshots_of_a_turn_are_in_the_order_they_were_taken(
    parts: tuple[Part, ...], found: tuple[str, ...]
) -> None:
    assert trees(turn("msg_2", *parts)) == known(*found)


def test_a_prompt_has_none() -> None:
    assert trees(PROMPT) == []


HISTORY = [
    PROMPT,
    turn("msg_2", start("a"), finish("b"), patch("a", "b", "/f")),
    turn("msg_3", TEXT),
    MessageWithParts(info=a_user("ses_1", "msg_4"), parts=(TEXT,)),
    turn("msg_5", start("b"), finish("c"), patch("b", "c", "/g", "/f")),
]


@pytest.mark.parametrize(
    ("revert", "tree"),
    [
        (None, "c"),
        (Revert(message_id="msg_4"), "b"),
        (Revert(message_id="msg_1"), None),
        (Revert(message_id="msg_2"), None),
        (Revert(message_id="msg_2", keeps_message=True), "b"),
        (Revert(message_id="msg_5", keeps_message=True), "c"),
        (Revert(message_id="msg_5", part_id="prt_finish"), "b"),
        (Revert(message_id="msg_5", part_id="prt_patch"), "c"),
        (Revert(message_id="msg_5", part_id="prt_none"), "b"),
    ],
)
def test_what_is_set_aside_does_not_count(revert: Revert | None, tree: str | None) -> None:
    assert newest(HISTORY, revert) == (known(tree)[0] if tree is not None else None)


def test_patches_of_turns_are_joined_from_the_first_snapshot_to_the_last() -> None:
    a, b, c = known("a", "b", "c")
    found = list(patches(HISTORY))
    assert found == [TurnPatch(before=a, after=b, files=("/f",)), TurnPatch(before=b, after=c, files=("/g", "/f"))]
    assert joined(found) == TurnPatch(before=a, after=c, files=("/f", "/g"))
    assert joined([]) is None
    assert list(patches([turn("msg_2", patch("a", None, "/f"))])) == []
