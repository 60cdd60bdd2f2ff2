"""The command that gives back what a model is no longer shown."""

from pathlib import Path

import pytest
from cli_store import Family, api, tk

from turnkeeper.app import Turnkeeper
from turnkeeper.core.handles import handle
from turnkeeper.model import event as e
from turnkeeper.testing.builders import a_text, a_user

QUESTION = "How strong was the gust?\nThe gauge says 42 knots."
ODD = "\x1b[31mred\x1b[0m\r\n\0é " * 2000
"""What no terminal should be sent, and more than a page of it."""


@pytest.fixture
def odd(data: Path, family: Family) -> str:
    """The handle of an odd text in the family's root."""

    async def say(opened: Turnkeeper) -> None:
        message = a_user(family.root.id, "msg_00000000000zODDODDODDODDOD")
        await opened.store.journal.append(
            family.root.id, e.MessageRecorded(message=message, parts=(a_text(message, "prt_odd", ODD),))
        )

    api(data, say)
    return handle(ODD)


def test_a_text_is_shown_with_what_it_is(data: Path, family: Family) -> None:
    shown = tk(data, "session", "recall", family.root.id, handle(QUESTION))
    assert (shown.code, shown.out) == (0, f"{QUESTION}\n")
    assert shown.err == f"user: characters 0 to {len(QUESTION)} of {len(QUESTION)}\n"


def test_a_long_text_comes_in_pages_harmless_to_the_terminal(data: Path, family: Family, odd: str) -> None:
    shown = tk(data, "session", "recall", family.root.slug, odd)
    assert "\x1b" not in shown.out
    assert shown.err == f"user: characters 0 to 20000 of {len(ODD)}; continue with --offset 20000, or --all\n"
    rest = tk(data, "session", "recall", family.root.slug, odd, "--offset", "20000")
    assert rest.err == f"user: characters 20000 to {len(ODD)} of {len(ODD)}\n"


def test_programs_page_through_it_exactly(data: Path, family: Family, odd: str) -> None:
    first = tk(data, "session", "recall", family.root.id, odd, "--json").json
    assert (first["handle"], first["total"], first["nextOffset"]) == (odd, len(ODD), 20_000)
    second = tk(data, "session", "recall", family.root.id, odd, "--offset", "20000", "--json").json
    assert first["text"] + second["text"] == ODD
    assert "nextOffset" not in second


def test_all_of_it_is_written_as_it_is_and_nothing_else(data: Path, family: Family, odd: str) -> None:
    given = tk(data, "session", "recall", family.root.id, odd, "--all")
    assert (given.code, given.out, given.err) == (0, ODD, "")


def test_an_attached_file_is_written_as_a_file(data: Path, family: Family) -> None:
    name = handle("data:image/png;base64,AAAA")
    assert tk(data, "session", "recall", family.root.id, name, "--all").out == "\0\0\0"
    page = tk(data, "session", "recall", family.root.id, name, "--json").json
    assert (page["text"], page["mime"], page["label"]) == ("data:image/png;base64,AAAA", "image/png", "file: gauge.png")


def test_words_lead_to_handles(data: Path, family: Family) -> None:
    shown = tk(data, "session", "recall", family.root.id, "--query", "gust knots")
    assert (shown.code, shown.err) == (0, "")
    newest, oldest = shown.out.rstrip("\n").split("\n\n")
    assert newest.split("\n")[1] == "  The gust was 42 knots."
    assert oldest.startswith(f"{handle(QUESTION)}  user  msg_00000000000aUSERUSERUSERUS, {len(QUESTION)} characters\n")
    told = tk(data, "session", "recall", family.root.id, "--query", "gust knots", "--json").json["items"]
    assert [hit["handle"] for hit in told] == [handle("The gust was 42 knots."), handle(QUESTION)]


def test_words_that_were_never_said_are_said_to_be_so(data: Path, family: Family) -> None:
    shown = tk(data, "session", "recall", family.root.id, "--query", "hurricane")
    assert (shown.code, shown.out, shown.err) == (0, "", "Nothing matches 'hurricane'.\n")
    assert tk(data, "session", "recall", family.root.id, "--query", "hurricane", "--json").json["items"] == []


@pytest.mark.parametrize(
    ("words", "reason", "code"),
    [
        ([], "give either a handle or --query", 2),
        (["r0123456789", "--query", "x"], "give either a handle or --query", 2),
        (["--query", "x", "--all"], "go with a handle", 2),
        (["--query", "x", "--offset", "3"], "go with a handle", 2),
        (["--query", "?"], "holds no word", 1),
        (["r0123456789"], "there is no text with the handle 'r0123456789'", 1),
        (["message"], "'message' is no handle", 1),
        ([handle(QUESTION), "--offset", "900"], "is outside the text", 1),
        ([handle(QUESTION), "--all", "--json"], "leave out --json", 2),
    ],
    ids=str,
)
def test_what_cannot_be_given_is_refused_in_words(
    data: Path, family: Family, words: list[str], reason: str, code: int
) -> None:
    refused = tk(data, "session", "recall", family.root.id, *words)
    assert (refused.code, refused.out) == (code, "")
    assert reason in refused.err
