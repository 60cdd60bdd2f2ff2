"""What people may type where an id is expected."""

from pathlib import Path

import pytest
from cli_store import Family, api, tk


@pytest.fixture
def twins(data: Path) -> Path:
    """A store with two sessions whose ids begin alike, and a third whose id is the beginning of another."""
    for name in ("ses_abcdef01", "ses_abcdef02", "ses_abcdef0"):
        tk(data, "session", "create", "--id", name, "--title", f"Title of {name}")
    return data


def shown(data: Path, given: str) -> str:
    return str(tk(data, "session", "show", given, "--json").json["id"])


def test_the_beginning_of_an_id_is_enough_with_or_without_its_prefix(data: Path, family: Family) -> None:
    for given in (family.root.id, family.root.id[:-2], family.root.id[4:], family.root.id[4:20], family.root.slug):
        assert shown(data, given) == family.root.id


def test_a_whole_id_wins_over_what_it_is_the_beginning_of(twins: Path) -> None:
    assert shown(twins, "ses_abcdef0") == "ses_abcdef0"


def test_an_ambiguous_beginning_is_refused_and_the_candidates_are_listed(twins: Path) -> None:
    refused = tk(twins, "session", "archive", "ses_abcd")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [
        "turnkeeper: 'ses_abcd' may be any of these sessions; give more of the id:",
        "  ses_abcdef0  Title of ses_abcdef0",
        "  ses_abcdef01  Title of ses_abcdef01",
        "  ses_abcdef02  Title of ses_abcdef02",
    ]


def test_many_candidates_are_not_all_listed(data: Path) -> None:
    for number in range(12):
        tk(data, "session", "create", "--id", f"ses_same{number:02}")
    assert tk(data, "session", "show", "same").err.splitlines()[-1] == "  ..."


@pytest.mark.parametrize("given", ["abc", "", "ses_abcdef9", "a/b", "nul\x00", "ses_abcdef01x"])
def test_too_short_or_wrong_a_beginning_names_nothing(twins: Path, given: str) -> None:
    refused = tk(twins, "session", "show", given)
    assert refused.code == 1
    assert f"there is no session {given!r}" in refused.err


@pytest.mark.parametrize("given", ["ses_abc", "ses_"])
def test_an_id_that_is_cut_too_short_asks_for_more(twins: Path, given: str) -> None:
    refused = tk(twins, "session", "show", given)
    assert (refused.code, "at least 4 characters" in refused.err) == (2, True)


def test_a_slug_that_two_sessions_share_is_ambiguous(data: Path, family: Family) -> None:
    twin = family.child.but(id="ses_sameslug", slug=family.root.slug, parent_id=None)
    api(data, lambda opened: opened.store.journal.create(twin))
    refused = tk(data, "session", "show", family.root.slug)
    assert refused.code == 1
    assert family.root.id in refused.err
    assert "ses_sameslug" in refused.err


def test_the_beginning_of_a_message_id_is_enough(data: Path, family: Family) -> None:
    fork = tk(data, "session", "fork", family.root.id, "--message", "msg_00000000000b", "--json").json
    assert fork["origin"]["messageID"] == "msg_00000000000bCONTEXTCONTEXT"


def test_an_ambiguous_or_unknown_message_is_refused(data: Path, family: Family) -> None:
    ambiguous = tk(data, "session", "fork", family.root.id, "--message", "msg_0000")
    assert ambiguous.code == 1
    assert "  msg_00000000000cTURNTURNTURNTU" in ambiguous.err.splitlines()
    unknown = tk(data, "session", "fork", family.root.id, "--message", "msg_ffff")
    assert unknown.code == 1
    assert "there is no message 'msg_ffff'" in unknown.err


def test_an_unknown_project_is_refused(data: Path, family: Family) -> None:
    refused = tk(data, "session", "list", "--project", "nothing")
    assert refused.code == 1
    assert "there is no project 'nothing'" in refused.err
