"""A child process is killed with signal 9 at random moments: nothing acknowledged is missing.

The page cache survives signal 9, so this holds the transactions and the recovery together; that a
sync reaches the disk is held by test_store_crash.py.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time

import pytest

import log_kit as kit
from ottla.log.lmdb_store import LmdbStore
from ottla.log.store import Write

CHILD = """
import sys, log_kit as kit
from ottla.log.lmdb_store import LmdbStore
from ottla.log.store import Write
from ottla.raft.types import HardState
store = LmdbStore.open(sys.argv[1], first_map_bytes=1 << 20, zero_step_bytes=1 << 18)
found = {each.group: each for each in store.groups()}
term = max([each.hard_state.term for each in found.values()], default=0) + 1
last = {group: found[group].last_index if group in found else 0 for group in (1, 2)}
while True:
    turn = []
    back = 2 if (last[1] + 1) % 7 == 0 else 0
    term += bool(back)
    for group in (1, 2):
        first = last[group] + 1 - back
        run = [
            kit.batch_entry(index, term, values=[b"%d" % term * 100])
            for index in range(first, first + 3)
        ]
        turn.append(Write(group, hard_state=HardState(term, 1), first=first, entries=run))
        last[group] = first + 2
        if last[group] % 40 == 0:
            upto = last[group] - 20
            turn.append(Write(group, snapshot=kit.snapshot_at(upto, 1), compact_to=upto))
    store.append(turn)
    kit.sync(store)
    print("acknowledged", term, last[1], last[2], flush=True)
"""


def killed_after(folder, delay):
    """Run the child until `delay` seconds after its first answer; its last whole answer."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(run, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        select.select([child.stdout], [], [], 60)
        # Whole: where PYTHONUNBUFFERED is set a line comes in pieces, and one died of its first.
        first = child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        lines = [line for line in (first + child.stdout.read()).split(b"\n")[:-1] if line]
        assert child.wait() == -signal.SIGKILL
    assert lines, "the child was killed before its first answer"
    return [int(word) for word in lines[-1].split()[1:]]


def check_after_kill(folder, acknowledged):
    """Every acknowledged entry is there, and both groups of the last turn stand together."""
    term, *lasts = acknowledged
    store = LmdbStore.open(folder, zero_step_bytes=0)
    by_group = store.groups()
    assert [found.group for found in by_group] == [1, 2]
    for found, last in zip(by_group, lasts, strict=True):
        entries = list(store.scan(found.group))
        assert [entry.index for entry in entries] == list(
            range(found.first_index, found.last_index + 1)
        )
        assert found.hard_state.term >= term
        assert found.last_index >= last
        assert found.hard_state.term >= entries[-1].term
    assert by_group[0].last_index == by_group[1].last_index
    store.close()


def kill_often(folder, times, seed):
    moments = random.Random(seed)
    for _ in range(times):
        check_after_kill(folder, killed_after(folder, moments.random() * 0.05))


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(60, marks=pytest.mark.slow),
        pytest.param(1_000, marks=pytest.mark.nightly),
    ],
)
def test_nothing_acknowledged_is_missing_however_often_it_is_killed(tmp_path, times):
    kill_often(tmp_path / "node", times, seed=2)


@pytest.mark.slow
def test_negative_control_the_check_sees_a_missing_entry(tmp_path):
    folder = tmp_path / "node"
    term, *lasts = killed_after(folder, 0.01)
    check_after_kill(folder, [term, *lasts])
    store = LmdbStore.open(folder, zero_step_bytes=0)
    found = store.groups()[0]
    store.append([Write(1, first=found.last_index, truncate=True)])
    kit.sync(store)
    store.close()
    with pytest.raises(AssertionError):
        check_after_kill(folder, [term, *lasts])
