"""An audit while a partition has no leader: it is told once, left where it is, and said in the end.

The node that alone has the partition dies while the query is under way. What is told of it, and
when it is given up, is decided without a query.
"""

import pytest

from awaiting import await_that
from cli_groups import begun, end
from ottla import Cluster, Topic
from ottla.sim.studies.audit.job import Job, deleted
from ottla.sim.studies.audit.leaderless import Leaderless, not_read
from ottla.sim.studies.audit.sequences import Ledger
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.offsets import Bounds
from studies_spark import need_spark
from studies_topics import batch, write

LOST = "t-1 has no leader that answers: it is left where it is, and the others are audited"
BACK = "t-1 has a leader that answers again"


def test_it_is_told_when_it_begins_and_when_it_ends():
    now = [0.0]
    leaderless = Leaderless("t", 5, clock=lambda: now[0])
    assert leaderless.heard([]) == []
    assert leaderless.heard([1]) == [LOST]
    assert leaderless.heard([1]) == []
    assert leaderless.heard([]) == [BACK]


def test_it_is_given_up_when_its_time_is_over():
    now = [0.0]
    leaderless = Leaderless("t", 5, clock=lambda: now[0])
    leaderless.heard([1])
    now[0] = 5.0
    leaderless.heard([1, 2])
    assert not leaderless.given_up(1)
    now[0] = 6.0
    assert [leaderless.given_up(each) for each in (0, 1, 2)] == [False, True, False]


def test_what_was_seen_of_it_is_a_line():
    assert (
        not_read("t", 1, None) == "t-1 had no leader that answered at the end: no record was seen"
    )
    seen = Ledger(next=1207, sequenced=1200, plain=5)
    assert not_read("t", 1, seen) == (
        "t-1 had no leader that answered at the end: 1,205 records up to offset 1206 were seen"
    )


def test_a_partition_without_leader_ends_an_audit_only_where_it_begins(tmp_path):
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[1], [3]])]) as running:
        write(running, "t", [batch(0, 1, 0, 5), batch(1, 1, 0, 5)])
        running.kill(3)
        where = f"127.0.0.1:{running.addresses[1][1]}"
        job = Job(where, "t", tmp_path, print, timeout=1)
        with pytest.raises(SourceError, match=r"^t-1 has had no leader for 1 s$"):
            job.begin()


@pytest.mark.slow
def test_one_that_loses_its_leader_is_left_and_the_others_are_audited(spark, tmp_path):
    lines: list[str] = []
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[1], [3]])]) as running:
        write(running, "t", [batch(0, 1, 0, 5), batch(1, 1, 0, 5)])
        where = f"127.0.0.1:{running.addresses[1][1]}"
        first = Job(where, "t", tmp_path, lines.append, timeout=20)
        first.begin()
        first.run(spark.session, once=True)
        first.close()
        assert (lines, first.unread) == ([], [])
        write(running, "t", [batch(1, 1, 5, 3)])
        job = Job(where, "t", tmp_path, lines.append, timeout=2)
        job.begin()
        running.kill(3)
        write(running, "t", [batch(0, 1, 5, 5), batch(0, 2, 2, 1)])
        job.run(spark.session, once=True)
        job.close()
    gap, lost = sorted(lines)
    assert gap.startswith("gap t-0 producer 2 epoch 0: sequences 0 to 1, 2 missing")
    assert lost == LOST
    assert job.unread == [
        "t-1 had no leader that answered at the end: 5 records up to offset 4 were seen"
    ]
    assert job.said.startswith("t: 16 records of 2 producers in 2 partitions: 2 missing")


@pytest.mark.slow
def test_an_audit_that_did_not_see_all_of_its_topic_is_not_well(tmp_path):
    need_spark()
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[1], [3]])]) as running:
        write(running, "t", [batch(0, 1, 0, 5), batch(1, 1, 0, 5)])
        where = ["--bootstrap", f"127.0.0.1:{running.addresses[1][1]}", "--topic", "t"]
        limits = ["--timeout", "2", "--for", "20", "--checkpoint", str(tmp_path)]
        process = begun("study", "audit", *where, *limits, "--master", "local[2]")
        try:
            commits = tmp_path / "stream" / "commits"
            await_that(lambda: any(commits.glob("[0-9]*")), 300, "nothing is read")
            running.kill(3)
            out, err = process.communicate(timeout=300)
        finally:
            end(process)
    assert out.splitlines() == [
        LOST,
        "t-1 had no leader that answered at the end: 5 records up to offset 4 were seen",
        "t: 10 records of 1 producer in 2 partitions: 0 missing, 0 duplicated, 0 out of order",
    ]
    assert process.returncode == 2, err


def test_what_was_deleted_before_is_a_line():
    told = deleted("t", 0, Bounds(20, 20))
    assert told.startswith("t-0 is empty: its log starts at offset 20, and what was before that is")
    assert deleted("t", 0, Bounds(20, 25)).startswith("t-0 has lost its front: its log starts at")
