"""Summary: what it must hold, how one that does not is found out, and that a digest always does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.core.handles import handle, handles_in
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.summary import (
    EMPTY,
    EXACT,
    FILES_MAX,
    RESULT_CHARS_MAX,
    TARGET_MAX,
    TARGET_MIN,
    Contract,
    breaches,
    chunks,
    completed,
    contract,
    cut,
    digest,
    question,
    serialise,
    target,
)
from turnkeeper.model.parts import FilePart, Part, PatchPart, ReasoningPart, StepStartPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import SettledTime, ToolError
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import NOW, a_call, a_text, a_user, an_assistant, running
from turnkeeper.testing.builders import completed as came_back

USER, TURN = a_user("ses_one", "msg_u"), an_assistant("ses_one", "msg_a", "msg_u")
PLACE: dict[str, Any] = {"session_id": "ses_one", "message_id": "msg_a"}
UNKNOWN = "r0123456789"
LONG = "y" * (RESULT_CHARS_MAX + 1)


def asks(*texts: str, **changes: object) -> HistoryItem:
    return HistoryItem(
        message=USER, parts=tuple(a_text(USER, f"prt_{n}", text, **changes) for n, text in enumerate(texts))
    )


def does(*parts: Part) -> HistoryItem:
    return HistoryItem(message=TURN, parts=parts)


def says(text: str) -> HistoryItem:
    return does(a_text(TURN, "prt_t", text))


def call(tool: str, output: str = "done", **given: object) -> ToolPart:
    return a_call(TURN, "prt_c", came_back(output).but(input=given), tool=tool)


def todo(content: str, status: str = "pending") -> Todo:
    return Todo(content=content, status=status, priority="high")


@pytest.mark.parametrize(
    ("room", "head", "tokens"),
    [
        (168_000, 100_000, TARGET_MAX),
        (None, 100_000, TARGET_MAX),
        (12_000, 100_000, 2_000),
        (168_000, 3_000, 3_000),
        (600, 100_000, TARGET_MIN),
        (0, 100_000, TARGET_MIN),
        (168_000, 10, TARGET_MIN),
    ],
)
def test_a_summary_is_a_sixth_of_the_window_within_bounds_and_not_longer_than_what_it_replaces(
    room: int | None, head: int, tokens: int
) -> None:
    assert target(room, head) == tokens


HEAD = [
    asks("Find the bug."),
    does(call("read", filePath="src/seen.py"), call("edit", filePath="src/a.py"), call("write", filePath="src/b.py")),
    asks("Fix it in a way that lasts.", "And test it."),
    does(PatchPart(id="prt_p", hash="h", files=("src/c.py", "src/a.py"), **PLACE)),
]


def test_the_contract_holds_the_last_request_open_todos_and_the_files_that_were_changed() -> None:
    todos = [todo("Test it"), todo("Done", "completed"), todo("Never", "cancelled"), todo("Ship it", "in_progress")]
    terms = contract(HEAD, [], todos, 1_000)
    assert terms.request == "Fix it in a way that lasts.\n\nAnd test it."
    assert terms.todos == ("Test it", "Ship it")
    assert terms.files == ("src/b.py", "src/c.py", "src/a.py"), "in the order in which each was last changed"
    assert terms.plan is None
    assert terms.facts == (terms.request, *terms.todos, *terms.files)


def test_a_request_that_stays_beside_the_summary_need_not_be_in_it() -> None:
    assert contract(HEAD, [asks("Go on.")], [], 1_000).request == ""
    assert contract(HEAD, [says("Yes.")], [], 1_000).request != ""
    assert contract(HEAD, [asks("Go on.", synthetic=True)], [], 1_000).request != "", "it is not the user's own"


def test_what_the_user_did_not_say_or_the_model_was_not_shown_is_no_request() -> None:
    head = [*HEAD, asks("Continue.", synthetic=True), asks("For the screen only.", ignored=True)]
    assert contract(head, [], [], 1_000).request.startswith("Fix it")
    assert contract([], [], [], 1_000).request == ""


def test_a_request_that_would_fill_the_summary_is_named_by_its_handle() -> None:
    short, long = "short", "z" * 1_500
    terms = contract([asks(short, long)], [], [], TARGET_MIN)
    assert terms.request == handle(long)
    assert breaches(f"It asks for {handle(long)}.", terms) == [], "which exists"


def test_the_plan_is_the_newest_file_among_the_plans() -> None:
    plans = [
        call("write", filePath=name) for name in (".opencode/plans/1.md", "x/plans/2.md", "docs/a.md", "plans/x.py")
    ]
    assert contract([does(*plans)], [], [], 1_000).plan == "x/plans/2.md"


def test_only_as_many_files_and_todos_are_demanded_as_there_is_room_for() -> None:
    many = [does(call("write", filePath=f"f{n}.py")) for n in range(FILES_MAX + 9)]
    terms = contract(many, [], [todo(f"todo {n}") for n in range(1_000)], 2_000)
    assert terms.files == tuple(f"f{n}.py" for n in range(9, FILES_MAX + 9)), "the newest"
    assert "todo 999" in terms.todos
    assert sum(len(one) for one in (*terms.todos, *terms.files)) <= 2 * 2_000 * 4 // 5


def test_handles_that_exist_are_those_a_summariser_can_have_seen() -> None:
    head = [
        asks(f"See {handle('asked')}."),
        says(LONG),
        does(call("bash", LONG), call("recall", f"found {handle('listed')}", handle=handle("given"))),
    ]
    terms = contract(head, [], [todo(f"Look at {handle('noted')}")], 1_000, previous=f"Known: {handle('before')}")
    known = {handle(one) for one in ("asked", LONG, "listed", "given", "noted", "before")}
    assert terms.handles == known
    assert not any("handle" in one for one in breaches(" ".join(known), terms))


TERMS = Contract(
    tokens_max=100,
    request="Fix it.",
    todos=("Test it",),
    plan="plans/1.md",
    files=("a.py",),
    handles=frozenset({handle("known")}),
)
GOOD = f"Fix it. Test it, plans/1.md a.py {handle('known')}"


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        (GOOD, []),
        ("", [EMPTY]),
        (" \n", [EMPTY]),
        (GOOD + " word" * 100, ["longer than 100 tokens"]),
        (GOOD.replace("Fix it.", "fix it"), ["last request"]),
        (GOOD.replace("Test it", "Testing"), ["open task is missing: Test it"]),
        (GOOD.replace("plans/1.md", "the plan"), ["plan's path is missing: plans/1.md"]),
        (GOOD.replace("a.py", ""), ["file is missing: a.py"]),
        (f"{GOOD} {UNKNOWN}", [f"handle {UNKNOWN} does not exist"]),
        (f"{GOOD} {UNKNOWN} r9999999999 {UNKNOWN}", [UNKNOWN, "r9999999999"]),
        ("off topic", ["last request", "Test it", "plans/1.md", "a.py"]),
    ],
)
def test_every_breach_of_a_contract_is_found_and_named(summary: str, wrong: list[str]) -> None:
    found = breaches(summary, TERMS)
    assert len(found) == len(wrong)
    assert all(word in told for word, told in zip(wrong, found, strict=True))


def test_a_contract_without_terms_takes_any_words() -> None:
    assert breaches("anything", Contract(tokens_max=10)) == []


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (GOOD, GOOD),
        (GOOD.replace("a.py", ""), f"{GOOD.replace('a.py', '')}\n\n{EXACT}\n- a.py"),
        ("Fix it.", f"Fix it.\n\n{EXACT}\n- Test it\n- plans/1.md\n- a.py"),
        ("about something else", f"about something else\n\n{EXACT}\n- Fix it.\n- Test it\n- plans/1.md\n- a.py"),
        (f"{GOOD} {UNKNOWN}", f"{GOOD} [...]"),
    ],
)
def test_a_summary_keeps_its_words_and_code_adds_the_facts_it_lacks(summary: str, expected: str) -> None:
    assert completed(summary, TERMS) == expected


def test_a_summary_that_is_too_long_is_cut_and_keeps_every_fact() -> None:
    whole = completed(GOOD + " word" * 200, TERMS)
    assert breaches(whole, TERMS) == []
    assert whole.startswith("Fix it. Test it")


# Words that look like handles, or become such when they are cut; lines, tags and wide characters.
WORDS = st.one_of(
    st.text("ab r01239é🎉\n\t<>#-", max_size=60),
    st.sampled_from(
        [UNKNOWN, f"x {UNKNOWN}.txt", "r" + "0123456789" * 30, "src/a.py", " ", "\n", "## Objective", "p" * 400]
    ),
    st.text(max_size=300),
)
PATHS = st.one_of(
    WORDS, st.sampled_from([f"plans/{'d' * 300}.md", "plans/x.md", f".opencode/plans/{UNKNOWN}.md", "/a/plans/y.md"])
)
PARTS = st.one_of(
    st.tuples(st.just("ask"), WORDS),
    st.tuples(st.just("say"), WORDS),
    st.tuples(st.just("write"), PATHS),
    st.tuples(st.just("tool"), st.one_of(WORDS, st.just(LONG))),
)


def made(kind: str, words: str) -> HistoryItem:
    match kind:
        case "ask":
            return asks(words)
        case "say":
            return says(words)
        case "write":
            return does(call("write", filePath=words))
        case _:
            return does(call("bash", words))


@settings(max_examples=80)
@given(
    st.lists(PARTS, max_size=8),
    st.one_of(st.lists(WORDS, max_size=5), st.integers(1, 200).map(lambda n: ["t"] * n)),
    st.one_of(st.none(), WORDS, st.just(f"{'before ' * 400}{UNKNOWN}")),
    st.sampled_from([TARGET_MIN, 257, 300, 1_000, TARGET_MAX]),
    st.booleans(),
)
def test_a_digest_always_keeps_its_own_contract(
    head: list[tuple[str, str]], todos: list[str], previous: str | None, tokens_max: int, is_folded: bool
) -> None:
    entries = [made(*one) for one in head]
    terms = contract(entries, [], [todo(one) for one in todos], tokens_max, previous)
    if is_folded:  # A head read in pieces has become part of what is known before.
        previous = cut("\n\n".join([previous or "", *map(serialise, entries)]), tokens_max * 4)
    assert breaches(digest(terms, previous, entries), terms) == []


@settings(max_examples=80)
@given(
    WORDS.filter(str.strip),
    st.sampled_from([1, 3, 900]),
    st.lists(PARTS, max_size=8),
    st.lists(WORDS, max_size=5),
    st.sampled_from([TARGET_MIN, 257, 300, 1_000, TARGET_MAX]),
)
def test_any_text_becomes_a_summary_that_keeps_its_contract(
    said: str, times: int, head: list[tuple[str, str]], todos: list[str], tokens_max: int
) -> None:
    terms = contract([made(*one) for one in head], [], [todo(one) for one in todos], tokens_max)
    assert breaches(completed(said * times, terms), terms) == []


def test_a_digest_has_room_for_all_that_is_demanded_at_once_however_small_it_is() -> None:
    files = [f"plans/{'d' * 180}.md", *(f"{n}" for n in range(FILES_MAX))]
    head = [asks("w" * (TARGET_MIN + 1)), *(does(call("write", filePath=name)) for name in files)]
    terms = contract(head, [], [todo("t")] * 200, TARGET_MIN)
    assert len(terms.request) == TARGET_MIN + 1
    assert terms.plan == files[0]
    assert breaches(digest(terms, None, head), terms) == []


def test_a_plan_whose_path_would_fill_the_summary_is_not_demanded() -> None:
    head = [asks("Go."), does(call("write", filePath=f"plans/{'d' * 1_200}.md"))]
    terms = contract(head, [], [], TARGET_MIN)
    assert (terms.plan, terms.files) == (None, ())
    assert breaches(digest(terms, None, head), terms) == []


@pytest.mark.parametrize("before", range(80, 110))
def test_a_long_word_that_a_digest_cuts_does_not_pass_for_a_handle(before: int) -> None:
    said = f"{'w' * before} {UNKNOWN}{'0' * 300}"
    head = [asks("Go."), says(said)]
    terms = contract(head, [], [], 1_000)
    assert terms.handles == frozenset()
    assert breaches(digest(terms, None, head), terms) == []


def test_a_digest_says_what_was_said_and_names_what_was_long() -> None:
    head = [asks("Find the bug."), says("It is in a.py."), does(call("bash", LONG))]
    terms = contract(head, [], [todo("Test it")], 1_000)
    text = digest(terms, "An older summary.", head)
    for words in ("Find the bug.", "- open: Test it", "An older summary.", "assistant: It is in a.py.", handle(LONG)):
        assert words in text


@given(st.lists(WORDS, max_size=20), st.sampled_from([9, 40, 200, 5_000]))
def test_chunks_keep_within_their_size_and_lose_nothing_but_what_is_cut(texts: list[str], chars_max: int) -> None:
    pieces = chunks(texts, chars_max)
    assert all(0 < len(piece) <= chars_max for piece in pieces)
    at = 0
    whole = "\n\n".join(pieces)
    for text in texts:
        kept = text if len(text) <= chars_max else cut(text, chars_max)
        assert kept in whole[at:]
        at = whole.index(kept, at) + len(kept)
    rest = sum(len(cut(text, chars_max)) for text in texts if text)
    assert len(whole) == rest + 2 * max(0, sum(bool(text) for text in texts) - 1), "and add nothing"


def test_texts_that_fit_go_together() -> None:
    assert chunks(["a", "b", "c"], 4) == ["a\n\nb", "c"]
    assert chunks([], 4) == []
    assert chunks(["", "a", "", "b"], 40) == ["a\n\nb"]


@given(WORDS, st.integers(0, 80))
def test_what_is_cut_keeps_its_beginning_and_its_end_within_its_size(text: str, chars_max: int) -> None:
    short = cut(text, chars_max)
    assert len(short) <= chars_max
    if len(text) <= chars_max:
        assert short == text
    elif short:
        begins, ends = short.split(" [...] ", 1) if text.count(" [...] ") == 0 else (short[:1], short[-1:])
        assert text.startswith(begins)
        assert text.endswith(ends)
    assert cut(text, -1) == "" or not text


def test_a_message_is_read_out_with_who_said_what() -> None:
    assert serialise(asks("one", "two")) == "[User]: one\n[User]: two"
    file = FilePart(id="prt_f", mime="image/png", url="data:,A", filename="a.png", **PLACE)
    turn = does(
        StepStartPart(id="prt_s", **PLACE),
        ReasoningPart(id="prt_r", text="Hm.", time=Span(start=NOW), **PLACE),
        a_text(TURN, "prt_t", "I look."),
        a_text(TURN, "prt_i", "unseen", ignored=True),
        a_text(TURN, "prt_b", " "),
        file,
        call("read", "text", filePath="a.py"),
        a_call(TURN, "prt_e", ToolError(input={}, error="no", time=SettledTime(start=NOW, end=NOW))),
        a_call(TURN, "prt_x", running()),
        a_call(TURN, "prt_m", came_back("seen").but(input={}, attachments=(file.but(filename=None),))),
    )
    assert serialise(turn).split("\n") == [
        "[Assistant reasoning]: Hm.",
        "[Assistant]: I look.",
        "[Attached image/png: a.png]",
        '[Assistant tool call]: read({"filePath":"a.py"})',
        "[Tool result]: text",
        "[Assistant tool call]: bash({})",
        "[Tool error]: no",
        '[Assistant tool call]: bash({"command":"ls"})',
        "[Assistant tool call]: bash({})",
        "[Tool result]: seen",
        "[Attached image/png: file]",
    ]


def test_a_long_result_is_read_out_cut_with_the_handle_of_all_of_it() -> None:
    whole = "".join(chr(97 + n % 26) for n in range(5_000))
    bounded = does(a_call(TURN, "prt_c", came_back("preview").but(input={}, full=whole)))
    result = serialise(bounded).split("\n")[1]
    assert result == f"[Tool result {handle(whole)}]: {whole[:RESULT_CHARS_MAX]} [truncated]"


def test_a_question_has_the_summary_before_the_conversation_what_hooks_add_and_what_is_demanded() -> None:
    asked = question("[User]: hi", "older", TERMS, ["from a hook"])
    order = ["<prior-summary>\nolder\n", "<conversation>\n[User]: hi\n", "from a hook", "100 tokens", *TERMS.facts]
    places = [asked.index(one) for one in order]
    assert places == sorted(places)
    assert question("[User]: hi", None, None) == "<conversation>\n[User]: hi\n</conversation>"


def test_the_words_of_a_question_invent_no_handle() -> None:
    assert handles_in(question("x", None, TERMS)) == []


def test_a_digest_has_no_heading_without_lines() -> None:
    text = digest(contract([asks("Go.")], [], [], 1_000), None, [asks("Go.")])
    assert [line for line in text.splitlines() if line.startswith("##")] == ["## Objective", "## Important Details"]
