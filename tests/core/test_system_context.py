"""Reconcile: which epoch a turn runs in and what is news, decided from values alone."""

import pytest

from turnkeeper.core.system_context import (
    GONE,
    INSTRUCTIONS,
    Circumstances,
    ContextNews,
    Samples,
    fingerprint,
    known,
    look_back,
    reconcile,
)
from turnkeeper.model.context import Absent, ComponentText, Epoch, Loaded, Sample, Unavailable
from turnkeeper.model.message import ContextUpdate, Message, MessageTime, SystemMessage
from turnkeeper.testing.builders import an_assistant

HERE = Circumstances(provider_id="acme", model_id="large", directory="/here")
LOST = Unavailable(reason="no signal")


def is_(value: str) -> Loaded:
    return Loaded(baseline=f"= {value}", update=f"now {value}")


def begun(*samples: tuple[str, Sample], seq: int = 5) -> Epoch:
    epoch = reconcile(samples, None, HERE)
    assert isinstance(epoch, Epoch)
    return epoch.but(seq=seq)


def news(samples: Samples, epoch: Epoch, *told: ContextUpdate) -> list[tuple[str, str]]:
    admission = reconcile(samples, epoch, HERE, told)
    assert admission is None or isinstance(admission, ContextNews)
    return [(one.key, one.text) for one in admission.updates] if admission is not None else []


def test_a_component_that_appears_disappears_and_comes_back_is_told_each_time() -> None:
    epoch = begun(("a/a", Absent(removal="no a")))
    assert (epoch.baseline, epoch.checkpoint) == ((), {})
    came = ContextUpdate(key="a/a", text="now 1")
    assert news([("a/a", is_("1"))], epoch) == [("a/a", "now 1")]
    went = ContextUpdate(key="a/a", text="no a", gone=True)
    assert news([("a/a", Absent(removal="no a"))], epoch, came) == [("a/a", "no a")]
    assert news([("a/a", Absent(removal="no a"))], epoch, came, went) == []
    assert news([("a/a", is_("1"))], epoch, came, went) == [("a/a", "now 1")]


def test_what_leaves_without_a_word_is_still_known() -> None:
    epoch = begun(("a/a", is_("1")), ("b/b", is_("1")))
    changed = reconcile([("a/a", Absent()), ("b/b", is_("2"))], epoch, HERE)
    assert isinstance(changed, ContextNews)
    assert changed.checkpoint == {**epoch.checkpoint, "b/b": fingerprint(is_("2"))}


def test_a_component_without_an_update_is_never_news() -> None:
    epoch = begun(("a/map", Loaded(baseline="a map", update="")), ("a/later", LOST))
    assert epoch.baseline == (ComponentText(key="a/map", text="a map"),)
    moved = [("a/map", Loaded(baseline="another map", update="")), ("a/later", Loaded(baseline="late", update=""))]
    assert news(moved, epoch) == []


def test_a_component_without_a_baseline_is_known_all_the_same() -> None:
    epoch = begun(("a/mode", Loaded(baseline="", update="build")))
    assert epoch.baseline == ()
    assert news([("a/mode", Loaded(baseline="", update="build"))], epoch) == []
    assert news([("a/mode", Loaded(baseline="plan", update="plan"))], epoch) == [("a/mode", "plan")]


def test_an_instruction_that_nobody_names_any_more_is_revoked_once() -> None:
    epoch = begun((f"{INSTRUCTIONS}/AGENTS.md", is_("1")), ("a/a", is_("1")))
    assert news([("a/a", is_("1"))], epoch) == [
        (f"{INSTRUCTIONS}/AGENTS.md", "The instructions from /AGENTS.md no longer apply.")
    ]
    gone = ContextUpdate(key=f"{INSTRUCTIONS}/AGENTS.md", text="gone", gone=True)
    assert news([("a/a", is_("1"))], epoch, gone) == []
    assert known(epoch, [gone])[f"{INSTRUCTIONS}/AGENTS.md"] == GONE


def test_nothing_is_revoked_while_nobody_can_look() -> None:
    epoch = begun((f"{INSTRUCTIONS}/AGENTS.md", is_("1")))
    assert news([(INSTRUCTIONS, LOST)], epoch) == []


