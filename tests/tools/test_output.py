"""What the model is shown of an output, what is kept beside it, and what the results of a turn leave each other."""

import errno
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.handles import handle, handles_in
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX, RESULT_MEDIA_MAX
from turnkeeper.text.surrogates import clean
from turnkeeper.tools.output import Bounds
from turnkeeper.tools.tool import Attachment, ToolOutput

LONG = "line\n" * (OUTPUT_LINES_MAX + 1)


def an_output(text: str, **metadata: object) -> ToolOutput:
    return ToolOutput(title="t", output=text, metadata=metadata)


async def keep(text: str) -> Path:
    return Path("/out/tool_1")


async def keep_nothing(text: str) -> Path:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_short_output_is_left_alone_and_kept_nowhere() -> None:
    bound = await Bounds(keep=keep_nothing).bound(an_output("short", a=1))
    assert bound.output == an_output("short", truncated=False, a=1)
    assert (bound.bounded.full, bound.path, bound.withheld) == (None, None, ())


async def test_a_long_output_names_its_handle_and_a_file() -> None:
    bound = await Bounds(keep=keep).bound(an_output(LONG, a=1))
    assert bound.output.metadata == {"a": 1, "truncated": True, "outputPath": "/out/tool_1"}
    assert (bound.bounded.full, bound.path) == (LONG, "/out/tool_1")
    [marker] = [line for line in bound.output.output.split("\n") if line != "line" and line]
    assert marker == (
        f"[... 5 lines, 25 bytes left out here. All of it: recall with handle {handle(LONG)}, "
        "or read (with offset) or grep /out/tool_1 ...]"
    )


async def test_a_file_that_cannot_be_written_costs_nothing_but_the_file() -> None:
    bound = await Bounds(keep=keep_nothing).bound(an_output(LONG))
    assert bound.output.metadata == {"truncated": True, "outputWarning": "No space left on device"}
    assert bound.bounded.full == LONG
    assert handles_in(bound.output.output) == [handle(LONG)]
    assert "(no file holds it: No space left on device)" in bound.output.output
    assert bound.path is None


async def test_limits_may_be_set() -> None:
    bound = await Bounds(lines_max=10).bound(an_output("a\n" * 11))
    assert bound.bounded.full == "a\n" * 11
    assert (await Bounds(bytes_max=300).bound(an_output("a" * 301))).bounded.full == "a" * 301
    assert (await Bounds(bytes_max=300).bound(an_output("a" * 300))).bounded.full is None


async def test_an_output_that_its_tool_bounded_is_left_alone() -> None:
    output = an_output(LONG + "x" * OUTPUT_BYTES_MAX, truncated=False)
    bound = await Bounds(keep=keep_nothing).bound(output)
    assert (bound.output, bound.bounded.full) == (output, None)


async def test_in_a_full_turn_even_such_an_output_is_cut() -> None:
    bounds = Bounds()
    for _ in range(4):
        await bounds.bound(an_output("x" * OUTPUT_BYTES_MAX, truncated=False))
    text = "y" * OUTPUT_BYTES_MAX
    bound = await bounds.bound(an_output(text, truncated=False))
    assert bound.output.metadata["truncated"] is True
    assert len(bound.output.output) <= OUTPUT_BYTES_MAX / 4
    assert bound.bounded.full == text


async def test_later_results_of_a_turn_get_a_smaller_share() -> None:
    bounds = Bounds()
    sizes = [len((await bounds.bound(an_output("z" * 200_000))).output.output) for _ in range(7)]
    assert [round(size / 1024) for size in sizes] == [50, 50, 50, 25, 13, 6, 3]


async def test_a_small_result_comes_whole_however_full_the_turn_is() -> None:
    bounds = Bounds()
    for _ in range(100):
        await bounds.bound(an_output("z" * 200_000))
    assert (await bounds.bound(an_output("small" * 400))).bounded.full is None


async def test_half_characters_are_replaced_before_the_handle_is_made() -> None:
    bound = await Bounds().bound(an_output("\ud800" * 60_000))
    assert bound.bounded.full == "\ufffd" * 60_000
    assert handles_in(bound.output.output) == [handle("\ufffd" * 60_000)]


@given(st.text(st.one_of(st.sampled_from("\0\r\n\ud800é"), st.characters(exclude_categories=[])), max_size=300))
async def test_what_is_kept_is_what_the_handle_names(text: str) -> None:
    bound = await Bounds(lines_max=3, bytes_max=40).bound(an_output(text))
    whole = clean(text)
    if bound.bounded.full is None:
        assert bound.output.output == whole
    else:
        assert bound.bounded.full == whole
        assert bound.output.output.count(handle(whole)) == 1


def a_picture(number: int) -> Attachment:
    return Attachment(
        mime="image/png", url=f"data:image/png;base64,{b64encode(bytes([number])).decode()}", filename=f"{number}.png"
    )


@pytest.mark.parametrize("metadata", [{}, {"truncated": False}])
async def test_files_that_are_too_many_are_withheld_and_named(metadata: dict[str, object]) -> None:
    pictures = tuple(map(a_picture, range(RESULT_MEDIA_MAX + 2)))
    given = an_output("Pictures.", **metadata).but(attachments=pictures)
    bound = await Bounds().bound(given)
    assert bound.output.attachments == pictures[:RESULT_MEDIA_MAX]
    assert bound.withheld == pictures[RESULT_MEDIA_MAX:]
    first, *rest = bound.output.output.split("\n")
    assert (first, len(rest)) == ("Pictures.", 2)
    assert rest[0].startswith("[20.png (image/png) is left out")
    assert handles_in(bound.output.output) == [handle(file.url) for file in bound.withheld]


async def test_the_files_of_a_turn_share_a_limit() -> None:
    bounds = Bounds()
    shown = [
        len((await bounds.bound(ToolOutput(title="t", output="", attachments=(a_picture(1),) * 15))).output.attachments)
        for _ in range(4)
    ]
    assert shown == [15, 15, 10, 0]
