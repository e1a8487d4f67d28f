"""Topics read over the wire and from a data folder, without Spark: ranges, faults, refusals.

What is read is compared with what was sent, byte by byte, through dead leaders, deleted records and
offsets cut anywhere; whatever keeps a topic from being read is one line.
"""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from clients_confluent import ConfluentKit
from ottla import Cluster, Topic
from ottla.sim.studies.topics.asked import DataLossError, SourceError, asked
from ottla.sim.studies.topics.folder import FolderTopics
from ottla.sim.studies.topics.identity import joined, parted
from ottla.sim.studies.topics.offsets import Bounds, Range
from ottla.sim.studies.topics.reading import Stream, batch_ranges, present, rows
from ottla.sim.studies.topics.wire import WireTopics
from studies_between import between
from studies_topics import batch, plain, write

BATCHES = [batch(0, 1, 0, 10), plain(0, 3), batch(0, 1, 10, 10), batch(1, 1, 0, 5)]
CHILD = """
import sys
from ottla.sim.studies.topics.asked import asked
from ottla.sim.studies.topics.reading import batch_ranges, rows
wanted = asked({"topic": "t", "path": sys.argv[1]})
print(sum(each.num_rows for r in batch_ranges(wanted) for each in rows(wanted, r)))
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=3, topics=[Topic("t", partitions=2)]) as running:
        write(running, "t", BATCHES)
        yield running


def values(options, column="value"):
    wanted = asked({"topic": "t", **options})
    return [
        value
        for each in batch_ranges(wanted)
        for table in rows(wanted, each)
        for value in table.column(column).to_pylist()
    ]


def expected(partition):
    return [value for sent in BATCHES if sent.partition == partition for value in sent.values]


@pytest.mark.parametrize("per_task", [1, 4, 1000])
def test_a_cluster_is_read_whole_however_it_is_cut(cluster, per_task):
    where = {"bootstrap": cluster.bootstrap_servers, "maxRecordsPerPartition": str(per_task)}
    assert values(where) == expected(0) + expected(1)
    assert values({**where, "rows": "batches"}, "base_offset") == [0, 10, 13, 0]


def test_offsets_that_are_asked_for_are_read(cluster):
    where = {"bootstrap": cluster.bootstrap_servers}
    part = {
        "startingOffsets": '{"t": {"0": 8, "1": -1}}',
        "endingOffsets": '{"t": {"0": 15, "1": -1}}',
    }
    assert values({**where, **part}, "offset") == list(range(8, 15))
    assert values({**where, "startingOffsets": "latest"}) == []


def test_a_batch_that_would_end_before_it_starts_is_refused(cluster):
    where = {"bootstrap": cluster.bootstrap_servers, "endingOffsets": '{"t": {"0": 8, "1": -1}}'}
    with pytest.raises(SourceError, match="t-0: startingOffsets say 15 and endingOffsets say 8,"):
        values({**where, "startingOffsets": '{"t": {"0": 15, "1": 0}}'})
    with pytest.raises(SourceError, match="t-0: startingOffsets say 23 and endingOffsets say 8,"):
        values({**where, "startingOffsets": "latest"})
    assert values({**where, "startingOffsets": '{"t": {"0": 8, "1": -1}}'}) == []


def test_any_live_broker_of_the_list_will_do(cluster):
    assert len(values({"bootstrap": f"127.0.0.1:1,{cluster.bootstrap_servers}"})) == 28


@pytest.mark.slow
def test_what_is_not_there_is_said_in_one_line(cluster):
    first = cluster.bootstrap_servers.partition(",")[0]
    for options, said in (
        (
            {"topic": "x", "bootstrap": first, "timeout": "1"},
            f"there is no topic x at {first}; there are t",
        ),
        ({"topic": "a b", "bootstrap": first}, "'a b' is not a name of a topic"),
        (
            {"bootstrap": "127.0.0.1:1", "timeout": "1"},
            "offsets of t: no answer within 1 s from 127.0.0.1:1: Connection refused; start a",
        ),
    ):
        with pytest.raises(SourceError) as refused:
            values(options)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_host_that_has_no_address_and_a_cluster_without_topics_are_said_in_one_line(monkeypatch):
    def unknown(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    with (
        Cluster(nodes=1) as running,
        pytest.raises(SourceError, match=r"^there is no topic t at .*; create it first: there"),
    ):
        values({"bootstrap": running.bootstrap_servers, "timeout": "1"})
    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(SourceError, match=r"from h:1: Name or service not known; start a b"):
        values({"bootstrap": "h:1", "timeout": "1"})


def test_a_broker_that_names_others_by_what_is_no_address_is_said_in_one_line():
    def elsewhere(_, __, answer):
        return answer.replace(b"127.0.0.1", b"a..b.c.d.")

    with (
        Cluster(nodes=1, topics=[Topic("t")]) as running,
        between(running.addresses[1], elsewhere) as address,
        pytest.raises(SourceError, match=r": a\.\.b\.c\.d\.:\d+ is not an address$"),
    ):
        values({"bootstrap": f"127.0.0.1:{address[1]}", "timeout": "1"})


def test_a_peer_that_is_no_broker_is_said_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(SourceError, match="offsets of t: no answer within 1 s"):
            values({"bootstrap": f"127.0.0.1:{port}", "timeout": "1"})


def test_records_that_were_deleted_are_an_error_unless_that_is_fine():
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 10), batch(0, 1, 10, 10)])
        ConfluentKit().delete_records(running.bootstrap_servers, "t", 0, 12)
        where = {"bootstrap": running.bootstrap_servers}
        assert values(where, "offset") == list(range(12, 20))
        end = {"endingOffsets": '{"t": {"0": 9}}'}
        with pytest.raises(
            SourceError, match="t-0: startingOffsets say 12 and endingOffsets say 9"
        ):
            values({**where, **end})
        assert values({**where, **end, "failOnDataLoss": "false"}) == []
        start = {"startingOffsets": '{"t": {"0": 3}}'}
        with pytest.raises(DataLossError, match="t-0: records 3 to 11 are gone"):
            values({**where, **start})
        found = values({**where, **start, "failOnDataLoss": "false"}, "offset")
        assert found == list(range(12, 20))
        (row,) = values({**where, "rows": "batches"}, "base_offset")
        assert row == 10  # its front was deleted; it is a batch all the same


def test_a_range_is_read_through_the_death_of_its_leader():
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[1, 2, 3]])]) as running:
        write(running, "t", [batch(0, 1, 5 * n, 5) for n in range(40)])
        topics = WireTopics([running.addresses[1], running.addresses[2]])
        seen = []
        for number, (_, each) in enumerate(topics.read(Range("t", 0, 0, 300))):
            seen.append(each.base_offset)
            if number == 20:
                running.kill(1)
                write(running, "t", [batch(0, 1, 200 + 5 * n, 5) for n in range(20)])
        topics.close()
        assert seen == list(range(0, 300, 5))


def test_bounds_wait_for_a_leader():
    with Cluster(nodes=3, topics=[Topic("t", assignment=[[1, 2, 3]])]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        topics = WireTopics([running.addresses[2]])
        assert topics.bounds("t") == {0: Bounds(0, 5)}
        running.kill(1)
        assert topics.bounds("t") == {0: Bounds(0, 5)}
        topics.close()


# ---- folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    with Cluster(nodes=3, data_dir=path, topics=[Topic("t", partitions=2)]) as running:
        write(running, "t", BATCHES)
        running.create_topic("gone")
        running.delete_topic("gone")
        running.create_topic("elsewhere", assignment=[[3]])
        live = subprocess.run(
            [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False
        )
        assert live.stdout == "28\n", live.stderr
    return path


@pytest.mark.parametrize("per_task", [1, 4, 1000])
@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_folder_is_read_whole_on_every_node(folder, node, per_task):
    where = {"path": str(folder), "node": str(node), "maxRecordsPerPartition": str(per_task)}
    assert values(where) == expected(0) + expected(1)


def test_what_a_folder_has_not_is_said_in_one_line(folder, tmp_path):
    for options, said in (
        ({"path": str(tmp_path)}, "has no node-1; name a folder of `ottla up --data-dir`"),
        ({"path": str(folder), "node": "9"}, "has no node-9"),
        ({"path": str(folder), "topic": "gone"}, "there is no topic gone"),
        ({"path": str(folder), "topic": "elsewhere"}, "node 1 has no replica of elsewhere-0"),
    ):
        with pytest.raises(SourceError) as refused:
            values(options)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
    (tmp_path / "node-1").mkdir()
    with pytest.raises(SourceError, match="holds no log"):
        values({"path": str(tmp_path)})


def test_a_folder_whose_front_was_deleted_begins_behind_it(tmp_path):
    topic = Topic("t", configs={"max.message.bytes": "2000"})
    with Cluster(nodes=1, data_dir=tmp_path, topics=[topic]) as running:
        write(running, "t", [batch(0, 1, 10 * n, 10) for n in range(30)])
        ConfluentKit().delete_records(running.bootstrap_servers, "t", 0, 155)
        time.sleep(0.2)
    where = {"path": str(tmp_path)}
    assert present(asked({"topic": "t", **where})).bounds["t"] == {0: Bounds(155, 300)}
    assert values(where, "offset") == list(range(155, 300))
    with pytest.raises(DataLossError, match="t-0: records 100 to 154 are gone"):
        values({**where, "startingOffsets": '{"t": {"0": 100}}'})


def test_a_log_that_became_shorter_is_an_error(folder):
    topics = FolderTopics(str(folder), 1)
    with pytest.raises(SourceError, match=r"t-1 ends at 5 in .*node-1, and was longer"):
        list(topics.read(Range("t", 1, 0, 9)))
    topics.close()


def test_reading_writes_nothing(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("data.mdb")}
    values({"path": str(folder)})
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("data.mdb")}
    assert os.access(folder, os.W_OK)


# ---- streams


def ask(cluster, **options):
    return asked({"topic": "t", "bootstrap": cluster.bootstrap_servers, **options})


def topic_id(cluster):
    return {"t": WireTopics([cluster.addresses[1]]).topic_id("t")}


def test_a_stream_walks_in_bounded_steps_with_and_without_being_told_where_it_is(cluster):
    end = {"t": {"0": 23, "1": 5}}
    remembering = Stream(ask(cluster, maxRecordsPerBatch="10"))
    told = Stream(ask(cluster, maxRecordsPerBatch="10"))
    at = remembering.first()
    steps = [parted(at)[0]]
    while steps[-1] != end:
        following = remembering.next(None)
        assert following == told.next(at)
        steps.append(parted(following)[0])
        at = following
    assert steps == [
        {"t": {"0": 0, "1": 0}},
        {"t": {"0": 5, "1": 5}},
        {"t": {"0": 15, "1": 5}},
        end,
    ]
    assert remembering.next(None) == at
    assert parted(at)[1] == topic_id(cluster)


def test_a_stream_goes_on_after_a_restart_where_its_ranges_ended(cluster):
    again = Stream(ask(cluster, maxRecordsPerBatch="10"))
    latest = {"t": {"0": 15, "1": 5}}
    assert again.ranges(latest, latest) == []  # Spark before 4.2 says so where it is
    end = {"t": {"0": 23, "1": 5}}
    assert again.next(None) == joined(end, topic_id(cluster)), "from when on there are ids"


def test_a_frozen_stream_ends_where_the_topic_ended():
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        stream = Stream(ask(running))
        stream.freeze()
        write(running, "t", [batch(0, 1, 5, 5)])
        for start in (0, 5):
            assert parted(stream.next({"t": {"0": start}}))[0] == {"t": {"0": 5}}


def test_a_topic_that_is_shorter_than_what_was_read_is_an_error_in_the_end(cluster):
    now = [0.0]
    stream = Stream(ask(cluster), clock=lambda: now[0])
    beyond = joined({"t": {"0": 50, "1": 5}}, topic_id(cluster))
    assert stream.next(beyond) == beyond
    now[0] = 9.0
    assert stream.next(beyond) == beyond
    now[0] = 11.0
    with pytest.raises(SourceError, match="t-0 ends at 23, though it was read to 50: records that"):
        stream.next(beyond)


@pytest.mark.slow
def test_a_frozen_stream_does_not_end_well_where_the_topic_is_shorter(cluster):
    now = [0.0]

    def pass_by(seconds):
        now[0] += seconds

    stream = Stream(ask(cluster), clock=lambda: now[0], pause=pass_by)
    stream.freeze()
    with pytest.raises(SourceError, match="t-0 ends at 23, though it was read to 50: records that"):
        stream.next({"t": {"0": 50, "1": 5}})
    assert now[0] >= 10, "it may be for a moment only"


@pytest.mark.parametrize("frozen", [False, True])
def test_a_topic_that_was_made_anew_is_another_one_however_long_it_is(frozen):
    with Cluster(nodes=1, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
        stream = Stream(ask(running))
        at = stream.next(stream.first())
        (under_way,) = stream.ranges({"t": {"0": 0}}, at)
        running.delete_topic("t")
        running.create_topic("t")
        write(running, "t", [batch(0, 1, 0, 50)])
        if frozen:
            stream.freeze()
        for read in (lambda: stream.next(at), lambda: list(rows(ask(running), under_way))):
            with pytest.raises(SourceError, match="topic t is another one than was read"):
                read()


def test_a_topic_that_was_made_anew_is_another_one_in_a_folder_too(tmp_path):
    where = {"topic": "t", "path": str(tmp_path)}
    with Cluster(nodes=1, data_dir=tmp_path, topics=[Topic("t")]) as running:
        write(running, "t", [batch(0, 1, 0, 5)])
    stream = Stream(asked(where))
    at = stream.next(stream.first())
    (under_way,) = stream.ranges({"t": {"0": 0}}, at)
    with Cluster(nodes=1, data_dir=tmp_path) as running:
        running.delete_topic("t")
        running.create_topic("t")
        write(running, "t", [batch(0, 1, 0, 50)])
    for read in (lambda: stream.next(at), lambda: list(rows(asked(where), under_way))):
        with pytest.raises(SourceError, match="topic t is another one than was read"):
            read()
