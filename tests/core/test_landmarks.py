"""Landmarks: looking at what is new finds what looking at everything finds."""

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.history import Entry, History
from turnkeeper.core.landmarks import Surveys
from turnkeeper.core.limits import CONVERSATIONS_MAX
from turnkeeper.model.message import ContextUpdate, MessageTime, SystemMessage
from turnkeeper.testing.builders import a_history, a_user, an_assistant

SESSION = "ses_one"


def entry(kind: str, seq: int) -> Entry:
    name = f"msg_{seq}"
    if kind == "news":
        update = ContextUpdate(key="core/date", text=f"day {seq}")
        time = MessageTime(created=seq)
        return Entry(
            message=SystemMessage(id=name, session_id=SESSION, seq=seq, time=time, updates=(update,)), parts=()
        )
    if kind == "user":
        return Entry(message=a_user(SESSION, name).but(seq=seq), parts=())
    finish = None if kind == "open summary" else "stop"
    summary = True if "summary" in kind else None
    return Entry(message=an_assistant(SESSION, name, "msg_0").but(seq=seq, summary=summary, finish=finish), parts=())


KINDS = st.lists(st.sampled_from(["user", "answer", "news", "summary", "open summary"]), max_size=12)


def found(surveys: Surveys, history: History) -> tuple[int, list[SystemMessage]]:
    landmarks = surveys.of(SESSION, history)
    return landmarks.compacted_at, list(landmarks.news)


@given(st.lists(st.tuples(KINDS, st.integers(0, 12)), min_size=1, max_size=6))
def test_what_is_kept_is_what_would_be_found_anew(looks: list[tuple[list[str], int]]) -> None:
    kept = Surveys()
    for kinds, length in looks:
        entries = tuple(entry(kind, seq) for seq, kind in enumerate(kinds, 1))
        for end in (length, len(entries)):
            history = a_history(entries[:end], seq=end)
            assert found(kept, history) == found(Surveys(), history)


def test_the_newest_completed_summary_counts() -> None:
    entries = tuple(entry(kind, seq) for seq, kind in enumerate(["summary", "summary", "open summary", "news"], 1))
    assert found(Surveys(), a_history(entries, seq=4)) == (2, [entries[3].message])


def test_what_was_seen_is_not_looked_at_again_until_others_came_in_between() -> None:
    kept, history = Surveys(), a_history((entry("news", 1),), seq=1)
    first = kept.of(SESSION, history)
    assert kept.of(SESSION, history.but(entries=(*history.entries, entry("news", 2)))) is first
    for number in range(CONVERSATIONS_MAX):
        kept.of(f"ses_{number}", history)
    assert kept.of(SESSION, history) is not first
