"""An audit while a partition has no leader: it is told once, left where it is, and said in the end.

The node that alone has the partition dies while the query is under way. What is told of it, and
when it is given up, is decided without a query. What was so before an audit went on is not told.
"""

import json
from types import SimpleNamespace

import pytest

from awaiting import await_that
from cli_groups import begun, end
from ottla import Cluster, Topic
from ottla.sim.studies.audit.job import Job, deleted
from ottla.sim.studies.audit.leaderless import Leaderless, not_read
from ottla.sim.studies.audit.ledger import Audit, keep
from ottla.sim.studies.audit.sequences import Ledger
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.offsets import Bounds
from studies_spark import need_spark
from studies_topics import batch, write

LOST = "t-1 has no leader that answers: it is left where it is, and the others are audited"
BACK = "t-1 has a leader that answers again"
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'


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


class Query:
    """A session, all that leads from it to a query, and the query: it has come so far before it is
    stopped, and so far in the end."""

    def __init__(self, before, after):
        self.progress, self.after = before, after

    def __getattr__(self, name):
        if name != "lastProgress":
            return self
        number, without = self.progress
        end = {"t": {"0": 5, "1": 5}, "without leader": {"t": without}}
        told = {"batchId": number, "sources": [{"endOffset": end}]}
        return SimpleNamespace(json=json.dumps(told))

    def __call__(self, *given, **named):
        return self

    def exception(self):
        return None

    def stop(self):
        self.progress = self.after


@pytest.mark.parametrize(
    ("before", "after", "told", "unread"),
    [
        ((4, [1]), (4, [1]), [LOST], ["t-1"]),
        ((4, [1]), (5, []), [LOST, BACK], []),
        ((3, [1]), (3, [1]), [], []),  # micro-batch 3 is played again
        ((3, [1]), (4, []), [], []),
        ((4, [2]), (4, [2]), [LOST.replace("-1", "-2")], ["t-2"]),
    ],
    ids=["lost", "back in the end", "replayed", "long back", "one that is new"],
)
def test_what_is_told_is_so_now(tmp_path, before, after, told, unread):
    pytest.importorskip("pyspark")
    plan(tmp_path, 3, {"0": 5, "1": 5}, without=[1])
    lines: list[str] = []
    with Cluster(nodes=1, topics=[Topic("t", partitions=2)]) as running:
        job = Job(running.bootstrap_servers, "t", tmp_path, lines.append)
        job.begin()
        job.run(Query(before, after), stopped=iter([False, True]).__next__)
        job.close()
    assert lines == told
    assert [each.partition(" had ")[0] for each in job.unread] == unread


def test_an_audit_once_ends_when_what_it_counted_is_committed(tmp_path):
    """Else all of it is played again, and the first micro-batch wants every leader for that."""
    pytest.importorskip("pyspark")
    plan(tmp_path, 0, {"0": 5, "1": 5}, without=[])
    read = {each: Ledger(next=5) for each in (0, 1)}
    keep(tmp_path, Audit("t", batch=0, partitions=read))
    looks: list[int] = []

    def stopped():
        looks.append(len(looks))
        if len(looks) == 3:
            (tmp_path / "stream" / "commits").mkdir()
            (tmp_path / "stream" / "commits" / "0").touch()
        return len(looks) == 9

    with Cluster(nodes=1, topics=[Topic("t", partitions=2)]) as running:
        write(running, "t", [batch(0, 1, 0, 5), batch(1, 1, 0, 5)])
        job = Job(running.bootstrap_servers, "t", tmp_path, print)
        job.begin()
        job.run(Query((0, []), (0, [])), once=True, stopped=stopped)
        job.close()
    assert len(looks) == 3


def plan(checkpoint, number, offsets, *, without):
    """What Spark writes down before a micro-batch, whose audit is then killed."""
    file = checkpoint / "stream" / "offsets" / str(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    end = json.dumps({"t": offsets, "without leader": {"t": without}})
    file.write_text(f"v1\n{METADATA}\n{end}")


@pytest.mark.slow
def test_a_micro_batch_that_is_played_again_says_nothing_of_leaders(spark, tmp_path):
    lines: list[str] = []
    with Cluster(nodes=1, topics=[Topic("t", partitions=2)]) as running:
        write(running, "t", [batch(0, 1, 0, 5), batch(1, 1, 0, 5)])
        for number, records in enumerate((10, 20)):
            job = Job(running.bootstrap_servers, "t", tmp_path, lines.append, timeout=20)
            job.begin()
            job.run(spark.session, once=True)
            job.close()
            assert (lines, job.unread) == ([], []), number
            assert job.said.startswith(f"t: {records} records of 1 producer in 2 partitions: 0 m")
            write(running, "t", [batch(0, 1, 5, 5), batch(1, 1, 5, 5)])
            plan(tmp_path, job.audit.batch + 1, {"0": 10, "1": 5}, without=[1])


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


@pytest.mark.nightly
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
