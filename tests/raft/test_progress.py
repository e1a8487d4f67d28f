"""The table of progress, and the flow of one leader towards one follower.

First the table, pair by pair; then what the leader sends in each state, with limits, silence, late
and lost answers. Followers are played by the test.
"""

from itertools import product

import pytest

from ottla.raft.messages import (
    AppendEntries,
    HeartbeatReply,
    InstallSnapshot,
    Message,
    SnapshotReply,
)
from ottla.raft.progress import (
    PROGRESS,
    Progress,
    ProgressEvent,
    ProgressState,
)
from ottla.raft.types import SnapshotMeta
from raft_lone import ELECTION, GROUP, RETRANSMIT, Lone, all_of, only

IMPOSSIBLE = {
    (ProgressState.SNAPSHOT, ProgressEvent.REFUSED): "asks for no place: late refusals are ignored"
}


@pytest.mark.parametrize(("state", "event"), list(product(ProgressState, ProgressEvent)))
def test_every_pair_has_one_row_or_a_reason_for_none(
    state: ProgressState, event: ProgressEvent
) -> None:
    rows = [row for row in PROGRESS if (row.source, row.event) == (state, event)]
    assert len(rows) + ((state, event) in IMPOSSIBLE) == 1
    for row in rows:
        progress = Progress(2, 1, 0, state=state)
        progress.move(event)
        assert progress.state is row.target
    assert all(row.reason for row in rows)


def test_a_move_without_a_row_asserts() -> None:
    progress = Progress(2, 1, 0, state=ProgressState.SNAPSHOT)
    with pytest.raises(AssertionError, match="follower 2"):
        progress.move(ProgressEvent.REFUSED)


def leading(**limits: int) -> Lone:
    """A leader of three with five old entries, whose followers are still strangers."""
    lone = Lone([1, 1, 1, 1], limits=limits)
    lone.lead()
    return lone


def streaming(**limits: int) -> Lone:
    """A leader that streams to both followers."""
    lone = leading(**limits)
    lone.step(lone.matched(2, 6), lone.matched(3, 6))
    return lone


def to(peer: int, messages: list[Message]) -> list[tuple[int, int]]:
    """The ranges sent to a peer: (prev_index, last_index)."""
    sent = [message for message in all_of(AppendEntries, messages) if message.to == peer]
    return [(message.prev_index, message.last_index) for message in sent]


class TestProbe:
    def test_one_message_at_a_time(self) -> None:
        lone = leading()
        assert to(2, lone.propose(1).messages) == []

    def test_a_success_at_the_place_starts_the_stream(self) -> None:
        lone = leading()
        lone.propose(1)
        ready = lone.step(lone.matched(2, 6))
        assert to(2, ready.messages) == [(6, 7)]
        assert lone.core.progress()[2].state is ProgressState.REPLICATE

    def test_a_late_success_before_the_place_proves_nothing_about_it(self) -> None:
        lone = leading()
        lone.step(lone.matched(2, 3))
        view = lone.core.progress()[2]
        assert (view.state, view.match, view.next) == (ProgressState.PROBE, 3, 6)

    def test_a_late_refusal_of_another_place_is_ignored(self) -> None:
        lone = leading()
        assert to(2, lone.step(lone.refused(2, 4, (1, 0))).messages) == []
        assert lone.core.progress()[2].next == 6

    def test_a_follower_that_lost_what_it_promised_is_sent_it_again(self) -> None:
        """A disk that lost its tail, or a member that was removed and came back while an old
        answer was on its way: the place it confirmed is refused. `match` must fall, or the leader
        would ask there for ever."""
        lone = streaming()
        lone.propose(1)
        lone.step(lone.matched(3, 7))
        lone.wait(RETRANSMIT)
        lone.wait(RETRANSMIT)
        lone.step(lone.refused(2, 7, (4, 1)))
        ready = lone.take()
        assert lone.core.progress()[2].match == 4
        assert lone.core.commit == 7
        ready = lone.step(lone.refused(2, 4, (2, 1)))
        assert to(2, ready.messages) == [(2, 7)]
        lone.step(lone.matched(2, 7))
        assert lone.core.progress()[2].match == 7

    @pytest.mark.parametrize("hint", [(9, 9), (5, 1), (-1, 0), (0, 0)])
    def test_a_hint_always_leads_back(self, hint: tuple[int, int]) -> None:
        lone = leading()
        lone.step(lone.refused(2, 5, hint))
        assert 1 <= lone.core.progress()[2].next <= 5

    def test_the_place_before_the_first_entry_cannot_be_refused(self) -> None:
        lone = leading()
        lone.step(lone.refused(2, 5, (0, 0)))
        assert to(2, lone.step(lone.refused(2, 0, (0, 0))).messages) == []


