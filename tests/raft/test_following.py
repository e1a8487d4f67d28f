"""Followers: answers in bundles, snapshots in chunks, and input that cannot be true.

Rules of figures 2 and 13 that `test_figure_2.py` does not cover, and the line between the two kinds
of wrong input: what no rule produces is ignored, what contradicts a committed entry asserts.
"""

from dataclasses import replace
from typing import Any

import pytest

from ottla.raft.messages import (
    AppendReply,
    Heartbeat,
    InstallSnapshot,
    Message,
    SnapshotReply,
)
from ottla.raft.types import Snapshot, SnapshotMeta
from raft_lone import GROUP, Lone, all_of, entries, only


class TestAnswers:
    def test_several_successes_of_one_round_are_answered_once(self) -> None:
        lone = Lone()
        ready = lone.step(*(lone.append((index, index > 1), [1]) for index in range(1, 6)))
        assert only(AppendReply, ready.messages_after).match == 6
        assert [(r.first, len(r.entries)) for r in ready.append] == [(2, 5)]

    def test_the_furthest_speaks_for_those_before_it(self) -> None:
        lone = Lone()
        ready = lone.step(lone.append((1, 0), [1, 1, 1]), lone.append((1, 0), [1]))
        assert only(AppendReply, ready.messages_after).match == 4

    def test_a_refusal_goes_at_once_and_beside_a_success(self) -> None:
        lone = Lone()
        ready = lone.step(lone.append((1, 0), [1]), lone.append((5, 1), [1]))
        assert only(AppendReply, ready.messages_after).match == 2
        refusal = only(AppendReply, ready.messages)
        assert (refusal.match, refusal.hint_index, refusal.hint_term) == (5, 2, 1)

    def test_a_refusal_skips_whole_terms(self) -> None:
        """Paper 5.3, end: with the conflicting term a leader can bypass all of its entries."""
        lone = Lone([1, 1, 4, 4, 4], term=6)
        refusal = only(AppendReply, lone.step(lone.append((6, 2), [6])).messages)
        assert (refusal.hint_index, refusal.hint_term) == (3, 1)

    def test_a_success_for_a_leader_no_longer_followed_is_not_sent(self) -> None:
        lone = Lone()
        heartbeat = Heartbeat(GROUP, 3, 1, 2, 0)
        ready = lone.step(lone.append((1, 0), [1]), heartbeat)
        assert not ready.messages_after

    def test_a_tail_replaced_within_one_round_is_written_in_that_order(self) -> None:
        lone = Lone()
        ready = lone.step(lone.append((1, 0), [1, 1]), lone.append((2, 1), [2], term=2, sender=3))
        assert [(r.first, [e.term for e in r.entries]) for r in ready.append] == [
            (2, [1, 1]),
            (3, [2]),
        ]
        assert only(AppendReply, ready.messages_after).to == 3

    def test_what_is_committed_already_is_confirmed_not_compared(self) -> None:
        lone = Lone([1, 1, 1])
        lone.step(lone.append((4, 1), commit=4))
        ready = lone.step(lone.append((1, 0), [1]))
        assert only(AppendReply, ready.messages_after).match == 4
        ready = lone.step(lone.append((2, 1), [1, 1, 1]))
        assert [entry.index for entry in ready.append[0].entries] == [5]

    def test_entries_may_be_applied_before_the_own_disk_is_done(self) -> None:
        """A majority holds them durably, so no leader can ever be without them."""
        lone = Lone()
        ready = lone.step(lone.append((1, 0), [1, 1], commit=3), hold=True)
        assert ready.commit == 3
        assert lone.core.log.persisted == 1

    def test_a_heartbeat_too_commits_what_the_own_disk_still_works_on(self) -> None:
        lone = Lone()
        lone.step(lone.append((1, 0), [1, 1]), hold=True)
        assert lone.step(Heartbeat(GROUP, 2, 1, 1, 3)).commit == 3
        assert lone.core.log.persisted == 1


