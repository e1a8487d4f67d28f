"""The audit as a query: what it finds over the wire, and that it counts nothing twice.

Topics get their anomalies from a broker that forgets producers; see `studies_topics`. What keeps an
audit from going on is looked at before there is a query, so those tests need no Spark.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from cli_process import ottla
from clients_confluent import ConfluentKit
from ottla.sim.studies.audit.job import Job
from ottla.sim.studies.audit.ledger import Audit, keep
from ottla.sim.studies.audit.sequences import Ledger
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.wire import WireTopics
from studies_topics import ANOMALIES, FOUND, SUMMARY, anomalous, batch, write


@pytest.fixture(scope="module")
def cluster():
    with anomalous() as running:
        write(running, "t", ANOMALIES)
        yield running


def audit(cluster, session, checkpoint, **settings):
    """An audit to where the topic ends now; its lines and its summary."""
    lines: list[str] = []
    job = Job(cluster.bootstrap_servers, "t", checkpoint, lines.append, **settings)
    job.begin()
    job.run(session, once=True)
    job.close()
    return tuple(lines), job.said


@pytest.mark.slow
def test_every_anomaly_is_found(cluster, spark, tmp_path):
    lines, said = audit(cluster, spark.session, tmp_path)
    assert lines == FOUND
    assert said == SUMMARY


@pytest.mark.slow
def test_every_anomaly_is_found_once_over_micro_batches_and_restarts(spark, tmp_path):
    with anomalous() as running:
        write(running, "t", ANOMALIES)
        found = audit(running, spark.session, tmp_path, per_batch=8)
        assert sorted(found[0]) == sorted(FOUND)
        assert found[1] == SUMMARY
        assert audit(running, spark.session, tmp_path) == found
        write(running, "t", [batch(1, 9, 0, 1), batch(1, 1, 0, 2)])
        lines, said = audit(running, spark.session, tmp_path)
    assert lines[-1].startswith("duplicate t-1 producer 1 epoch 0: sequences 0 to 1, 2 again")
    assert len(lines) == len(FOUND) + 1
    assert "25 records of 3 producers" in said
    assert "7 duplicated" in said


@pytest.mark.slow
def test_a_topic_that_cannot_be_read_ends_the_audit_with_its_reason(spark, tmp_path):
    with anomalous() as running:
        write(running, "t", ANOMALIES)
        job = Job(running.bootstrap_servers, "t", tmp_path, print, timeout=1)
        job.begin()
        running.kill(1)
        with pytest.raises(SourceError, match="offsets of t: no answer within 1 s from 127"):
            job.run(spark.session, once=True)


@pytest.mark.slow
def test_records_that_are_deleted_while_it_runs_end_it(spark, tmp_path):
    """Nobody can say of them whether they were in order: it passed over them in silence."""
    with anomalous() as running:
        write(running, "t", [batch(0, 1, 1, 5), batch(0, 1, 6, 5)])
        told: list[str] = []

        def tell(line):
            """Of the first micro-batch, before Spark plans the next one."""
            told.append(line)
            ConfluentKit().delete_records(running.bootstrap_servers, "t", 0, 10)

        job = Job(running.bootstrap_servers, "t", tmp_path, tell, per_batch=5)
        job.begin()
        said = (
            r"^t-0: records 5 to 9 are gone, the log starts at 10; audit with a new --checkpoint$"
        )
        with pytest.raises(SourceError, match=said):
            job.run(spark.session, once=True)
        job.close()
        assert told == ["gap t-0 producer 1 epoch 0: sequence 0, 1 missing before offset 0"]
        with pytest.raises(SourceError, match="t-0: records 5 to 9 were deleted before they were"):
            job.begin()


def checkpoint_of(folder, running):
    """A checkpoint whose audit has read all of `ANOMALIES` of the topic that is there now."""
    (folder / "stream" / "offsets").mkdir(parents=True)
    (folder / "stream" / "offsets" / "0").write_text('v1\n{}\n{"t": {"0": 14, "1": 14}}')
    read = Audit("t", batch=0, partitions={0: Ledger(next=14), 1: Ledger(next=14)})
    read.topic_id = WireTopics([running.addresses[1]]).topic_id("t")
    keep(folder, read)
    return read


def test_a_topic_that_was_made_anew_is_not_gone_on_with_however_long_it_is(tmp_path):
    with anomalous() as running:
        write(running, "t", ANOMALIES)
        read = checkpoint_of(tmp_path, running)
        job = Job(running.bootstrap_servers, "t", tmp_path, print, timeout=1)
        job.begin()
        assert job.audit == read, "the same topic"
        running.delete_topic("t")
        running.create_topic("t", partitions=2)
        for first, size in ((0, 1), (1, 100)):
            write(running, "t", [batch(n, 1, first, size) for n in (0, 1)])
            with pytest.raises(SourceError, match="topic t is another one than was read: it was d"):
                job.begin()


def test_two_at_one_checkpoint_are_refused(cluster, tmp_path):
    first, second = (Job(cluster.bootstrap_servers, "t", tmp_path, print) for _ in range(2))
    first.begin()
    with pytest.raises(SourceError, match=": another process uses this audit; wait, or end it"):
        second.begin()
    first.close()
    second.begin()
    second.close()


def test_who_is_refused_holds_no_lock(cluster, tmp_path):
    (tmp_path / "ledger.msgpack").touch()
    jobs = [Job(cluster.bootstrap_servers, "t", tmp_path, print) for _ in range(2)]
    for each in jobs:
        with pytest.raises(SourceError, match="is damaged"):
            each.begin()


def test_a_topic_that_is_shorter_than_what_was_audited_is_an_error(tmp_path):
    with anomalous() as running:
        write(running, "t", ANOMALIES[:1])
        checkpoint_of(tmp_path, running)
        job = Job(running.bootstrap_servers, "t", tmp_path, print, timeout=1)
        with pytest.raises(SourceError, match="t-0 ends at 5, though it was read to 14: records"):
            job.begin()


def test_what_was_deleted_before_the_audit_is_told(tmp_path):
    lines: list[str] = []
    with anomalous() as running:
        write(running, "t", ANOMALIES)
        ConfluentKit().delete_records(running.bootstrap_servers, "t", 0, 14)
        job = Job(running.bootstrap_servers, "t", tmp_path, lines.append)
        job.begin()
        job.close()
    (told,) = lines
    assert told.startswith("t-0 is empty: its log starts at offset 14, and what was before that is")


@pytest.mark.slow
def test_spaces_around_a_topic_are_none_of_its_name(cluster, spark, tmp_path):
    """They were to the data source, and to the audit they were some: a traceback."""
    job = Job(cluster.bootstrap_servers, " t ", tmp_path, print)
    job.begin()
    job.run(spark.session, once=True)
    job.close()
    assert job.said == SUMMARY


@pytest.mark.slow
def test_a_checkpoint_that_spark_cannot_open_is_one_line(cluster, spark, tmp_path):
    (tmp_path / "stream").mkdir()
    (tmp_path / "stream" / "metadata").write_text("no metadata")
    job = Job(cluster.bootstrap_servers, "t", tmp_path, print)
    job.begin()
    with pytest.raises(SourceError) as raised:
        job.run(spark.session, once=True)
    job.close()
    assert str(raised.value).startswith(f"--checkpoint {tmp_path}: Spark does not begin: ")
    assert "\n" not in str(raised.value)


BROKEN = """
from ottla.cli import main
from ottla.sim.studies.audit.job import Job
Job.begin = lambda self: 1 // 0
main()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_what_nobody_foresaw_is_no_finding():
    words = ["study", "audit", "--bootstrap", "127.0.0.1:1", "--topic", "t"]
    ran = subprocess.run(
        [sys.executable, "-c", BROKEN, *words], check=False, capture_output=True, text=True
    )
    assert ran.stderr.splitlines()[-1].startswith("ZeroDivisionError")
    assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "x"], "there is no topic x at 127.0.0.1:"),
        (["--topic", "t,u"], "--topic t,u: audit one topic at a time"),
        (["--topic", "t", "--once", "--for", "5"], "--once ends by itself; leave out --for"),
        *((["--topic", "t", "--for", each], f"--for {each}: write") for each in ("nan", "inf")),
        (["--topic", "t", "--for", "-1"], "'--for': -1.0 is not in the range x>=1"),
        (["--topic", "t", "--checkpoint", Path(__file__).parent], "holds no audit; name another"),
        (["--topic", "t", "--master", "sc://h:1"], "sc://h:1: an audit needs Spark's driver"),
        (["--topic", "t", "--checkpoint", __file__], f"--checkpoint {__file__} is a file; name"),
        (
            ["--topic", "t", "--bootstrap", "a..b:9092"],
            "'a..b:9092' is not an address; write HOST:PORT",
        ),
        (
            ["--topic", "t", "--bootstrap", ".h:9092"],
            "'.h:9092' is not an address; write HOST:PORT",
        ),
        (
            ["--topic", "t", "--bootstrap", f"{'h' * 64}:1"],
            "h:1' is not an address; write HOST:PORT",
        ),
        (
            ["--topic", "t", "--master", "spark://a..b:7077"],
            "spark://a..b:7077: a..b is not an address",
        ),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_mistake_is_one_line_and_status_2(cluster, arguments, said):
    where = ["--bootstrap", cluster.bootstrap_servers, "--timeout", 1]
    ran = ottla("study", "audit", *where, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
