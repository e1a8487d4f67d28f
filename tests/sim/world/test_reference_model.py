"""The reference model by itself, in runs, and against what is switched off.

By itself it is given logs of a few entries and asked about batches; entry 1 of a log is never a
batch, so they begin at index 2. Offsets are those that the batches were stamped with.
"""

import msgpack
import pytest

from log_kit import parsed
from ottla.log.build import build_batch
from ottla.log.types import BatchIdentity
from ottla.raft.types import Entry, EntryKind
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.reference_model import LogModel, Opinion, Replay, Stored

PID = 7


def batch(index, first, last, *, epoch=0, off=0, term=1, pid=PID):
    """A committed or appended batch."""
    data = build_batch(
        [b"x"] * (last - first + 1), producer_id=pid, producer_epoch=epoch, base_sequence=first
    )
    found = parsed(data)
    found.stamp(off, term)
    return Entry(index, term, EntryKind.BATCH, found)


def expire(index, *pids, term=1):
    """The decision to forget."""
    return Entry(index, term, EntryKind.COMMAND, msgpack.packb(["expire", list(pids)]))


def model(*entries, profile="reference-strict", room=10):
    """A log of these."""
    made = LogModel(profile, room)
    made.appended(entries)
    return made


def ask(of, first, last, *, epoch=0, committed=100, ahead=(), pid=PID):
    """The model's opinion, as text."""
    opinion = of.opinion(BatchIdentity(pid, epoch, first, last), committed, ahead)
    if opinion is None:
        return "nobody knows"
    return opinion.code if opinion.off is None else f"{opinion.code} {opinion.off}"


@pytest.mark.parametrize(
    ("first", "last", "epoch", "says"),
    [
        (0, 1, 0, "duplicate 0"),
        (2, 2, 0, "duplicate 2"),
        (3, 5, 0, "park"),
        (6, 6, 0, "accept"),
        (7, 7, 0, "gap"),
        (0, 0, 0, "gap"),
        (0, 2, 0, "gap"),
        (0, 0, 1, "accept"),
        (6, 6, 1, "epoch start"),
        (0, 0, -1, "stale epoch"),
        (0, 0, -2, "malformed"),
        (-1, 0, 0, "malformed"),
    ],
)
def test_what_lies_before_a_batch_decides(first, last, epoch, says):
    log = model(batch(2, 0, 1), batch(3, 2, 2, off=2), batch(4, 3, 5, off=3))
    assert ask(log, first, last, epoch=epoch, committed=3) == says


def test_an_older_epoch_is_stale_and_its_batches_are_no_duplicates():
    log = model(batch(2, 0, 0, epoch=3), batch(3, 0, 0, epoch=5, off=1))
    assert ask(log, 0, 0, epoch=4) == "stale epoch"
    assert ask(log, 0, 0, epoch=5) == "duplicate 1"


def test_only_five_committed_batches_are_remembered():
    log = model(*(batch(2 + n, n, n, off=n) for n in range(6)))
    assert ask(log, 0, 0) == "gap"
    assert ask(log, 1, 1) == "duplicate 1"
    # As long as the sixth is not committed, the first is still one of five.
    assert ask(log, 0, 0, committed=6) == "duplicate 0"


def test_truncation_takes_back_what_was_appended():
    log = model(batch(2, 0, 0), expire(3, PID), batch(4, 0, 0, off=1), batch(5, 1, 1, off=2))
    assert ask(log, 2, 2) == "accept"
    log.truncated(5)
    assert ask(log, 1, 1) == "accept"
    log.truncated(3)
    assert ask(log, 0, 0) == "duplicate 0"
    assert ask(log, 5, 5, pid=9) == "gap"  # nobody is forgotten any more


def test_unknown_producers():
    empty, forgot = model(), model(batch(2, 0, 0), expire(3, PID))
    assert ask(empty, 0, 0) == "accept"
    assert ask(empty, 5, 5) == "gap"
    assert ask(model(profile="reference"), 5, 5) == "accept"
    assert ask(forgot, 1, 5) == "accept"
    assert ask(forgot, 2, 5) == ask(forgot, 1, 5, pid=9) == "gap"  # not where it was, not who
    # Forgetting somebody who was not known forgets nobody.
    assert ask(model(expire(2, PID)), 5, 5) == "gap"


def test_what_is_on_its_way_counts():
    log = model(batch(2, 0, 0))
    ahead = [(PID, Stored(0, 0, 1, 1)), (9, Stored(0, 0, 0, 0))]
    assert ask(log, 1, 1, ahead=ahead) == "park"
    assert ask(log, 2, 2, ahead=ahead) == "accept"
    assert ask(log, 1, 4, ahead=[(PID, Stored(0))]) == "accept"  # forgotten on the way
    assert ask(log, 4, 4, ahead=[(PID, Stored(0))]) == "gap"