class TestBrokenInvariants:
    """What contradicts a committed entry ends the member, with both numbers in the text."""

    def test_a_leader_that_would_truncate_below_commit(self) -> None:
        lone = Lone([1, 1, 1])
        lone.step(lone.append((4, 1), commit=3))
        with pytest.raises(AssertionError, match=r"entry 3 of term 1 is committed .* has term 2"):
            lone.step(lone.append((2, 1), [2, 2], term=2, sender=3))

    def test_a_leader_whose_log_differs_at_the_commit_index(self) -> None:
        lone = Lone([1, 1, 1])
        lone.step(lone.append((4, 1), commit=4))
        with pytest.raises(AssertionError, match="entry 3 of term 1 is committed"):
            lone.step(lone.append((3, 3), term=3, sender=3))


class TestSnapshot:
    """Figure 13 of the paper, InstallSnapshot, receiver rules (1, the term, is in the gate)."""

    def chunk(self, lone: Lone, offset: int, data: bytes, **fields: int) -> InstallSnapshot:
        return InstallSnapshot(
            group=GROUP,
            sender=2,
            to=1,
            term=fields.get("term", lone.core.term),
            index=fields.get("index", 9),
            snapshot_term=fields.get("snapshot_term", 1),
            voters=(1, 2, 3),
            offset=offset,
            length=len(data),
            total=fields.get("total", 6),
            chunk=data,
        )

    def test_chunks_in_order_are_put_together(self) -> None:
        """2 to 5: create at the first chunk, write at the offset, wait until done, save."""
        lone = Lone()
        ready = lone.step(self.chunk(lone, 0, b"abc"))
        assert only(SnapshotReply, ready.messages).received == 3
        ready = lone.step(self.chunk(lone, 3, b"def"))
        meta = SnapshotMeta(9, 1, (1, 2, 3), 6)
        assert ready.snapshot == Snapshot(meta, b"abcdef")
        reply = only(SnapshotReply, ready.messages_after)
        assert (reply.done, reply.received, reply.index) == (True, 6, 9)

    def test_the_log_is_replaced(self) -> None:
        """7 and 8: discard the entire log; reset the state machine, load the configuration."""
        lone = Lone([1, 1])
        ready = lone.step(self.chunk(lone, 0, b"abcdef"))
        assert (lone.core.first_index, lone.core.last_index, ready.commit) == (10, 9, 9)
        ready = lone.step(lone.append((9, 1), [1]))
        assert only(AppendReply, ready.messages_after).match == 10

    def test_it_counts_as_persisted_only_when_it_is_written(self) -> None:
        """An entry of another term may lie at its index on the disk until then."""
        lone = Lone([1] * 10, term=2)
        ready = lone.step(self.chunk(lone, 0, b"abcdef", snapshot_term=2), hold=True)
        assert lone.core.log.persisted == 8
        lone.finish(ready)
        assert lone.core.log.persisted == 9

    def test_entries_of_the_same_round_are_overtaken(self) -> None:
        lone = Lone()
        ready = lone.step(lone.append((1, 0), [1]), self.chunk(lone, 0, b"abcdef"))
        assert ready.append == []
        assert not all_of(AppendReply, ready.messages_after)
        assert lone.core.log.persisted == 9

    def test_what_the_log_has_is_kept(self) -> None:
        """6: if an existing entry has the same index and term, retain what follows it."""
        lone = Lone([1, 1, 1])
        ready = lone.step(self.chunk(lone, 0, b"abc", index=3))
        assert (ready.snapshot, ready.commit, lone.core.last_index) == (None, 3, 4)
        assert only(SnapshotReply, ready.messages_after).done

    def test_one_below_the_commit_index_is_done_already(self) -> None:
        lone = Lone([1, 1, 1])
        lone.step(lone.append((4, 1), commit=4))
        ready = lone.step(self.chunk(lone, 0, b"abc", index=2))
        assert ready.snapshot is None
        assert only(SnapshotReply, ready.messages_after).done

    def test_repeated_and_overtaken_chunks_are_answered_with_what_is_there(self) -> None:
        lone = Lone()
        assert only(SnapshotReply, lone.step(self.chunk(lone, 3, b"def")).messages).received == 0
        lone.step(self.chunk(lone, 0, b"abc"))
        assert only(SnapshotReply, lone.step(self.chunk(lone, 0, b"abc")).messages).received == 3
        assert only(SnapshotReply, lone.step(self.chunk(lone, 5, b"f")).messages).received == 3

    def test_a_newer_snapshot_starts_over_and_an_older_one_is_ignored(self) -> None:
        lone = Lone()
        lone.step(self.chunk(lone, 0, b"abc"))
        newer = self.chunk(lone, 0, b"xy", index=12)
        assert only(SnapshotReply, lone.step(newer).messages).received == 2
        assert not lone.step(self.chunk(lone, 3, b"def")).messages

    def test_another_leader_starts_over(self) -> None:
        """Its snapshot may stand for the same entry and still have other bytes."""
        lone = Lone()
        lone.step(self.chunk(lone, 0, b"abc"))
        ready = lone.step(self.chunk(lone, 3, b"def", term=2))
        assert only(SnapshotReply, ready.messages).received == 0

    def test_one_below_a_newer_one_is_done_already(self) -> None:
        """The log cannot tell: what the old one stands for is compacted."""
        lone = Lone(snapshot=SnapshotMeta(8, 1, (1, 2, 3), 9))
        ready = lone.step(self.chunk(lone, 0, b"abcdef", index=5))
        assert (ready.snapshot, lone.core.first_index, ready.commit) == (None, 9, 8)
        assert only(SnapshotReply, ready.messages_after).done

    def test_entries_behind_it_in_the_same_round_are_written(self) -> None:
        """They begin where the entries that it overtook would have ended."""
        lone = Lone([1] * 6, term=2)
        messages: list[Message] = [
            lone.append((7, 1), [1, 1]),
            self.chunk(lone, 0, b"abcdef", snapshot_term=2),
            lone.append((9, 2), [2]),
        ]
        ready = lone.step(*messages)
        assert [(r.first, [e.term for e in r.entries]) for r in ready.append] == [(10, [2])]
        assert only(AppendReply, ready.messages_after).match == 10

    def test_a_leader_of_an_older_term_is_told_so(self) -> None:
        lone = Lone(term=4)
        ready = lone.step(self.chunk(lone, 0, b"abcdef", term=3))
        assert only(SnapshotReply, ready.messages_after).term == 4
        assert ready.snapshot is None

    def test_an_empty_snapshot_is_whole_at_once(self) -> None:
        lone = Lone()
        ready = lone.step(self.chunk(lone, 0, b"", total=0))
        assert ready.snapshot is not None
        assert ready.snapshot.data == b""

    @pytest.mark.parametrize(
        "change",
        [{"length": 2}, {"offset": -1}, {"offset": 4}, {"snapshot_term": 5}, {"voters": ()}],
        ids=str,
    )
    def test_chunks_that_cannot_be_are_ignored(self, change: dict[str, Any]) -> None:
        lone = Lone()
        ready = lone.step(replace(self.chunk(lone, 0, b"abc"), **change))
        assert not ready.messages
        assert lone.core.leader == 0