class TestReplicate:
    def test_sends_on_without_waiting(self) -> None:
        lone = streaming()
        assert to(2, lone.propose(1).messages) == [(6, 7)]
        assert to(2, lone.propose(1).messages) == [(7, 8)]

    def test_one_turn_makes_one_message(self) -> None:
        lone = streaming()
        assert to(2, lone.propose(1, 1, 1).messages) == [(6, 9)]

    def test_messages_are_bounded_in_bytes(self) -> None:
        lone = streaming(max_append_bytes=100)
        assert to(2, lone.propose(10, 10, 10, 10, 10).messages) == [(6, 8), (8, 10), (10, 11)]

    def test_what_is_in_flight_is_bounded_in_bytes(self) -> None:
        lone = streaming(max_inflight_bytes=100)
        assert to(2, lone.propose(10, 10, 10, 10).messages) == [(6, 8)]
        assert to(2, lone.step(lone.matched(2, 7)).messages) == [(8, 9)]

    def test_one_entry_always_fits(self) -> None:
        lone = streaming(max_append_bytes=10, max_inflight_bytes=10)
        assert to(2, lone.propose(500, 500).messages) == [(6, 7)]
        assert to(2, lone.step(lone.matched(2, 7)).messages) == [(7, 8)]

    def test_a_refusal_goes_back_to_the_hint_but_not_below_what_is_confirmed(self) -> None:
        lone = streaming()
        lone.propose(1)
        lone.propose(1)
        assert to(2, lone.step(lone.refused(2, 7, (4, 1))).messages) == [(6, 8)]

    @pytest.mark.parametrize("place", [5, 6, 8, 99])
    def test_a_refusal_of_what_is_confirmed_or_not_sent_is_ignored(self, place: int) -> None:
        lone = streaming()
        lone.propose(1)
        lone.step(lone.refused(2, place, (2, 1)))
        assert lone.core.progress()[2].state is ProgressState.REPLICATE

    def test_a_success_beyond_the_log_is_ignored(self) -> None:
        lone = streaming()
        lone.step(lone.matched(2, 99))
        assert lone.core.progress()[2].match == 6


class TestSilence:
    def test_is_asked_again_and_then_ever_more_seldom(self) -> None:
        lone = streaming()
        lone.propose(1)
        asked = []
        for scan in range(1, 14):
            lone.now += RETRANSMIT
            lone.core.step(lone.matched(3, 7), lone.now)
            lone.core.advance(lone.now)
            if to(2, lone.take().messages):
                asked.append(scan)
        assert asked == [2, 4, 8, 12]

    def test_ends_with_any_answer(self) -> None:
        lone = streaming()
        lone.propose(1, 1)
        lone.wait(RETRANSMIT)
        lone.step(lone.matched(2, 7), lone.matched(3, 8))
        assert not lone.wait(RETRANSMIT).messages
        assert len(lone.wait(RETRANSMIT).messages) == 1

    def test_all_there_means_nothing_is_sent_twice(self) -> None:
        lone = streaming()
        lone.propose(1, 1)
        lone.wait(RETRANSMIT)
        assert to(2, lone.wait(RETRANSMIT).messages) == [(8, 8)]
        assert not lone.step(lone.matched(2, 8)).messages

    @pytest.mark.parametrize("word", ["late answer", "heartbeat"])
    def test_ends_with_any_word_and_then_it_is_asked_at_once(self, word: str) -> None:
        """What it says answers nothing; but it lives, so the next question is not a waste."""
        lone = streaming()
        lone.propose(1)
        lone.wait(RETRANSMIT)
        assert to(2, lone.wait(RETRANSMIT).messages) == [(7, 7)]
        alive = HeartbeatReply(GROUP, 2, 1, lone.core.term)
        ready = lone.step(lone.refused(2, 3, (2, 1)) if word == "late answer" else alive)
        assert to(2, ready.messages) == [(7, 7)]

    def test_contact_is_the_latest_word(self) -> None:
        lone = streaming()
        lone.core.step(lone.matched(2, 6), lone.now + 50)
        lone.core.step(lone.matched(2, 6), lone.now + 20)
        assert lone.core.progress()[2].last_contact == lone.now + 50


