"""`RaftCore.follow` takes what is plain, ends where `step` would have ended, and takes no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.raft.messages import AppendEntries, AppendReply, Heartbeat
from raft_lone import GROUP, Lone, all_of, entries, only


def twins(*, term: int = 2) -> tuple[Lone, Lone]:
    """Two members that follow member 2, with the same log: terms 0, 1, 1, 2."""
    pair = Lone([1, 1, 2], term=term), Lone([1, 1, 2], term=term)
    for lone in pair:
        lone.step(Heartbeat(GROUP, 2, 1, term, 0))
    return pair


def seen(lone: Lone) -> tuple[object, ...]:
    """All that a caller can tell of a member."""
    core, log = lone.core, lone.core.log
    terms = [log.term_at(index) for index in range(core.last_index + 2)]
    sizes = log.bytes_between(0, core.last_index)
    state = (core.role, core.term, core.vote, core.leader, core.commit, core.voters)
    return (*state, core.deadline, log.persisted, terms, sizes)


def take(lone: Lone, message: AppendEntries, *, short: bool) -> AppendReply | None:
    """The member's acknowledgement, with its write done."""
    reply = lone.core.follow(message, lone.now) if short else None
    if reply is None:
        found = all_of(AppendReply, lone.step(message).messages_after)
        return found[0] if found else None
    lone.core.persisted(message.last_index, message.term, lone.now)
    assert lone.core.take_commit() == lone.core.commit
    assert not lone.core.has_ready()
    return reply


@st.composite
def messages(draw: st.DrawFn) -> AppendEntries:
    """Appends to that log, most of them one field away from a plain one."""
    plain = AppendEntries(GROUP, 2, 1, 2, 4, 2, 6, draw(st.integers(0, 8)), entries(5, [2, 2]))
    changes = {
        "group": st.just(9),
        "sender": st.sampled_from((1, 3, 4)),
        "to": st.just(3),
        "term": st.sampled_from((1, 3)),
        "prev_index": st.sampled_from((3, 5)),
        "prev_term": st.sampled_from((1, 3)),
        "last_index": st.sampled_from((5, 7)),
        "entries": st.sampled_from(
            ((), entries(5, [2]), entries(6, [2, 2]), entries(5, [1, 2]), entries(5, [2, 3]))
        ),
    }
    name = draw(st.sampled_from((None, *changes)))
    if name is not None:
        setattr(plain, name, draw(changes[name]))
    return plain


@pytest.mark.slow
@given(st.lists(messages(), max_size=3), st.integers(0, 5000))
def test_it_ends_where_the_general_way_ends(sent: list[AppendEntries], later: int) -> None:
    short, general = twins()
    for message in sent:
        for lone in (short, general):
            lone.now += later
        assert take(short, message, short=True) == take(general, message, short=False)
        assert seen(short) == seen(general)


def test_it_takes_the_plain_append() -> None:
    lone, _ = twins()
    message = lone.append((4, 2), [2, 2], commit=5)
    assert lone.core.follow(message, 7) == AppendReply(GROUP, 1, 2, 2, True, 6)
    assert (lone.core.last_index, lone.core.commit, lone.core.log.persisted) == (6, 5, 4)


def test_it_leaves_a_member_alone_that_has_something_to_say() -> None:
    lone, _ = twins()
    lone.core.step(lone.append((9, 2), [2]), 0)
    assert lone.core.follow(lone.append((4, 2), [2]), 0) is None
    assert only(AppendReply, lone.take().messages).hint_index == 4


@pytest.mark.parametrize("sender", [2, 3])
def test_it_takes_nothing_from_whom_it_does_not_follow(sender: int) -> None:
    lone = Lone([1, 1, 2], term=2)
    assert lone.core.follow(lone.append((4, 2), [2], sender=sender), 0) is None


def test_a_commit_is_ready_until_it_is_taken() -> None:
    lone, _ = twins()
    assert lone.core.follow(lone.append((4, 2), [2], commit=4), 0) is not None
    assert lone.core.has_ready()
    assert not lone.core.has_effects()
    assert lone.core.take_commit() == 4
    assert not lone.core.has_ready()
