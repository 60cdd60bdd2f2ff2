"""Patches: what models write, read exactly, and applied where it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.text.patch import AddFile, Chunk, DeleteFile, PatchError, PatchLine, UpdateFile, apply, parse


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def chunk(*lines: str, contexts: tuple[str, ...] = (), is_at_end: bool = False) -> Chunk:
    [section] = parse(enveloped("*** Update File: a", *lines))
    assert isinstance(section, UpdateFile)
    return Chunk(contexts, section.chunks[0].lines, is_at_end)


def test_a_patch_is_read_section_by_section() -> None:
    patch = enveloped(
        "*** Add File: new.txt",
        "+one",
        "+",
        "*** Delete File: gone.txt",
        "*** Update File: a.py",
        "*** Move to: b.py",
        "@@ class A:",
        "@@ def f():",
        " stays",
        "-goes",
        "+comes",
        "",
        "@@",
        "-last",
        "*** End of File",
    )
    assert parse(patch) == (
        AddFile("new.txt", "one\n\n"),
        DeleteFile("gone.txt"),
        UpdateFile(
            "a.py",
            (
                Chunk(
                    ("class A:", "def f():"),
                    (PatchLine(" ", "stays"), PatchLine("-", "goes"), PatchLine("+", "comes"), PatchLine(" ", "")),
                ),
                Chunk((), (PatchLine("-", "last"),), is_at_end=True),
            ),
            "b.py",
        ),
    )


@pytest.mark.parametrize(
    "around", ["{}", "apply_patch <<'EOF'\n{}\nEOF", "cat <<EOF\n{}\nEOF\n", "  {}  ", "```\n{}\n```"]
)
def test_what_stands_around_the_envelope_is_left_out(around: str) -> None:
    assert parse(around.format(enveloped("*** Delete File: a"))) == (DeleteFile("a"),)


def test_line_ends_of_windows_are_read() -> None:
    assert parse(enveloped("*** Add File: a", "+x").replace("\n", "\r\n")) == (AddFile("a", "x\n"),)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "begins with the line"),
        ("*** Begin Patch\n*** Delete File: a", "begins with the line"),
        (enveloped(), "names no file"),
        (enveloped("*** Add File: "), "names no file"),
        (enveloped("hello"), "expected '*** Add File"),
        (enveloped("*** Add File: a", "x"), "begins with '+'"),
        (enveloped("*** Update File: a"), "has no chunk"),
        (enveloped("*** Update File: a", "x"), "begins with ' ', '-', '+' or '@@'"),
        (enveloped("*** Update File: a", " x"), "neither a line that goes"),
        (enveloped("*** Update File: a", "@@ x"), "nothing follows '@@ x'"),
    ],
)
def test_what_is_no_patch_is_refused_in_words(patch: str, words: str) -> None:
    with pytest.raises(PatchError) as refused:
        parse(patch)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("content", "chunks", "expected"),
    [
        ("a\nb\nc\n", [chunk(" a", "-b", "+B")], "a\nB\nc\n"),
        ("a\nb\na\nb\n", [chunk("-b", "+B", contexts=("a",)), chunk("-b", "+C")], "a\nB\na\nC\n"),
        ("a  \n\tb\n", [chunk(" a", "-b", "+B")], "a  \nB\n"),
        ("say “hi” \u2013 now\nx\n", [chunk(' say "hi" - now', "-x", "+y")], "say “hi” \u2013 now\ny\n"),
        ("x\ny\nx\n", [chunk("-x", "+z", is_at_end=True)], "x\ny\nz\n"),
        ("a\n", [chunk("+b")], "a\nb\n"),
        ("", [chunk("+b")], "b\n"),
        ("a", [chunk("+b")], "a\nb\n"),
        ("a\nb", [chunk("-a", "+x")], "x\nb"),
        ("a\r\nb\r\n", [chunk(" a", "+x")], "a\r\nx\r\nb\r\n"),
        ("a\nb\n", [chunk("-a", "+x", " b", "")], "x\nb\n"),
        ("a\nb\nc\n", [chunk("-a"), chunk("-c")], "b\n"),
    ],
)
def test_chunks_are_applied_where_they_fit(content: str, chunks: list[Chunk], expected: str) -> None:
    assert apply(content, chunks) == expected


@pytest.mark.parametrize(
    ("content", "chunks", "words"),
    [
        ("a\n", [chunk("-b", "+c")], "these lines were not found from line 1 on:\nb"),
        ("a\nb\n", [chunk("-b"), chunk("-a")], "these lines were not found from line 3 on:\na"),
        ("a\n", [chunk("-a", contexts=("def f():",))], "the line 'def f():' was not found"),
    ],
)
def test_a_chunk_that_fits_nowhere_is_refused(content: str, chunks: list[Chunk], words: str) -> None:
    with pytest.raises(PatchError) as refused:
        apply(content, chunks)
    assert words in str(refused.value)


LINES = st.lists(st.text("ab ", max_size=3), min_size=1, max_size=8, unique=True)


@given(LINES, st.data())
def test_a_patch_made_of_the_file_gives_the_change_it_was_made_of(lines: list[str], data: st.DataObject) -> None:
    """Lines are unique, so there is one place; everything that the patch does not name stays to the byte."""
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    new = data.draw(st.lists(st.text("xyz", min_size=1, max_size=3), max_size=3))
    content = "".join(f"{line}\n" for line in lines)
    operations = tuple([PatchLine("-", line) for line in lines[start:end]] + [PatchLine("+", line) for line in new])
    assert apply(content, [Chunk((), operations)]) == "".join(
        f"{line}\n" for line in [*lines[:start], *new, *lines[end:]]
    )