def test_what_cannot_be_loaded_stays_as_it_was_known_when_an_epoch_begins() -> None:
    files = f"{INSTRUCTIONS}/A", f"{INSTRUCTIONS}/B"
    epoch = begun(("a/a", is_("1")), (files[0], is_("1")), (files[1], is_("1")), ("a/b", is_("1")), ("a/c", is_("1")))
    told = [
        ContextUpdate(key="a/a", text="now 2"),
        ContextUpdate(key=files[1], text="now 2"),
        ContextUpdate(key="a/b", text="no b", gone=True),
    ]
    lost = [("a/a", LOST), (INSTRUCTIONS, LOST), ("a/b", LOST), ("a/never", LOST)]
    after = reconcile(lost, epoch, HERE.but(model_id="other"), told)
    assert isinstance(after, Epoch)
    assert [(one.key, one.text) for one in after.baseline] == [
        ("a/a", "now 2"),
        (files[0], "= 1"),
        (files[1], "now 2"),
    ]
    assert after.checkpoint == {
        "a/a": fingerprint(is_("2")),
        files[0]: fingerprint(is_("1")),
        files[1]: fingerprint(is_("2")),
    }
    assert after.initial == after.checkpoint


def test_what_was_known_in_another_directory_is_not_kept() -> None:
    epoch = begun(("a/a", is_("1")))
    for now in (HERE.but(directory="/there"), HERE.but(directory="/there", compacted_at=9)):
        after = reconcile([("a/a", LOST)], epoch, now)
        assert isinstance(after, Epoch)
        assert (after.baseline, after.checkpoint) == ((), {})


def test_news_that_was_taken_out_of_the_history_is_told_again() -> None:
    epoch = begun(("a/a", is_("1")))
    advanced = epoch.but(checkpoint={"a/a": fingerprint(is_("2"))})
    told = ContextUpdate(key="a/a", text="now 2")
    assert news([("a/a", is_("2"))], advanced, told) == []
    assert news([("a/a", is_("2"))], advanced) == [("a/a", "now 2")], "its message is gone"
    assert news([("a/a", is_("1"))], advanced) == [], "the baseline says so"


def test_an_epoch_of_an_older_version_is_taken_at_its_word() -> None:
    epoch = begun(("a/a", is_("1"))).but(initial=None)
    assert news([("a/a", is_("1"))], epoch) == []


def test_only_four_things_begin_an_epoch() -> None:
    samples = [("a/a", is_("1"))]
    epoch = begun(*samples)
    reasons = {
        "start": reconcile(samples, None, HERE),
        "compaction": reconcile(samples, epoch, HERE.but(compacted_at=6)),
        "model": reconcile(samples, epoch, HERE.but(provider_id="other")),
        "move": reconcile(samples, epoch, HERE.but(directory="/there")),
    }
    assert {name: one.reason for name, one in reasons.items() if isinstance(one, Epoch)} == {
        name: name for name in reasons
    }
    assert [one.number for one in reasons.values() if isinstance(one, Epoch)] == [1, 2, 2, 2]
    assert reconcile(samples, epoch, HERE.but(compacted_at=4)) is None


NEWS = [
    SystemMessage(
        id=f"msg_{seq}",
        session_id="ses_one",
        seq=seq,
        time=MessageTime(created=seq),
        updates=(ContextUpdate(key="core/date", text=f"day {seq}"),),
    )
    for seq in (2, 5, 8)
]
SUMMARY = an_assistant("ses_one", "msg_6", "msg_1").but(seq=6, summary=True, finish="stop")


@pytest.mark.parametrize(
    ("messages", "epoch_seq", "compacted_at", "days"),
    [
        ([*NEWS, SUMMARY], 3, 6, ["day 5", "day 8"]),
        ([*NEWS, SUMMARY], 6, 0, ["day 8"]),
        ([*NEWS, SUMMARY.but(finish=None)], 0, 0, ["day 2", "day 5", "day 8"]),
        ([SUMMARY, SUMMARY.but(seq=7)], 0, 7, []),
        ([], 0, 0, []),
    ],
)
def test_looking_back_finds_the_newest_summary_and_the_news_of_an_epoch(
    messages: list[Message], epoch_seq: int, compacted_at: int, days: list[str]
) -> None:
    newest_first = sorted(messages, key=lambda message: -message.seq)
    found, told = look_back(newest_first, epoch_seq)
    assert (found, [update.text for update in told]) == (compacted_at, days)
