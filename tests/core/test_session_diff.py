"""What differs in a session between two of its events."""

import pytest

from turnkeeper.core.session_diff import (
    ComponentDiff,
    ContextDiff,
    FieldDiff,
    MessageDiff,
    PartDiff,
    RulesDiff,
    SessionDiff,
    SessionMoment,
    compare,
)
from turnkeeper.core.view import SessionView
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.permission import Rule
from turnkeeper.model.session import ZERO_TOKENS, CacheTokens, SessionModel, Tokens
from turnkeeper.testing.builders import SOME_TOKENS, a_session, a_text, a_user, an_assistant, an_epoch

USER = a_user("ses_one", "msg_1", seq=2)
TURN = an_assistant("ses_one", "msg_2", "msg_1", seq=3)
ASKED = MessageWithParts(info=USER, parts=(a_text(USER, "prt_1", "Hello"),))
OPEN = MessageWithParts(info=TURN, parts=(a_text(TURN, "prt_2", "Hel"),))
DONE = OPEN.but(parts=(a_text(TURN, "prt_2", "Hello"), a_text(TURN, "prt_3", "there")))

ALLOW = Rule(permission="bash", pattern="*", action="allow")
DENY = Rule(permission="bash", pattern="rm *", action="deny")
ASK = Rule(permission="edit", pattern="*", action="ask")


def moment(seq: int, *messages: MessageWithParts, epoch: object = None, **session: object) -> SessionMoment:
    view = SessionView(session=a_session().but(**session), seq=seq).but(epoch=epoch)
    return SessionMoment(view=view, messages=messages)


def nothing(before: int, after: int) -> SessionDiff:
    return SessionDiff(session_id="ses_one", before=before, after=after)


def test_a_moment_does_not_differ_from_itself() -> None:
    whole = moment(4, ASKED, DONE, epoch=an_epoch(), permission=(ALLOW,), cost=1.5, tokens=SOME_TOKENS)
    assert compare(whole, whole) == nothing(4, 4)


def test_messages_are_added_changed_and_removed_in_the_order_of_the_history() -> None:
    before, after = moment(3, ASKED, OPEN), moment(5, DONE)
    changed = MessageDiff(
        id="msg_2",
        change="changed",
        message=DONE,
        was=OPEN,
        parts=(PartDiff(id="prt_2", change="changed"), PartDiff(id="prt_3", change="added")),
    )
    gone = MessageDiff(id="msg_1", change="removed", message=ASKED)
    assert compare(before, after) == nothing(3, 5).but(messages=(gone, changed))
    back = MessageDiff(
        id="msg_2",
        change="changed",
        message=OPEN,
        was=DONE,
        parts=(PartDiff(id="prt_2", change="changed"), PartDiff(id="prt_3", change="removed")),
    )
    assert compare(after, before) == nothing(5, 3).but(messages=(gone.but(change="added"), back))


@pytest.mark.parametrize(
    ("before", "after", "removed", "added"),
    [
        ((), (ALLOW,), (), (ALLOW,)),
        ((ALLOW, DENY), (ALLOW,), (DENY,), ()),
        ((ALLOW, DENY), (DENY, ALLOW), (DENY,), (DENY,)),
        ((ALLOW,), (ALLOW, ALLOW), (), (ALLOW,)),
        ((ALLOW, DENY), (ALLOW, ASK), (DENY,), (ASK,)),
    ],
)
def test_rules_are_compared_in_their_order(
    before: tuple[Rule, ...], after: tuple[Rule, ...], removed: tuple[Rule, ...], added: tuple[Rule, ...]
) -> None:
    found = compare(moment(1, permission=before), moment(2, permission=after)).permissions
    assert found == RulesDiff(removed=removed, added=added)


def test_no_rules_and_none_are_the_same() -> None:
    assert compare(moment(1, permission=None), moment(2, permission=())) == nothing(1, 2)


def test_epochs_and_components_are_compared() -> None:
    first = an_epoch(checkpoint={"a": "1", "b": "2"})
    told = first.but(checkpoint={"a": "1", "b": "3", "c": "4"})
    second = an_epoch(2, checkpoint={"a": "1"}, reason="compaction")
    updated = (ComponentDiff(key="b", change="changed", before="2", after="3"),)
    new = ComponentDiff(key="c", change="added", after="4")
    assert compare(moment(1, epoch=first), moment(2, epoch=told)).context == ContextDiff(
        before=1, after=1, components=(*updated, new)
    )
    gone = ComponentDiff(key="b", change="removed", before="2")
    assert compare(moment(1, epoch=first), moment(2, epoch=second)).context == ContextDiff(
        before=1, after=2, reason="compaction", components=(gone,)
    )
    assert compare(
        moment(2, epoch=second), moment(1, epoch=second.but(number=1, reason="start"))
    ).context == ContextDiff(before=2, after=1, reason="compaction")
    begun = compare(moment(1), moment(2, epoch=second)).context
    assert begun == ContextDiff(
        after=2, reason="compaction", components=(ComponentDiff(key="a", change="added", after="1"),)
    )


def test_cost_and_tokens_are_what_was_spent_in_between() -> None:
    before = moment(1, cost=0.1, tokens=ZERO_TOKENS)
    after = moment(2, cost=0.3, tokens=SOME_TOKENS)
    assert (compare(before, after).cost, compare(before, after).tokens) == (0.2, SOME_TOKENS)
    back = compare(after, before)
    cache = CacheTokens(read=-7, write=-3)
    assert (back.cost, back.tokens) == (-0.2, Tokens(input=-100, output=-20, reasoning=-5, cache=cache))


def test_fields_that_people_set_are_compared_and_times_are_not() -> None:
    model = SessionModel(id="large", provider_id="acme")
    before = moment(1)
    after = moment(2, title="Other", model=model, version="9", time=before.view.session.time.but(updated=9))
    assert compare(before, after) == nothing(1, 2).but(
        fields=(
            FieldDiff(name="title", before="A session", after="Other"),
            FieldDiff(name="model", before=None, after=model),
        )
    )