class TestImpossibleInput:
    @pytest.mark.parametrize(
        "change",
        [
            {"group": 4},
            {"to": 2},
            {"sender": 1},
            {"sender": 9},
            {"last_index": 5},
            {"prev_index": -1, "last_index": 1},
            {"prev_index": 2, "last_index": 4},
            {"prev_term": 2},
            {"entries": entries(2, [1, 2])},
            {"entries": entries(2, [1])},
            {"entries": list(reversed(entries(2, [1, 1])))},
        ],
        ids=str,
    )
    def test_append_entries_that_cannot_be_are_ignored(self, change: dict[str, Any]) -> None:
        lone = Lone()
        ready = lone.step(replace(lone.append((1, 0), [1, 1]), **change))
        assert not ready.messages
        assert not ready.messages_after
        assert (lone.core.last_index, lone.core.leader) == (1, 0)

    def test_a_second_leader_of_the_term_is_ignored(self) -> None:
        lone = Lone()
        lone.step(lone.append((1, 0)))
        ready = lone.step(lone.append((1, 0), [1], sender=3), Heartbeat(GROUP, 3, 1, 1, 0, 5))
        assert not ready.messages
        assert (lone.core.last_index, lone.core.leader) == (1, 2)

    def test_a_heartbeat_commits_nothing_that_is_not_there(self) -> None:
        lone = Lone([1])
        assert lone.step(Heartbeat(GROUP, 2, 1, 1, 99)).commit == 2
