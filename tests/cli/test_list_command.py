"""Commands that find sessions."""

import json
from pathlib import Path

import pytest
from cli_store import Family, api, tk

from turnkeeper.model.value import encode
from turnkeeper.store import keys


def test_a_new_store_has_no_sessions_and_looking_does_not_make_it(data: Path) -> None:
    listed = tk(data, "session", "list", "--json")
    assert (listed.code, listed.json) == (0, {"items": []})
    assert list(data.iterdir()) == []


def test_the_list_is_the_page_that_the_api_gives(data: Path, family: Family) -> None:
    page = api(data, lambda opened: opened.list())
    listed = tk(data, "session", "list", "--json")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out == encode(page).decode() + "\n"
    assert [one["id"] for one in listed.json["items"]] == [family.root.id]


def test_the_list_of_all_holds_children_and_archived_ones(data: Path, family: Family) -> None:
    listed = tk(data, "session", "list", "--all", "--json")
    assert {one["id"] for one in listed.json["items"]} == {one.id for one in family}


def test_the_list_for_people_shows_whole_ids_titles_and_marks(data: Path, family: Family) -> None:
    lines = tk(data, "session", "list", "--all").out.splitlines()
    assert lines[0].split() == ["SESSION", "UPDATED", "TITLE", "DIRECTORY"]
    shown = {line.split()[0]: line for line in lines[1:]}
    assert set(shown) == {one.id for one in family}
    assert " archived " in shown[family.archived.id]
    assert " child " in shown[family.child.id]
    assert "Wind over the bay" in shown[family.root.id]
    assert str(data) in shown[family.root.id]


def test_an_empty_list_says_so_on_standard_error_only(data: Path) -> None:
    listed = tk(data, "session", "list")
    assert (listed.code, listed.out) == (0, "")
    assert "No sessions here" in listed.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--search", "WIND"], ["root"]),
        (["--search", "nothing of the kind"], []),
        (["--all", "--search", "tide"], ["child"]),
        (["--project", "global", "--all", "--search", "idea"], ["archived"]),
        (["--since", "1h"], ["root"]),
        (["--since", "2999-01-01"], []),
        (["--since", "1794767525690"], ["root"]),
        (["-n", "1", "-a", "--since", "2w", "--search", "tide"], ["child"]),
    ],
)
def test_a_list_is_narrowed(data: Path, family: Family, words: list[str], expected: list[str]) -> None:
    listed = tk(data, "session", "list", "--json", *words)
    assert [one["id"] for one in listed.json["items"]] == [getattr(family, name).id for name in expected]


@pytest.mark.parametrize("since", ["yesterday", "3x", "9" * 5000, f"{'9' * 5000}d", "9999999-01-01"])
def test_what_is_no_time_is_refused(data: Path, since: str) -> None:
    listed = tk(data, "session", "list", "--since", since)
    assert (listed.code, listed.out) == (2, "")
    assert "is not a time; write 90min" in listed.err


def test_a_list_by_directory_holds_what_works_there(data: Path, family: Family, tmp_path: Path) -> None:
    assert len(tk(data, "session", "list", "--directory", str(data), "--json").json["items"]) == 1
    assert tk(data, "session", "list", "--directory", str(tmp_path), "--json").json == {"items": []}


def test_a_list_by_project_takes_a_directory_of_it(data: Path, family: Family) -> None:
    listed = tk(data, "session", "list", "--project", f"{data}/", "--json")
    assert [one["id"] for one in listed.json["items"]] == [family.root.id]


def test_a_list_by_parent_holds_its_children(data: Path, family: Family) -> None:
    listed = tk(data, "session", "list", "--parent", family.root.slug, "--json")
    assert [one["id"] for one in listed.json["items"]] == [family.child.id]


def test_pages_follow_each_other_by_cursor(data: Path) -> None:
    made = [tk(data, "session", "create", "--title", f"Number {n}", "--json").json["id"] for n in range(5)]
    seen: list[str] = []
    before: list[str] = []
    while True:
        page = tk(data, "session", "list", "--limit", "2", "--json", *before).json
        seen += [one["id"] for one in page["items"]]
        if "older" not in page:
            break
        before = ["--before", page["older"]]
    assert seen == made[::-1]


def test_a_person_is_told_how_to_go_on(data: Path) -> None:
    for number in range(3):
        tk(data, "session", "create", "--title", f"Number {number}")
    listed = tk(data, "session", "list", "--limit", "2")
    cursor = listed.err.split()[-1]
    line = tk(data, "session", "list", "--before", cursor).out.splitlines()[1]
    assert line.replace("  ~/", f"  {Path.home()}/").endswith(f"  {Path.cwd()}")
    assert "Number 0" in tk(data, "session", "list", "--before", cursor).out


