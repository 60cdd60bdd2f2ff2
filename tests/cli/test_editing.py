"""Commands that change sessions."""

from pathlib import Path

import pytest
from cli_store import Family, api, process, tk
from msgspec import to_builtins

from turnkeeper.model.value import encode


def stored(data: Path, session_id: str) -> object:
    return to_builtins(api(data, lambda opened: opened.get(session_id)))


def length(data: Path, session_id: str) -> int:
    return len(api(data, lambda opened: opened.messages(session_id)).items)


def test_what_create_answers_is_what_is_stored(data: Path, tmp_path: Path) -> None:
    made = tk(data, "session", "create", "--title", "-5 degrees", "--directory", str(tmp_path), "--json").json
    assert made == stored(data, made["id"])
    assert (made["title"], made["directory"]) == ("-5 degrees", str(tmp_path))


def test_create_takes_agent_model_metadata_parent_and_id(data: Path, family: Family) -> None:
    model = "openrouter/amazon/nova-lite-v1"
    words = ["--agent", "plan", "--model", model, "--metadata", '{"ticket": 7}', "--id", "ses_mine"]
    made = tk(data, "session", "create", "--parent", family.root.id, *words, "--json").json
    assert (made["id"], made["parentID"], made["agent"]) == ("ses_mine", family.root.id, "plan")
    assert made["model"] == {"id": "amazon/nova-lite-v1", "providerID": "openrouter"}
    assert made["metadata"] == {"ticket": 7}


def test_create_with_the_id_of_a_session_leaves_it_unchanged_and_says_so(data: Path) -> None:
    made = tk(data, "session", "create", "--id", "ses_mine", "--title", "Mine", "--json").json
    assert tk(data, "session", "create", "--id", "ses_mine", "--title", "Another", "--json").json == made
    again = tk(data, "session", "create", "--id", "ses_mine", "--title", "Another")
    assert (again.code, again.out) == (0, "Exists already, unchanged: ses_mine  Mine\n")


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (["--agent", "plam"], "there is no agent 'plam'; the agents are: build, explore, general, plan"),
        (["--model", "anthropic/claude-opus-4-5x"], "did you mean 'claude-opus-4-5' or"),
        (["--model", "antropic/claude"], "there is no provider 'antropic'; did you mean 'anthropic'"),
    ],
)
def test_create_refuses_an_unknown_agent_or_model_and_names_known_ones(
    data: Path, words: list[str], known: str
) -> None:
    refused = tk(data, "session", "create", *words)
    assert (refused.code, refused.out) == (2, "")
    assert known in refused.err
    assert tk(data, "session", "list", "--all", "--json").json["items"] == []


def test_create_tells_a_person_the_id(data: Path) -> None:
    said = tk(data, "session", "create", "--title", "Wind and tide").out.split(maxsplit=2)
    assert (said[0], said[2]) == ("Created", "Wind and tide\n")
    assert api(data, lambda opened: opened.get(said[1])).title == "Wind and tide"


def test_a_fork_has_the_history_up_to_a_message(data: Path, family: Family) -> None:
    whole = tk(data, "session", "fork", family.root.id, "--json").json
    short = tk(data, "session", "fork", family.root.id, "--message", "msg_00000000000cTURN", "--json").json
    assert (length(data, whole["id"]), length(data, short["id"])) == (3, 2)
    assert whole["title"] == "Wind over the bay (fork #1)"
    assert short["origin"] == {"sessionID": family.root.id, "messageID": "msg_00000000000cTURNTURNTURNTU"}


def test_a_fork_may_work_elsewhere(data: Path, family: Family, tmp_path: Path) -> None:
    fork = tk(data, "session", "fork", family.root.id, "--directory", str(tmp_path), "--json").json
    assert fork["directory"] == str(tmp_path)


def test_an_archived_session_leaves_the_list_and_comes_back(data: Path, family: Family) -> None:
    archived = tk(data, "session", "archive", family.root.id, "--json").json
    assert archived == stored(data, family.root.id)
    assert tk(data, "session", "list", "--json").json == {"items": []}
    restored = tk(data, "session", "restore", family.root.id, "--json").json
    assert "archived" not in restored["time"]
    assert [one["id"] for one in tk(data, "session", "list", "--json").json["items"]] == [family.root.id]


def test_a_renamed_session_has_the_title(data: Path, family: Family) -> None:
    renamed = process(data, "session", "rename", family.root.id, "--", "--dashes first")
    assert renamed.stdout.endswith("--dashes first\n")
    assert api(data, lambda opened: opened.get(family.root.id)).title == "--dashes first"
    assert tk(data, "session", "rename", family.root.id, "--json", "After an option").json["title"] == "After an option"


def test_a_moved_session_works_there(data: Path, family: Family, tmp_path: Path) -> None:
    moved = tk(data, "session", "move", family.root.id, str(tmp_path), "--json").json
    assert moved["directory"] == str(tmp_path)
    assert moved == stored(data, family.root.id)


def test_delete_removes_the_children_too_and_names_them(data: Path, family: Family) -> None:
    removed = tk(data, "session", "delete", family.root.id, "--yes", "--json")
    assert [one["id"] for one in removed.json["items"]] == [family.child.id, family.root.id]
    left = tk(data, "session", "list", "--all", "--json").json["items"]
    assert [one["id"] for one in left] == [family.archived.id]


def test_delete_tells_a_person_what_went(data: Path, family: Family) -> None:
    assert tk(data, "session", "delete", family.archived.id, "-y").out == (
        f"Removed {family.archived.id}  An old idea  {family.archived.directory}\n"
    )


def test_delete_without_a_person_to_ask_refuses_and_removes_nothing(data: Path, family: Family) -> None:
    before = encode(api(data, lambda opened: opened.list(roots=False, archived=True)))
    refused = tk(data, "session", "delete", family.root.id)
    assert (refused.code, refused.out) == (1, "")
    assert "--yes" in refused.err
    assert encode(api(data, lambda opened: opened.list(roots=False, archived=True))) == before
