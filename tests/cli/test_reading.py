"""Commands that read one session."""

import json
from pathlib import Path

from cli_store import TODOS, TOKENS, Family, api, tk

from turnkeeper.cli.screen import Screen
from turnkeeper.cli.transcript import transcript
from turnkeeper.model import event as e
from turnkeeper.model.value import encode

TRANSCRIPT = """\
user  build  msg_00000000000aUSERUSERUSERUS  {date}
  How strong was the gust?
  The gauge says 42 knots.
  ◆ gauge.png (image/png)
  @ explore
  → explore: look at the tide
  ⋯ older history was replaced by a summary

assistant  build · claude  msg_00000000000cTURNTURNTURNTU  {date}
  ┊ Perhaps the anemometer is wrong.
  ✓ bash  Read the gauge  1.5 s
    │ reading 1
    │ reading 2
    │ reading 3
    │ reading 4
    │ … 3 more
  ✗ edit  wind.py  1.5 s
    │ the text to replace was not found
  ● read  tide.txt  running
  ○ glob  pending
  ↻ attempt 1 failed: overloaded
  ± /bay/wind.py
  ? a part of the unknown type 'hologram'
  The gust was 42 knots.
  ✗ MessageAbortedError: the user stopped it
"""


def test_what_show_answers_is_the_session(data: Path, family: Family) -> None:
    assert tk(data, "session", "show", family.root.id, "--json").out == encode(family.root).decode() + "\n"


def test_show_tells_a_person_title_place_and_counts(data: Path, family: Family) -> None:
    rows = dict(line.split(maxsplit=1) for line in tk(data, "session", "show", family.root.id).out.splitlines())
    assert rows["Title"] == "Wind over the bay"
    assert rows["Session"] == family.root.id
    assert rows["Slug"] == family.root.slug
    assert rows["Directory"] == str(data)
    assert rows["Messages"] == "3 with 16 parts, in 5 events"
    assert rows["Children"] == "1"


def test_show_tells_where_a_fork_came_from_and_that_it_cost_nothing_yet(data: Path, family: Family) -> None:
    fork = tk(data, "session", "fork", family.root.id, "--json").json
    shown = tk(data, "session", "show", fork["id"]).out
    assert f"Fork of    {family.root.id}\n" in shown
    assert "Cost" not in shown
    paid = e.UsageRecorded(purpose="turn", provider_id="acme", model_id="large", cost=0.0123, tokens=TOKENS)
    api(data, lambda opened: opened.store.journal.append(fork["id"], paid))
    shown = tk(data, "session", "show", fork["id"]).out
    assert "Cost       $0.0123\n" in shown
    assert "Tokens     1,200 input, 340 output, 56 reasoning, 7,000 cache read\n" in shown


def test_the_messages_are_the_page_that_the_api_gives(data: Path, family: Family) -> None:
    page = json.loads(encode(api(data, lambda opened: opened.messages(family.root.id))))
    said = tk(data, "session", "messages", family.root.id, "--context", "--json").json
    assert said == {**page, "sessionID": family.root.id, "slug": family.root.slug}


def test_a_transcript_shows_every_kind_of_part(data: Path, family: Family) -> None:
    date = Screen().date(api(data, lambda opened: opened.messages(family.root.id)).items[0].info.time.created)
    assert tk(data, "session", "messages", family.root.id).out == TRANSCRIPT.format(date=date)


def test_system_messages_are_shown_only_with_context(data: Path, family: Family) -> None:
    roles = [one["info"]["role"] for one in tk(data, "session", "messages", family.root.id, "--json").json["items"]]
    assert roles == ["user", "assistant"]
    assert "Today is a windy day." not in tk(data, "session", "messages", family.root.id).out
    shown = tk(data, "session", "messages", family.root.id, "--context").out
    assert "  core/date\n  Today is a windy day.\n" in shown


def test_a_session_is_shown_as_it_was_after_an_event(data: Path, family: Family) -> None:
    api(data, lambda opened: opened.rename(family.root.id, "Calm again"))
    then = tk(data, "session", "show", family.root.id, "--at", "2")
    assert "Wind over the bay\n" in then.out
    assert "Messages   1 with 5 parts, in 2 events\n" in then.out
    assert tk(data, "session", "show", family.root.id, "--at", "6", "--json").json["title"] == "Calm again"
    shown = tk(data, "session", "messages", family.root.id, "--at", "2", "--json").json
    assert [one["info"]["role"] for one in shown["items"]] == ["user"]
    assert tk(data, "session", "messages", family.root.id, "--at", "1").err == "There are no messages here.\n"


def test_an_event_that_does_not_exist_is_refused(data: Path, family: Family) -> None:
    for command in ("show", "messages"):
        for seq in ("0", "99"):
            answer = tk(data, "session", command, family.root.id, "--at", seq)
            assert (answer.code, answer.out) == (1, "")
            assert f"has no event {seq}; its events are numbered from 1 to 5" in answer.err


def test_messages_are_paged_both_ways(data: Path, family: Family) -> None:
    words = ["session", "messages", family.root.id, "--context", "--json", "--limit", "1"]
    newest = tk(data, *words).json
    older = tk(data, *words, "--before", newest["older"]).json
    back = tk(data, *words, "--after", older["newer"]).json
    assert older["items"][0]["info"]["role"] == "system"
    assert back["items"] == newest["items"]


def test_a_person_is_told_how_to_read_on(data: Path, family: Family) -> None:
    newest = tk(data, "session", "messages", family.root.id, "--limit", "1")
    assert "assistant" in newest.out
    older = tk(data, "session", "messages", family.root.id, "--limit", "2", "--before", newest.err.split()[-1])
    assert older.out.startswith("user")


def test_an_empty_history_says_so(data: Path, family: Family) -> None:
    answer = tk(data, "session", "messages", family.child.id)
    assert (answer.code, answer.out, answer.err) == (0, "", "There are no messages here.\n")


def test_a_transcript_is_wrapped_to_the_screen_and_coloured(data: Path, family: Family) -> None:
    page = api(data, lambda opened: opened.messages(family.root.id))
    narrow = transcript(Screen(width=20, has_colors=True), page.items[:1])
    assert "\x1b[1;32muser\x1b[0m" in narrow
    assert "  How strong was the\n  gust?\n" in narrow


def test_todos_are_what_the_api_gives(data: Path, family: Family) -> None:
    assert tk(data, "session", "todo", family.root.id, "--json").json["items"] == json.loads(encode(TODOS))
    assert tk(data, "session", "todo", family.root.id).out == (
        "✓ Read the gauge\n● Ask the harbour master  high\n○ Write it up\n"
    )
    assert tk(data, "session", "todo", family.child.id).err == "The task list is empty.\n"