def test_a_full_table_has_no_room_for_one_more():
    log = model(batch(2, 0, 0), batch(3, 0, 0, pid=8), room=2)
    assert ask(log, 0, 0, pid=9) == "table full"
    assert ask(log, 1, 1) == "accept"
    assert ask(log, 0, 0, pid=9, ahead=[(8, Stored(0))]) == "accept"


def test_sequences_wrap():
    log = model(batch(2, 2**31 - 1, 2**31))
    assert ask(log, 1, 1) == "accept"
    assert ask(log, 2**31 - 1, 0) == "duplicate 0"


def test_epoch_minus_one_knows_no_order():
    log = model(batch(2, 4, 4, epoch=-1))
    assert ask(log, 4, 4, epoch=-1) == "duplicate 0"
    assert ask(log, 9, 9, epoch=-1) == "accept"
    assert ask(log, 3, 3, epoch=0) == "gap"


def ahead_of_the_log(*others):
    """A model that was restored from a snapshot with batches 0 and 1 of a producer, which are all
    up to entry 5."""
    known = [[PID, 0, 5, [[0, 0, 0, 0], [1, 1, 1, 0]]], *others]
    log = LogModel("reference-strict", 10)
    log.restored(msgpack.packb(["producers/2", 5, False, known]), 1)
    return log


def test_a_snapshot_may_be_ahead_of_the_log():
    log = ahead_of_the_log()
    log.appended([batch(5, 1, 1, off=1)])
    assert ask(log, 1, 1) == "duplicate 1"
    assert ask(log, 2, 2) == "accept"


def test_another_log_may_go_on_where_a_snapshot_was_ahead():
    """Which of a producer's batches is not in it nobody has told: an earlier one may lie there."""
    log = ahead_of_the_log([8, 0, 3, [[0, 0, 0, 0]]])
    log.appended([batch(5, 0, 0, off=1, term=2, pid=9)])
    assert {ask(log, each, each) for each in range(3)} == {"nobody knows"}
    assert ask(log, 0, 0, pid=8) == "duplicate 0"
    assert ask(log, 0, 0, pid=9) == "duplicate 1"
    assert ask(log, 1, 1, pid=10) == "nobody knows"  # nor who was forgotten
    log.appended([batch(6, 2, 2, off=2, term=2)])
    log.truncated(5)
    assert ask(log, 3, 3) == "nobody knows"
    log.restored(msgpack.packb(["producers/2", 5, False, [[PID, 0, 5, [[0, 0, 0, 0]]]]]), 2)
    assert ask(log, 0, 0) == "duplicate 0"


def test_another_log_may_go_on_after_what_followed_a_snapshot_was_cut():
    log = ahead_of_the_log()
    log.appended([batch(6, 0, 0, off=2, pid=9)])
    log.truncated(6)
    log.appended([batch(5, 0, 0, off=1, term=2, pid=8)])
    assert ask(log, 0, 0, pid=8) == "duplicate 1"
    assert ask(log, 0, 0) == "nobody knows"


def test_replay_takes_each_entry_once():
    replay, other = Replay(), Replay()
    entries = [Entry(1, 1, EntryKind.EMPTY, b""), batch(2, 0, 0), batch(3, 1, 1, off=1)]
    replay.applies(entries)
    other.applies(entries[:2])
    assert replay.digest() != other.digest()
    other.applies(entries)
    other.applies(entries[1:])
    assert other.applied == 3
    assert replay.digest() == other.digest()


CONFIG = RunConfig(profile="reference-strict", fault_every_ms=1_500, reset_ppm=20_000, records=200)


@pytest.mark.slow
def test_the_model_hears_of_every_decision_of_a_run():
    found = run(5, CONFIG)
    assert found.verdict.value == "ok", found.reason
    decided = [row for row in found.rows if row.kind == "decide"]
    accepted = {(row.partition, row.pid, row.seq) for row in decided if row.code == "accept"}
    stored = {
        (row.partition, row.pid, row.seq)
        for row in found.rows
        if row.kind == "append" and row.pid is not None
    }
    assert accepted >= stored
    assert {"accept", "duplicate"} <= {row.code for row in decided}
    assert any(row.kind == "state" and row.node == MODEL_NODE for row in found.rows)
    assert not any(row.node == MODEL_NODE for row in decided)


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "seeds"), [("M01", (5,)), ("M03", (3, 4)), ("M22", (27,))])
def test_what_is_switched_off_is_seen_at_the_first_wrong_decision(mutant, seeds):
    verdicts = [run(seed, CONFIG.with_(mutants=mutant)) for seed in seeds]
    found = {each.invariant for verdict in verdicts for each in verdict.anomalies}
    assert "sim-I35" in found


def test_opinions_are_values():
    assert Opinion("accept") == Opinion("accept", None)