class TestSnapshot:
    META = SnapshotMeta(4, 1, (1, 2, 3), 25)

    def behind(self) -> Lone:
        """A leader whose log starts at 5; follower 2 turns out to have 2 entries."""
        lone = Lone([1, 1], snapshot=self.META, limits={"snapshot_chunk_bytes": 10})
        lone.lead()
        lone.step(lone.matched(3, 7))
        return lone

    def reply(self, lone: Lone, received: int, index: int = 4, *, done: bool = False):
        return SnapshotReply(3, 2, 1, lone.core.term, index, received, done)

    def chunk(self, ready) -> tuple[int, int, int]:
        sent = only(InstallSnapshot, ready.messages)
        return sent.offset, sent.length, sent.total

    def test_begins_when_what_is_needed_is_compacted(self) -> None:
        lone = self.behind()
        ready = lone.step(lone.refused(2, 6, (2, 1)))
        sent = only(InstallSnapshot, ready.messages)
        assert (sent.index, sent.snapshot_term, sent.voters) == (4, 1, (1, 2, 3))
        assert (sent.offset, sent.length, sent.total, sent.chunk) == (0, 10, 25, b"")

    def test_goes_on_where_the_follower_is(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        assert self.chunk(lone.step(self.reply(lone, 10))) == (10, 10, 25)
        assert self.chunk(lone.step(self.reply(lone, 20))) == (20, 5, 25)
        assert self.chunk(lone.step(self.reply(lone, 0))) == (0, 10, 25)
        assert self.chunk(lone.step(self.reply(lone, 20))) == (20, 5, 25)

    @pytest.mark.parametrize("received", [0, -1, 26])
    def test_ignores_answers_that_say_nothing(self, received: int) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        assert not lone.step(self.reply(lone, received)).messages
        assert not lone.step(self.reply(lone, 10, index=3)).messages

    def test_streams_on_when_it_is_installed(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        ready = lone.step(self.reply(lone, 25, done=True))
        assert to(2, ready.messages) == [(4, 7)]
        assert lone.core.progress()[2].match == 4

    def test_a_late_success_shows_that_none_is_needed(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        assert to(2, lone.step(lone.matched(2, 6)).messages) == [(6, 7)]
        assert lone.core.progress()[2].state is ProgressState.REPLICATE

    def test_starts_over_when_a_newer_one_takes_its_place(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        lone.core.compact(SnapshotMeta(6, 1, (1, 2, 3), 7))
        sent = only(InstallSnapshot, lone.step(self.reply(lone, 10)).messages)
        assert (sent.index, sent.offset, sent.total) == (6, 0, 7)

    def test_done_with_an_older_one_goes_on_with_the_newer(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        lone.core.compact(SnapshotMeta(6, 1, (1, 2, 3), 7))
        sent = only(InstallSnapshot, lone.step(self.reply(lone, 25, done=True)).messages)
        assert sent.index == 6

    def test_a_late_success_below_the_log_changes_nothing(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        assert self.chunk(lone.step(self.reply(lone, 10))) == (10, 10, 25)
        assert not lone.step(lone.matched(2, 2)).messages
        assert lone.core.progress()[2].state is ProgressState.SNAPSHOT
        assert self.chunk(lone.step(self.reply(lone, 20))) == (20, 5, 25)

    def test_a_second_one_begins_anew(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        lone.step(self.reply(lone, 25, done=True), lone.matched(2, 7))
        lone.propose(1)
        lone.step(lone.matched(3, 8))
        lone.wait(RETRANSMIT)
        lone.wait(RETRANSMIT)
        lone.core.compact(SnapshotMeta(8, 2, (1, 2, 3), 11))
        sent = only(InstallSnapshot, lone.step(lone.refused(2, 8, (7, 2))).messages)
        assert (sent.index, sent.offset, sent.total) == (8, 0, 11)

    def test_done_beyond_what_is_committed_is_ignored(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        lone.step(self.reply(lone, 25, index=99, done=True))
        assert lone.core.progress()[2].match == 0

    def test_a_lost_chunk_is_sent_again(self) -> None:
        lone = self.behind()
        lone.step(lone.refused(2, 6, (2, 1)))
        lone.wait(RETRANSMIT)
        assert self.chunk(lone.wait(RETRANSMIT)) == (0, 10, 25)

    def test_a_stream_that_compaction_overtook_needs_one(self) -> None:
        """The window was full when the log was compacted beyond what was sent."""
        lone = streaming(max_inflight_bytes=33)
        lone.propose(1, 1, 1)
        lone.step(lone.matched(3, 7))
        lone.step(lone.matched(3, 8))
        lone.step(lone.matched(3, 9))
        lone.core.compact(SnapshotMeta(9, 2, (1, 2, 3), 5))
        assert lone.core.progress()[2].next == 8
        assert only(InstallSnapshot, lone.propose(1).messages).index == 9


def test_nobody_is_waited_for_at_the_first_contact() -> None:
    """A new leader counts followers as heard of when it was elected."""
    lone = leading()
    assert {view.last_contact for view in lone.core.progress().values()} == {ELECTION}