def test_children_are_what_the_api_gives(data: Path, family: Family) -> None:
    grandchild = tk(data, "session", "create", "--parent", family.child.id, "--json").json
    direct = tk(data, "session", "children", family.root.id, "--json").json
    every = tk(data, "session", "children", family.root.id, "--recursive", "--json").json
    assert [one["id"] for one in direct["items"]] == [family.child.id]
    assert {one["id"] for one in every["items"]} == {family.child.id, grandchild["id"]}
    assert family.child.id in tk(data, "session", "children", family.root.id).out


def test_a_session_without_children_says_so(data: Path, family: Family) -> None:
    answer = tk(data, "session", "children", family.archived.id)
    assert (answer.code, answer.out, answer.err) == (0, "", "It has no children.\n")


def test_a_search_gives_the_places_that_the_api_gives_with_the_words_around_them(data: Path, family: Family) -> None:
    places = json.loads(encode(api(data, lambda opened: opened.search("gust"))))
    found = tk(data, "session", "search", "gust", "--json").json["items"]
    assert [{name: one[name] for name in place} for one, place in zip(found, places, strict=True)] == places
    where = {"slug": family.root.slug, "title": "Wind over the bay", "directory": family.root.directory}
    assert [{name: one[name] for name in where} for one in found] == [where, where]
    assert [(one["role"], one["kind"], one["snippet"]) for one in found] == [
        ("assistant", "text", "The gust was 42 knots."),
        ("user", "text", "How strong was the gust? The gauge says 42 knots."),
    ]
    [title] = tk(data, "session", "search", "tables", "--json").json["items"]
    assert (title["role"], title["kind"], title["snippet"]) == ("title", "title", "Look at the tide tables")
    assert "messageID" not in title


def test_a_search_shows_the_words_in_their_place(data: Path, family: Family) -> None:
    answer = tk(data, "session", "search", "gust", "knots")
    assert answer.out.splitlines() == [
        f"{family.root.id}  Wind over the bay",
        "  msg_00000000000cTURNTURNTURNTU  text  The gust was 42 knots.",
        "  msg_00000000000aUSERUSERUSERUS  text  How strong was the gust? The gauge says 42 knots.",
    ]


def test_a_search_shows_titles_tools_and_thoughts(data: Path, family: Family) -> None:
    assert tk(data, "session", "search", "tables").out == f"{family.child.id}  Look at the tide tables\n"
    assert "  bash  " in tk(data, "session", "search", "reading").out
    assert "  reasoning  Perhaps the anemometer" in tk(data, "session", "search", "anemometer").out


def test_a_search_in_one_session_finds_nothing_of_others(data: Path, family: Family) -> None:
    assert tk(data, "session", "search", "gust", "--session", family.child.id, "--json").json == {"items": []}
    nothing = tk(data, "session", "search", "gust", "--session", family.child.id)
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "Nothing matches 'gust'.\n")


def test_a_session_that_cannot_be_read_is_left_out_and_named(data: Path, family: Family) -> None:
    place = keys.session(family.root.project_id, family.root.id)
    api(data, lambda opened: opened.store.engine.put({place: b"{}"}))
    listed = tk(data, "session", "list", "--all")
    assert (listed.code, family.root.id in listed.out, family.child.id in listed.out) == (1, False, True)
    assert f"session/{family.root.id}" in listed.err
    assert tk(data, "session", "list", "--json").json == {"items": [], "damaged": [f"session/{family.root.id}"]}
    shown = tk(data, "session", "show", family.root.id)
    assert (shown.code, "cannot be read" in shown.err, "Traceback" in shown.err) == (1, True, False)
    assert tk(data, "doctor", "--fix").code == 0
    assert tk(data, "session", "list").code == 0


@pytest.mark.parametrize("scheme", ["sqlite", "files"])
@pytest.mark.parametrize("words", [["session", "list"], ["session", "show", "ses_x"], ["doctor"], ["stats"]])
def test_a_place_for_the_store_that_is_below_a_file_is_refused(data: Path, scheme: str, words: list[str]) -> None:
    (data / "taken").write_text("a file")
    told = tk(data, "--store", f"{scheme}:{data}/taken/store", *words)
    assert (told.code, told.out) == (1, "")
    assert f"{str(data / 'taken')!r} is a file, so no store can be in it" in told.err


def test_a_data_directory_that_is_a_file_is_refused(data: Path) -> None:
    (data / "taken").write_text("a file")
    told = tk(data / "taken", "session", "list")
    assert (told.code, told.out) == (1, "")
    assert "is a file, so no store can be in it" in told.err
