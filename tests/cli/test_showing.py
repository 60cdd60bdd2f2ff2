"""How a run is shown: what the feed tells, how calls and diffs read, what the terminal prints and when."""

import io
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from turnkeeper.app import open_store
from turnkeeper.cli.feed import Display, Feed
from turnkeeper.cli.live import Live
from turnkeeper.cli.part_lines import call_lines, counts, patch_lines
from turnkeeper.cli.partial_text import Paragraphs
from turnkeeper.cli.permission_prompt import parse_reply
from turnkeeper.cli.plain import Plain, failure_text
from turnkeeper.cli.screen import Screen, money
from turnkeeper.cli.terminal import Terminal
from turnkeeper.cli.transcript import transcript
from turnkeeper.model.failure import (
    ApiData,
    ApiFailure,
    AuthData,
    AuthFailure,
    Failure,
    NoData,
    OutputLengthFailure,
    OverflowData,
    OverflowFailure,
    UnknownData,
    UnknownFailure,
)
from turnkeeper.model.message import AssistantMessage, AssistantTime, TurnPath
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import (
    FilePart,
    ForeignPart,
    Part,
    ReasoningPart,
    RetryPart,
    StepStartPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.parts.tool import RunningTime, SettledTime, ToolCompleted, ToolError, ToolRunning, ToolState
from turnkeeper.model.permission import Reply
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.status import Retrying
from turnkeeper.run.coordinator import Outcome
from turnkeeper.testing.terminal_emulator import TerminalEmulator
from turnkeeper.text.diff import diff

OWN: dict[str, Any] = {"session_id": "ses_1", "message_id": "msg_1"}
SETTLED = SettledTime(start=0, end=1500)
TURN = AssistantMessage(
    id="msg_1",
    session_id="ses_1",
    time=AssistantTime(created=1),
    parent_id="msg_0",
    model_id="large",
    provider_id="acme",
    mode="build",
    agent="build",
    path=TurnPath(cwd="/bay", root="/bay"),
    cost=0,
    tokens=ZERO_TOKENS,
)
DONE = TURN.but(time=AssistantTime(created=1, completed=2))


def text(part_id: str, words: str = "", *, end: int | None = None) -> TextPart:
    return TextPart(id=part_id, text=words, time=Span(start=1, end=end), **OWN)


def thought(part_id: str, words: str = "", *, end: int | None = None) -> ReasoningPart:
    return ReasoningPart(id=part_id, text=words, time=Span(start=1, end=end), **OWN)


def call(part_id: str, tool: str, state: ToolState) -> ToolPart:
    return ToolPart(id=part_id, call_id=f"call_{part_id}", tool=tool, state=state, **OWN)


def completed(given: dict[str, Any], output: str = "", *, title: str = "", **metadata: Any) -> ToolCompleted:
    return ToolCompleted(input=given, output=output, title=title, metadata=metadata, time=SETTLED)


def running(**given: Any) -> ToolRunning:
    return ToolRunning(input=given, time=RunningTime(start=0))


# --- The feed -----------------------------------------------------------------------------------------------------


class Told:
    """A display that remembers what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []

    def __getattr__(self, name: str) -> Any:
        getattr(Display, name)  # Refuses what no display has.
        return lambda *given: self.said.append((name, given[0] if len(given) == 1 else given))


def notification(kind: str, **properties: object) -> Notification:
    return Notification(type=kind, session_id="ses_1", directory="/bay", seq=1, properties=properties)


def message(info: AssistantMessage) -> Notification:
    return notification("message.updated", info=info)


def part(one: Part) -> Notification:
    return notification("message.part.updated", part=one, time=1)


def delta(part_id: str, words: str, offset: int) -> Delta:
    return Delta(
        session_id="ses_1",
        directory="/bay",
        message_id="msg_1",
        part_id=part_id,
        field="text",
        delta=words,
        offset=offset,
    )


def told(*notifications: Notification | Delta) -> list[tuple[str, object]]:
    display = Told()
    feed = Feed(cast(Display, display))
    for one in notifications:
        feed.take(one)
    return display.said


def test_a_turn_is_told_from_its_beginning_to_its_end() -> None:
    assert told(
        message(TURN),
        part(text("p")),
        delta("p", "Hel", 0),
        delta("p", "lo", 3),
        part(text("p", "Hello", end=2)),
        message(DONE),
    ) == [
        ("began", TURN),
        ("opened", text("p")),
        ("grew", ("p", "Hel")),
        ("grew", ("p", "lo")),
        ("settled", text("p", "Hello", end=2)),
        ("ended", DONE),
    ]


def test_text_after_a_gap_is_left_to_the_settled_part() -> None:
    said = told(
        message(TURN), part(text("p")), delta("p", "Hel", 0), delta("p", "o", 4), part(text("p", "Hello", end=2))
    )
    assert [name for name, _ in said] == ["began", "opened", "grew", "settled"]


def test_a_finished_part_that_changes_is_told_once() -> None:
    step = StepStartPart(id="p", **OWN)
    assert told(message(TURN), part(step), part(step.but(snapshot="4b825dc"))) == [("began", TURN), ("settled", step)]


def test_what_began_elsewhere_is_not_told() -> None:
    other = text("p", "Old", end=2).but(message_id="msg_0")
    assert told(part(other), delta("p", "x", 0), message(DONE)) == []


def test_a_failed_attempt_is_taken_back_and_the_wait_is_told() -> None:
    status = Retrying(attempt=1, message="overloaded", next=5)
    assert told(
        message(TURN),
        part(text("p")),
        notification("message.part.removed", messageID="msg_1", partID="p"),
        notification("session.status", status=status),
    ) == [("began", TURN), ("opened", text("p")), ("dropped", "p"), ("waits", status)]


# --- Calls and diffs ----------------------------------------------------------------------------------------------

PATCH = diff("tides.py", "a\nb\nc\nd\n", "a\nB\nc\nd\n").patch


@pytest.mark.parametrize(
    ("tool", "state", "lines"),
    [
        ("read", completed({"filePath": "/x/tides.py"}, "1: a", title="tides.py"), ["→ read tides.py  1.5 s"]),
        ("glob", completed({"pattern": "*.py"}, "a.py", count=1), ["* glob *.py  1 file, 1.5 s"]),
        ("grep", completed({"pattern": "x", "path": "src"}, matches=2), ["/ grep x in src  2 matches, 1.5 s"]),
        (
            "edit",
            completed({"filePath": "tides.py"}, title="tides.py", diff=PATCH),
            [
                "± edit tides.py  +1 -1, 1.5 s",
                "    1   a",
                "    2 - b",
                "    2 + B",
                "    3   c",
                "    4   d",
            ],
        ),
        ("bash", completed({"command": "ls"}, "a\nb\n", exit=0), ["$ ls  1.5 s", "    │ a", "    │ b"]),
        ("bash", completed({"command": "false"}, "", exit=1), ["$ false  exit 1, 1.5 s"]),
        (
            "bash",
            completed({"command": "seq 9"}, "\n".join("123456789"), exit=0),
            ["$ seq 9  1.5 s", "    │ … 3 more above", *(f"    │ {n}" for n in "456789")],
        ),
        (
            "todowrite",
            completed({}, title="2 todos", todos=[{"content": "look", "status": "completed"}, {"content": "mend"}]),
            ["☰ todowrite 2 todos  1.5 s", "    ✓ look", "    ○ mend"],
        ),
        ("other", completed({"a": "b"}, "done"), ["• other b  1.5 s", "    │ done"]),
        (
            "bash",
            ToolError(input={"command": "x"}, error="no such thing", time=SETTLED),
            ["$ x  failed, 1.5 s", "    │ no such thing"],
        ),
        (
            "bash",
            ToolError(input={"command": "x"}, error="no", metadata={"rejected": True}, time=SETTLED),
            ["$ x  refused, 1.5 s", "    │ no"],
        ),
        (
            "bash",
            ToolError(input={"command": "x"}, error="gone", metadata={"interrupted": True}, time=SETTLED),
            ["$ x  stopped, 1.5 s"],
        ),
    ],
)
def test_a_call_is_a_line_with_what_matters_of_its_result(tool: str, state: ToolState, lines: list[str]) -> None:
    assert list(call_lines(Screen(), call("p", tool, state))) == lines


def test_a_call_cannot_take_over_the_terminal_and_fits_the_screen() -> None:
    state = completed({"command": f"echo \x1b[31m{'x' * 300}"}, "\x1b]0;owned\x07" + "y" * 300, exit=0)
    lines = list(call_lines(Screen(width=60), call("p", "bash", state)))
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in "".join(lines)


def test_a_long_diff_is_cut_and_hunks_are_set_apart() -> None:
    before = [str(number) for number in range(40)]
    after = [*before[:5], "five", *before[6:30], "thirty", *before[31:]]
    patch = diff("n", "\n".join(before) + "\n", "\n".join(after) + "\n").patch
    lines = list(patch_lines(Screen(), patch, lines_max=12))
    assert lines[3:5] == ["     6 - 5", "     6 + five"]
    assert lines[8] == "       ⋮"
    assert lines[-1] == "    … 5 more"
    assert counts(patch) == (2, 2)


def test_a_diff_of_several_files_names_them_and_counts_no_names() -> None:
    patch = diff("a.sql", "-- old\nx\n", "x\n").patch + diff("b.sql", "", "-- new\n++ y\n").patch
    assert list(patch_lines(Screen(), patch)) == [
        "      ▸ a.sql",
        "    1 - -- old",
        "    1   x",
        "      ▸ b.sql",
        "    1 + -- new",
        "    2 + ++ y",
    ]
    assert counts(patch) == (2, 1)


@pytest.mark.parametrize(("patch", "found"), [("", (0, 0)), ("nonsense\n+x", (0, 0)), (PATCH, (1, 1))])
def test_lines_that_a_diff_adds_and_deletes_are_counted(patch: str, found: tuple[int, int]) -> None:
    assert counts(patch) == found


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            AuthFailure(data=AuthData(provider_id="acme", message="no key")),
            "no key; `turnkeeper auth login acme` stores a key",
        ),
        (
            ApiFailure(data=ApiData(message="bad thing", status_code=400, is_retryable=False)),
            "the provider answered 400: bad thing",
        ),
        (ApiFailure(data=ApiData(message="lost\nconnection", is_retryable=True)), "lost connection"),
        (
            OverflowFailure(data=OverflowData(message="too long")),
            "too long; the conversation is too long for this model",
        ),
        (OutputLengthFailure(data=NoData()), "the answer hit the model's output limit before there was any text"),
        (UnknownFailure(data=UnknownData(message="odd")), "odd"),
    ],
)
def test_a_failure_is_one_line_that_says_what_to_do(failure: Failure, said: str) -> None:
    assert failure_text(failure) == said


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("y\n", Reply(answer="once")),
        ("YES\n", Reply(answer="once")),
        ("a\n", Reply(answer="always")),
        ("n\n", Reply(answer="reject")),
        (" no \n", Reply(answer="reject")),
        ("use uv instead\n", Reply(answer="reject", feedback="use uv instead")),
        ("\n", None),
        (None, Reply(answer="reject")),
    ],
)
def test_what_is_typed_is_a_reply_or_advice(typed: str | None, reply: Reply | None) -> None:
    assert parse_reply(typed) == reply


def test_small_sums_of_money_are_told_to_the_hundredth_of_a_cent() -> None:
    assert [money(one) for one in (0, 0.00321, 0.5, 1, 1234.5)] == ["$0.00", "$0.0032", "$0.5000", "$1.00", "$1,234.50"]


# --- The terminal -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("", ""),
        ("one line", ""),
        ("one line\n", ""),
        ("first\n\nsecond", "first\n\n"),
        ("first\n\nsecond\n\n", "first\n\nsecond\n\n"),
        ("```\ncode\n\nmore", ""),
        ("```\ncode\n\nmore\n```\n\nafter", "```\ncode\n\nmore\n```\n\n"),
        ("````\n```\n\n```\n\n", ""),
        ("text\n\n```py\nx\n\ny", "text\n\n"),
    ],
)
def test_paragraphs_are_whole_at_an_empty_line_outside_of_code(said: str, printed: str) -> None:
    at_once, bit_by_bit = Paragraphs(), Paragraphs()
    at_once.add(said)
    for character in said:
        bit_by_bit.add(character)
    assert (said[: at_once.complete], said[: bit_by_bit.complete]) == (printed, printed)


class Stage:
    """A terminal display, and what the terminal shows."""

    def __init__(self, *, thinking: bool = False, height: int = 30) -> None:
        self._output = io.StringIO()
        console = Console(file=self._output, force_terminal=True, width=60, height=height)
        self.display = Terminal(console, Screen(width=60), thinking=thinking)
        self.display.began(TURN)

    @property
    def lines(self) -> list[str]:
        emulator = TerminalEmulator(60)
        emulator.feed(self._output.getvalue().replace("\n", "\r\n"))
        return [line for line in emulator.lines if line]


def test_text_grows_below_and_whole_paragraphs_stay_above() -> None:
    stage = Stage()
    stage.display.opened(text("p"))
    stage.display.grew("p", "First.\n\nSec")
    stage.display.opened(text("p"))
    assert stage.lines == ["> build · acme/large", "First.", "Sec"]
    stage.display.settled(text("p", "First.\n\nSecond.", end=2))
    stage.display.ended(DONE)
    stage.display.close()
    assert stage.lines == ["> build · acme/large", "First.", "Second."]


SOURCES = [
    {"url": "https://a.example/1", "title": "A"},
    {"url": "https://a.example/1", "title": "A", "start_index": 7},
    {"title": "b.pdf"},
    {"url": "https://c.example/\x1b[2J"},
]
CITED = text("p", "So it is.", end=2).but(metadata={"sources": SOURCES})
SHOWN = ["[1] A https://a.example/1", "[2] b.pdf", "[3] https://c.example/␛[2J"]
PICTURE = FilePart(id="f", mime="image/png", url="data:image/png;base64," + "AAAA" * 500, **OWN)


def test_sources_and_files_stand_under_the_text() -> None:
    stage = Stage()
    stage.display.settled(CITED)
    stage.display.settled(PICTURE)
    stage.display.ended(DONE)
    stage.display.close()
    assert stage.lines == ["> build · acme/large", "So it is.", *SHOWN, "◆ a file (image/png, 1.5 KB)"]


def test_a_pipe_gets_the_text_and_the_sources_go_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    display = Plain(thinking=False)
    display.settled(CITED)
    display.settled(PICTURE)
    display.settled(text("q", "", end=2).but(metadata={"sources": SOURCES[2:3]}))
    out, err = capsys.readouterr()
    assert out == "So it is.\n"
    assert err.splitlines() == [*SHOWN, "◆ a file (image/png, 1.5 KB)", "[1] b.pdf"]


def test_a_transcript_counts_neighbours_of_one_unknown_type() -> None:
    kinds = ("line", "line", "line", "mark", "line")
    parts = tuple(ForeignPart(body={"type": kind}, id=f"prt_{nth}", **OWN) for nth, kind in enumerate(kinds))
    assert transcript(Screen(), [MessageWithParts(info=DONE, parts=parts)]).splitlines()[1:] == [
        "  ? 3 parts of the unknown type 'line'",
        "  ? a part of the unknown type 'mark'",
        "  ? a part of the unknown type 'line'",
    ]


def test_a_transcript_shows_the_sources_of_a_text() -> None:
    shown = transcript(Screen(), [MessageWithParts(info=DONE, parts=(CITED,))])
    assert [line.strip() for line in shown.splitlines()[1:]] == ["So it is.", *SHOWN]


def test_a_settled_part_makes_good_what_was_not_heard() -> None:
    stage = Stage()
    stage.display.opened(text("p"))
    stage.display.grew("p", "First.\n\nSe")
    stage.display.settled(text("p", "First.\n\nSecond, and more.", end=2))
    stage.display.ended(DONE)
    assert stage.lines[1:] == ["First.", "Second, and more."]


def test_calls_are_printed_in_the_order_they_began() -> None:
    stage = Stage()
    stage.display.opened(call("a", "bash", running(command="slow")))
    stage.display.opened(call("b", "bash", running(command="quick")))
    stage.display.settled(call("b", "bash", completed({"command": "quick"}, exit=0)))
    assert [line[2:].split("  ")[0] for line in stage.lines[1:]] == ["$ slow", "$ quick"]
    stage.display.settled(call("a", "bash", completed({"command": "slow"}, exit=0)))
    stage.display.ended(DONE)
    assert stage.lines[1:] == ["$ slow  1.5 s", "$ quick  1.5 s"]


def test_the_last_line_of_a_running_command_is_shown_below_it() -> None:
    stage = Stage()
    started = running(command="make").but(metadata={"output": "compiling\nlink\x1b[0ming\n"})
    stage.display.opened(call("a", "bash", started))
    assert [stage.lines[1][2:8], stage.lines[2]] == ["$ make", "    │ link␛[0ming"]


@pytest.mark.parametrize(("thinking", "shown"), [(False, ["┊ One. …"]), (True, ["┊ One.", "┊ Two."])])
def test_thoughts_are_cut_to_their_first_line_unless_asked_for(*, thinking: bool, shown: list[str]) -> None:
    stage = Stage(thinking=thinking)
    stage.display.settled(thought("p", "One.\nTwo.", end=2))
    stage.display.ended(DONE)
    assert stage.lines[1:] == shown


def test_a_failed_attempt_leaves_a_line_and_the_wait_is_counted() -> None:
    stage = Stage()
    stage.display.opened(text("p"))
    stage.display.grew("p", "Hal")
    stage.display.dropped("p")
    failure = ApiFailure(data=ApiData(message="overloaded", is_retryable=True))
    stage.display.settled(RetryPart(id="r", attempt=1, error=failure, time=RetryTime(created=1), **OWN))
    stage.display.waits(Retrying(attempt=1, message="overloaded", next=0))
    assert stage.lines[1] == "↻ attempt 1 failed: overloaded; trying again"
    assert stage.lines[2].endswith("trying again in 0 s: overloaded")


def test_what_is_on_its_way_never_fills_more_than_the_screen() -> None:
    stage = Stage(height=12)
    stage.display.opened(text("p"))
    stage.display.grew("p", "```\n" + "\n".join(f"line {number}" for number in range(100)))
    stage.display.tick()
    assert len(stage.lines) <= 12
    assert stage.lines[-1] == "line 99"


def test_control_characters_in_text_do_nothing() -> None:
    stage = Stage()
    stage.display.settled(text("p", "a\x1b[2Jb\x07", end=2))
    stage.display.ended(DONE)
    stage.display.note("done")
    assert stage.lines[1:] == ["a␛[2Jb␇", "done"]


class Closing(Display):
    """A display that knows whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


async def test_a_display_is_closed_also_if_the_work_fails(tmp_path: Path) -> None:
    display = Closing()

    async def fails() -> Outcome:
        raise Invalid("it cannot be done")

    async with open_store("memory:", directory=tmp_path) as tk:
        session = await tk.create()
        with pytest.raises(ExceptionGroup):
            await Live(as_json=False, thinking=False, auto=True, display=display).run(tk, session.id, fails)
    assert display.is_closed


def test_a_transcript_says_that_an_answer_was_cut_off() -> None:
    shown = transcript(Screen(width=100), [MessageWithParts(info=TURN.but(finish="length"), parts=())])
    assert shown.splitlines()[-1] == "  ✗ the answer is cut off: it reached the model's output limit"
