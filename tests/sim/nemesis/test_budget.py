"""The fault budget counts for each Raft group: what no majority would stand is not done to it."""

import pytest

from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig

SEEDS = range(6)


def lost_disks(replicas: int, nodes: int) -> int:
    """Disks that a few seeds lose for good; none of the seeds may fail."""
    config = RunConfig(
        nodes=nodes, replicas=replicas, load_ms=3_000, records=20, faults="lost-disk bit-rot"
    )
    lost = 0
    for seed in SEEDS:
        outcome = run(seed, config.with_(fault_every_ms=300))
        assert outcome.verdict is Verdict.OK, f"seed {seed}: {outcome.reason}"
        told = [row.code or "" for row in outcome.rows if row.kind == "fault"]
        lost += sum(code == "its disk was lost" or "rots on its disk" in code for code in told)
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_no_disk_is_lost_where_each_is_needed(replicas):
    assert lost_disks(replicas, nodes=4) == 0


@pytest.mark.slow
def test_one_of_three_replicas_may_lose_its_disk():
    assert lost_disks(3, nodes=4) > 0
