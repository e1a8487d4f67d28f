"""The reference model of one state per producer: by itself, in runs, and against what is wrong.

By itself it is given the entries of a log and asked about batches, as a leader asks it. In runs it
agrees with every decision, and replicas have what they must keep of a snapshot.
"""

from __future__ import annotations

import msgpack
import pytest

from log_kit import parsed
from ottla.broker.partition.snapshots import Snapshots
from ottla.idempotency.wiping import WipingTable
from ottla.log.build import build_batch
from ottla.log.types import BatchIdentity
from ottla.raft.types import Entry, EntryKind
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.one_state_model import OneStateModel, Remnant, StateReplay

PID = 7
REDPANDA = RunConfig(profile="redpanda-24.3")
HYDRATED = (34, 52)
"""Seeds in which a replica gets another one's snapshot, and leads."""


def batch(index, first, *, epoch=0, count=1):
    data = build_batch([b"x"] * count, producer_id=PID, producer_epoch=epoch, base_sequence=first)
    found = parsed(data)
    found.stamp(10 * index, 1)
    return Entry(index, 1, EntryKind.BATCH, found)


def expire(index, *pids):
    return Entry(index, 1, EntryKind.COMMAND, msgpack.packb(["expire", list(pids)]))


def model(*entries, wraps=False):
    """These entries are applied."""
    made = OneStateModel(100, wraps=wraps)
    made.appended(entries)
    if entries:
        made.applied(entries)
    return made


def ask(of, first, last=None, *, epoch=0):
    opinion = of.opinion(BatchIdentity(PID, epoch, first, first if last is None else last), 0, ())
    return opinion.code if opinion.off is None else f"{opinion.code} {opinion.off}"


def test_it_begins_anywhere_and_then_only_at_zero_until_something_is_stored():
    made = model()
    assert [ask(made, n) for n in (5, 6, 0)] == ["accept", "gap", "accept"]


def test_epochs_count_once_only():
    made = model(batch(2, 0, epoch=1), batch(3, 1, epoch=1))
    assert [ask(made, n) for n in (0, 2, 4)] == ["duplicate 20", "accept", "gap"]
    assert [ask(made, n, epoch=2) for n in (4, 0)] == ["gap", "accept"]
    assert [ask(made, n, epoch=1) for n in (2, 0)] == ["gap", "accept"]


def test_what_is_in_flight_is_parked_on_unless_a_newer_epoch_came():
    made = model()
    made.appended([batch(2, 0)])
    assert ask(made, 0, epoch=-1) == "accept", "nobody asked before, so it is unknown"
    made = model()
    ask(made, 0)
    made.appended([batch(2, 0)])
    assert [ask(made, 0), ask(made, 1)] == ["park", "accept"]
    assert ask(made, 0, epoch=1) == "accept"
    made.applied([batch(2, 0)])
    assert ask(made, 0, epoch=1) == "duplicate 20", "of the old epoch's batch"


def test_a_decision_to_forget_counts_at_once():
    made = model(batch(2, 0))
    made.appended([expire(3, PID)])
    assert ask(made, 9) == "accept"
    made.applied([expire(3, PID)])
    assert ask(made, 9) == "gap", "met again since"


@pytest.mark.parametrize(("wraps", "says"), [(False, "backwards"), (True, "accept")])
def test_a_batch_across_the_wrap(wraps, says):
    assert ask(model(wraps=wraps), 2**31 - 1, 0) == says


def test_a_replay_extends_the_newest_epoch():
    replay = StateReplay()
    replay.applies([batch(1, 0, epoch=3), batch(2, 0, epoch=1), batch(3, 1, epoch=4)])
    assert replay.producers == {PID: [4, 3, [[1, 1, 30, 0]]]}


@pytest.mark.parametrize(("node", "left"), [(1, {PID: [0, 4, [[3, 3, 12, 0]]]}), (2, {})])
def test_of_a_snapshot_only_its_taker_keeps_what_is_behind_its_log_start(node, left):
    body = {"taken_by": 1, "log_start_offset": 12}
    table = ["producers/2", 4, False, [[PID, 0, 4, [[0, 2, 9, 0], [3, 3, 12, 0]]]]]
    remnant = Remnant(body, 3, node, table)
    assert remnant.producers == left
    assert remnant.applied == (4 if node == 1 else 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", HYDRATED)
def test_a_run_with_a_hydrated_replica_is_good(seed):
    assert run(seed, REDPANDA).verdict is Verdict.OK


def found(seed):
    return {each.invariant for each in run(seed, REDPANDA).anomalies}


@pytest.mark.slow
def test_who_reads_another_ones_producers_is_noticed(monkeypatch):
    read = Snapshots.read_producers

    def all_of_them(self, body, index, now):
        kept = {"producers": body["producers"], "log_start_offset": 0}
        return read(self, kept, index, now)

    monkeypatch.setattr(Snapshots, "read_producers", all_of_them)
    assert found(93) == {"sim-I27"}


@pytest.mark.slow
def test_who_wipes_nothing_is_noticed(monkeypatch):
    monkeypatch.setattr(WipingTable, "meet", lambda *_: None)
    assert found(76) == {"sim-I35"}
