"""recall: pages of a text by its handle, a file as it is, places by words."""

from typing import Any

import pytest
from desk import Desk

from turnkeeper.core.handles import RecallText, handle
from turnkeeper.core.limits import RECALL_PAGE_BYTES, RECALL_PAGE_CHARS
from turnkeeper.core.recall import NamedFile, Recalled, RecallHit
from turnkeeper.tools.tool import Attachment, ToolFailure


def knows(desk: Desk, text: str, label: str = "bash: ls", **more: Any) -> str:
    piece = RecallText(label=label, text=text, **more)
    desk.recalled[piece.handle] = Recalled(message_id="msg_1", piece=piece)
    return piece.handle


async def test_a_short_text_is_one_page(desk: Desk) -> None:
    name = knows(desk, "one\r\ntwo\0")
    output = await desk.run("recall", handle=name)
    assert output.output == f"[{name}, bash: ls: characters 0 to 9 of 9, the end]\none\r\ntwo\0"
    assert output.metadata == {"handle": name, "offset": 0, "nextOffset": None, "total": 9, "truncated": False}


@pytest.mark.parametrize("letter", ["a", "é", "\U0001f600", "\n"])
async def test_a_long_text_comes_in_pages_that_are_never_cut(desk: Desk, letter: str) -> None:
    text = "".join(f"{number}{letter * 20}" for number in range(2000))
    name, got = knows(desk, text), []
    offset: object = 0
    while offset is not None:
        bound = await desk.settle("recall", handle=name, offset=offset)
        assert bound.bounded.full is None
        body = bound.output.output.partition("\n")[2]
        assert len(body) <= RECALL_PAGE_CHARS
        assert len(body.encode()) <= RECALL_PAGE_BYTES
        got.append(body)
        offset = bound.output.metadata["nextOffset"]
    assert len(got) > 1
    assert "".join(got) == text


async def test_a_label_with_line_breaks_does_not_hide_where_the_text_begins(desk: Desk) -> None:
    output = await desk.run("recall", handle=knows(desk, "text", label="bash: a\nb"))
    assert output.output.split("\n")[1:] == ["text"]


async def test_a_page_beyond_the_end_is_refused_with_the_length(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match="has 3 characters"):
        await desk.run("recall", handle=knows(desk, "abc"), offset=3)


async def test_files_that_came_with_a_text_are_named(desk: Desk) -> None:
    name = knows(desk, "a picture")
    file = NamedFile(handle="r0123456789", label="file: a.png")
    desk.recalled[name] = desk.recalled[name].but(files=(file,))
    assert "file: a.png has handle r0123456789" in (await desk.run("recall", handle=name)).output


async def test_a_picture_is_attached_again(desk: Desk) -> None:
    url = "data:image/png;base64,AAAA"
    output = await desk.run("recall", handle=knows(desk, url, label="file: a.png", mime="image/png"))
    assert output.attachments == (Attachment(mime="image/png", url=url, filename="a.png"),)
    assert output.output == f"[{handle(url)}, file: a.png: it is attached]"


async def test_places_are_listed_with_their_handles(desk: Desk) -> None:
    desk.hits = [
        RecallHit(
            handle="r0123456789", label="user", message_id="m", snippet="…a needle…", total=900, hidden="compacted"
        ),
        RecallHit(handle="rabcdefabcd", label="bash: ls", message_id="m", snippet="needle", total=6),
    ]
    assert (await desk.run("recall", query="needle")).output.split("\n\n") == [
        "2 places. Recall one with its handle.",
        "r0123456789  user (900 characters, compacted)\n  …a needle…",
        "rabcdefabcd  bash: ls (6 characters)\n  needle",
    ]


async def test_no_place_is_said_in_words(desk: Desk) -> None:
    output = await desk.run("recall", query="needle")
    assert output.output.startswith("Nothing in this session holds these words.")
