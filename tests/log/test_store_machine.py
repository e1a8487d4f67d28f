"""Stores against a model of dicts and lists, under random turns, syncs, crashes and restarts.

The model keeps what reads must show and what a crash must leave; a crash falls before, between and
within syncs (begun, not run).
"""

import copy
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import log_kit as kit
from ottla.log.store import Write
from ottla.raft.types import HardState

GROUPS = st.integers(1, 3)


class Group:
    """A group as the model knows it."""

    def __init__(self):
        self.hard_state = HardState()
        self.snapshot = None
        self.first = 1
        self.entries = []

    @property
    def last(self):
        return self.first + len(self.entries) - 1

    def apply(self, write):
        if write.hard_state is not None:
            self.hard_state = write.hard_state
        if write.snapshot is not None:
            self.snapshot = write.snapshot
        if write.reset:
            self.first, self.entries = write.snapshot.meta.index + 1, []
        if write.truncate or write.entries:
            self.entries = [*self.entries[: write.first - self.first], *write.entries]
        while self.first <= write.compact_to:
            self.first += 1
            self.entries = self.entries[1:]


class StoreMachine(RuleBasedStateMachine):
    """`synced` is the least a crash leaves; `now` is what reads show."""

    make = staticmethod(kit.memory_kit)

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.medium = type(self).make(Path(self.folder.name) / "node")
        self.now = {}
        self.synced = {}
        self.meta = {}
        self.synced_meta = {}
        self.term = 1
        self.job = None

    def teardown(self):
        self.medium.store.close()
        self.folder.cleanup()

    # ---- turns

    def turn(self, *writes):
        self.medium.store.append(writes)
        for write in writes:
            if write.delete:
                self.now.pop(write.group, None)
            else:
                self.now.setdefault(write.group, Group()).apply(write)

    def appending(self, group, count, back):
        known = self.now.get(group, Group())
        first = max(known.first, known.last + 1 - back)
        if back:
            self.term += 1
        run = kit.run_of(first, first + count - 1, self.term)
        return Write(group, hard_state=HardState(self.term, 1), first=first, entries=run)

    @rule(group=GROUPS, count=st.integers(1, 6), back=st.integers(0, 5))
    def append(self, group, count, back):
        self.turn(self.appending(group, count, back))

    @rule(count=st.integers(1, 80), group=GROUPS)
    def append_large(self, count, group):
        known = self.now.get(group, Group())
        first = known.last + 1
        run = [
            kit.batch_entry(index, self.term, values=[b"x" * 3000])
            for index in range(first, first + count)
        ]
        self.turn(Write(group, hard_state=HardState(self.term, 1), first=first, entries=run))

    @rule(one=GROUPS, other=GROUPS, back=st.integers(0, 3))
    def append_to_two_groups(self, one, other, back):
        if one != other:
            self.turn(self.appending(one, 2, back), self.appending(other, 1, 0))

    @rule(group=GROUPS, keep=st.integers(0, 10))
    def truncate(self, group, keep):
        if group in self.now:
            known = self.now[group]
            self.turn(Write(group, first=min(known.first + keep, known.last + 1), truncate=True))

    @rule(group=GROUPS, keep=st.integers(0, 10))
    def compact(self, group, keep):
        known = self.now.get(group)
        if known is not None and known.entries:
            upto = max(known.first, known.last - keep)
            self.turn(Write(group, snapshot=kit.snapshot_at(upto, self.term), compact_to=upto))

    @rule(group=GROUPS, ahead=st.integers(-3, 9))
    def reset(self, group, ahead):
        index = max(1, self.now.get(group, Group()).last + ahead)
        self.turn(Write(group, snapshot=kit.snapshot_at(index, self.term), reset=True))

    @rule(group=GROUPS)
    def delete(self, group):
        self.turn(Write(group, delete=True))

    @rule(group=GROUPS)
    def vote(self, group):
        self.term += 1
        self.turn(Write(group, hard_state=HardState(self.term, 2)))

    @rule(key=st.sampled_from("ab"), value=st.binary(max_size=3))
    def put_meta(self, key, value):
        self.medium.store.put_meta(key, value)
        self.meta[key] = value

    # ---- syncs and ends

    @rule()
    def begin_sync(self):
        if self.job is None:
            self.covered = copy.deepcopy(self.now), dict(self.meta)
            self.job = self.medium.store.begin_sync()
            if self.job is None:
                self.synced, self.synced_meta = self.covered

    @rule()
    def finish_sync(self):
        if self.job is not None:
            self.job.run()
            self.medium.store.finish_sync(self.job)
            self.synced, self.synced_meta = self.covered
            self.job = None

    @rule()
    def crash(self):
        self.medium.crash()
        self.job = None
        self.now, self.meta = copy.deepcopy(self.synced), dict(self.synced_meta)

    @rule()
    def restart(self):
        self.finish_sync()
        self.medium.restart()
        self.synced, self.synced_meta = copy.deepcopy(self.now), dict(self.meta)

    # ---- what must hold

    @invariant()
    def shows_what_the_model_shows(self):
        store = self.medium.store
        expected = {
            group: (
                known.hard_state,
                known.snapshot.meta if known.snapshot else None,
                known.snapshot,
                known.first,
                known.last,
                [kit.visible(entry) for entry in known.entries],
            )
            for group, known in sorted(self.now.items())
        }
        assert kit.contents(store) == expected
        assert {key: store.get_meta(key) for key in self.meta} == self.meta


@pytest.mark.slow
@pytest.mark.parametrize("name", kit.KITS)
def test_a_store_does_what_the_model_does(name):
    machine = type("Machine", (StoreMachine,), {"make": staticmethod(kit.KITS[name])})
    examples = 25 if name in ("memory", "deferred") else 12
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=25)
    )
