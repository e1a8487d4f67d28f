"""The file an audit goes on from: whole or refused, and everything in it comes back.

Also the two pure steps beside it: rows of a micro-batch put in order, and the line that matters of
an error of Spark's. No broker, no Spark.
"""

import signal
import subprocess
import sys

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sim.studies.audit.job import in_order, reason
from ottla.sim.studies.audit.ledger import Audit, keep, opened, reached, taken, told
from ottla.sim.studies.audit.sequences import Seen
from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.identity import parted
from ottla.sim.studies.topics.offsets import Bounds
from studies_topics import ANOMALIES, FOUND, SUMMARY, batch


def audited(batches=ANOMALIES):
    """An audit of batches as they would lie in a log, and its lines."""
    audit, lines, ends = Audit("t"), [], {0: 0, 1: 0}
    for sent in batches:
        size, base = len(sent.values), ends[sent.partition]
        ends[sent.partition] += size
        batch = Seen(base, base + size - 1, sent.producer, sent.epoch, sent.first, size)
        lines += [told("t", sent.partition, each) for each in audit.observe(sent.partition, batch)]
    return audit, lines


def kept(folder, audit):
    """The folder of an audit, with Spark's part beside it."""
    (folder / "stream" / "offsets").mkdir(parents=True)
    keep(folder, audit)
    return folder


def test_findings_and_summary_are_lines_that_say_where():
    audit, lines = audited()
    assert tuple(lines) == FOUND
    assert audit.told() == SUMMARY
    assert not audit.clean
    assert audited(ANOMALIES[:1])[0].clean


def test_what_only_came_late_is_not_missing():
    """Sequences 0, 2, 1."""
    audit, lines = audited([batch(0, 1, 0, 1), batch(0, 1, 2, 1), batch(0, 1, 1, 1)])
    assert [line.partition(" ")[0] for line in lines] == ["gap", "reorder"]
    assert audit.told().endswith(": 0 missing, 0 duplicated, 1 out of order")
    assert not audit.clean


def test_what_deletion_excused_and_came_late_hides_nothing_that_is_missing():
    """Of producer 1 five sequences come late that were never told; of producer 2 five never."""
    audit = Audit("t")
    for base, producer, first, size in (
        *((0, 1, 0, 5), (10, 1, 10, 5), (15, 1, 5, 5)),
        *((20, 2, 0, 1), (21, 2, 6, 1)),
    ):
        audit.observe(0, Seen(base, base + size - 1, producer, 0, first, size))
    assert ": 5 missing, 0 duplicated, 5 out of order; " in audit.told()


def test_an_audit_comes_back_as_it_was(tmp_path):
    audit, _ = audited()
    audit.batch, audit.topic_id = 17, "some id"
    assert opened(kept(tmp_path, audit), "t") == audit
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.msgpack", "stream"]


@given(st.integers(0, len(ANOMALIES)))
def test_an_audit_that_stops_anywhere_finds_the_same(tmp_path_factory, place):
    """Property: what comes back goes on as what was kept would have."""
    audit, _ = audited(ANOMALIES[:place])
    again = opened(kept(tmp_path_factory.mktemp("audit"), audit), "t")
    ends = {0: 0, 1: 0}
    for number, sent in enumerate(ANOMALIES):
        size, base = len(sent.values), ends[sent.partition]
        ends[sent.partition] += size
        batch = Seen(base, base + size - 1, sent.producer, sent.epoch, sent.first, size)
        if number >= place:
            again.observe(sent.partition, batch)
    assert again == audited()[0]


def test_a_new_folder_is_a_new_audit(tmp_path):
    assert opened(tmp_path / "a" / "b", "t") == Audit("t")


def test_an_audit_that_was_killed_before_it_counted_anything_is_begun_again(tmp_path):
    (tmp_path / "stream" / "offsets").mkdir(parents=True)
    (tmp_path / "ledger.new").touch()
    assert opened(tmp_path, "t") == Audit("t")


def older(file, version):
    """Have a ledger be as that version kept it."""
    _, _, body = msgpack.unpackb(file.read_bytes(), strict_map_key=False)
    topic, batch, partitions, *rest = msgpack.unpackb(body, strict_map_key=False)
    before = {}
    for number, (*fields, tails, epoch) in partitions.items():
        bare = {
            producer: (*each, [range_[:2] for range_ in missing])
            for producer, (*each, missing, _) in tails.items()
        }
        before[number] = (*fields, bare) if version == 2 else (*fields, bare, epoch)
    rest = rest[:-1] if version == 2 else rest
    file.write_bytes(msgpack.packb((version, topic, batch, before, *rest)))


@pytest.mark.parametrize("version", [2, 3])
def test_a_ledger_of_a_version_before_is_gone_on_with(tmp_path, version):
    audit, _ = audited()
    older(kept(tmp_path, audit) / "ledger.msgpack", version)
    again = opened(tmp_path, "t")
    late = Seen(14, 14, 2, 0, 2, 1)
    for each in (audit, again):
        each.observe(0, late)
    assert again.told() == audit.told()
    assert ": 0 missing, " in again.told()


@pytest.mark.parametrize("told", [False, True], ids=["nothing", "something"])
def test_one_that_may_have_taken_what_was_excused_for_told_is_refused(tmp_path, told):
    audit = Audit("t")
    for base, first in ((5, 5), (6, 4), (7, 6 + told)):
        audit.observe(0, Seen(base, base, 1, 0, first, 1))
    older(kept(tmp_path, audit) / "ledger.msgpack", 3)
    if told:
        with pytest.raises(SourceError, match="of another version"):
            opened(tmp_path, "t")
    else:
        assert opened(tmp_path, "t").told() == audit.told()


def test_what_an_audit_has_read_is_kept_as_offsets():
    audit, _ = audited()
    assert audit.kept == {"t": {"0": 14, "1": 14}}
    audit.topic_id = "some id"
    assert parted(audit.kept) == ({"t": {"0": 14, "1": 14}}, {"t": "some id"})


def test_what_was_deleted_before_it_was_audited_is_an_error():
    audit, _ = audited()
    audit.goes_on({0: Bounds(14, 30), 1: Bounds(0, 14)}, {0: 14, 1: 14})
    with pytest.raises(SourceError, match="t-0: records 14 to 19 were deleted before"):
        audit.goes_on({0: Bounds(20, 30), 1: Bounds(0, 14)}, {0: 14, 1: 14})


def test_what_was_deleted_of_a_partition_that_was_empty_is_an_error():
    """Partition 2 was empty when the stream came by, at 50; partition 3 came later."""
    audit, _ = audited()
    known, where = {0: Bounds(0, 14), 1: Bounds(0, 14)}, {0: 14, 1: 14, 2: 50}
    audit.goes_on({**known, 2: Bounds(50, 70), 3: Bounds(0, 9)}, where)
    with pytest.raises(SourceError, match="t-2: records 50 to 59 were deleted before"):
        audit.goes_on({**known, 2: Bounds(60, 70)}, where)
    with pytest.raises(SourceError, match="t-3: records 0 to 4 were deleted before"):
        audit.goes_on({**known, 2: Bounds(50, 70), 3: Bounds(5, 9)}, where)


def test_offsets_that_were_read_and_have_no_batch_may_be_deleted():
    """As of a log whose last batches compaction took before they were read."""
    audit, _ = audited()
    audit.goes_on({0: Bounds(20, 30), 1: Bounds(0, 14)}, {0: 20, 1: 14})


def test_how_far_the_stream_has_come_is_in_what_spark_wrote_down(tmp_path):
    audit, _ = audited()
    audit.batch = 7
    offsets = kept(tmp_path, audit) / "stream" / "offsets"
    for number, end in ((6, 0), (7, 14), (8, 90)):
        text = f'v1\n{{"conf":{{}}}}\n{{"t": {{"0": {end}, "2": 50}}, "topic ids": {{"t": "x"}}}}'
        (offsets / str(number)).write_text(text)
    assert reached(tmp_path, audit) == {0: 14, 2: 50}
    for damage in ("", "v1\n{}\n-", 'v1\n{}\n{"t": 3}', 'v1\n{}\n{"u": {"0": 1}}', "v1\n{}\n3"):
        (offsets / "7").write_text(damage)
        with pytest.raises(SourceError, match=r"offsets/7 is damaged; audit with a new --check"):
            reached(tmp_path, audit)
    (offsets / "7").unlink()
    with pytest.raises(SourceError, match="stream has lost its micro-batch 7; audit with a new"):
        reached(tmp_path, audit)


def test_epochs_of_leaders_that_fall_are_of_another_topic():
    audit = Audit("t")
    for offset, epoch in ((0, 4), (1, 5), (2, -1), (3, 5)):
        audit.observe(0, Seen(offset, offset, 1, 0, offset, 1, epoch))
    audit.observe(1, Seen(0, 0, 1, 0, 0, 1, 1))
    with pytest.raises(SourceError, match="t-0: leader epoch 2 at offset 4 comes behind 5: "):
        audit.observe(0, Seen(4, 4, 1, 0, 4, 1, 2))


@pytest.mark.slow
def test_a_bit_that_has_flipped_is_damage_wherever_it_is(tmp_path):
    """A third of them were read without complaint, some with other counts."""
    audit, _ = audited()
    folder = kept(tmp_path / "one", audit)
    file = folder / "ledger.msgpack"
    data = file.read_bytes()
    for bit in range(16, 8 * len(data)):
        rotten = bytearray(data)
        rotten[bit // 8] ^= 1 << bit % 8
        file.write_bytes(rotten)
        with pytest.raises(SourceError, match="is damaged"):
            opened(folder, "t")
    file.write_bytes(data)
    assert opened(folder, "t") == audit


def test_what_is_not_this_audit_is_refused_in_one_line(tmp_path):
    audit, _ = audited()
    folder = kept(tmp_path / "one", audit)
    with pytest.raises(SourceError, match="is an audit of topic t, not of u"):
        opened(folder, "u")
    (folder / "stream" / "offsets").rmdir()
    with pytest.raises(SourceError, match="has lost its stream"):
        opened(folder, "t")
    data = (folder / "ledger.msgpack").read_bytes()
    for damage in (data[:-1], b"", b"\xc1", data + b"x"):
        (folder / "ledger.msgpack").write_bytes(damage)
        with pytest.raises(SourceError, match="is damaged"):
            opened(folder, "t")
    (folder / "ledger.msgpack").write_bytes(b"\x93\x01" + data[2:])
    with pytest.raises(SourceError, match="of another version"):
        opened(folder, "t")
    other = tmp_path / "other"
    (other / "stream" / "commits" / "0").mkdir(parents=True)
    with pytest.raises(SourceError, match="has lost its ledger"):
        opened(other, "t")
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=f"{tmp_path} is not empty and holds no audit; name"):
        opened(tmp_path, "t")
    with pytest.raises(SourceError, match=r"--checkpoint .*file is a file; name a folder"):
        opened(tmp_path / "file", "t")


def test_a_ledger_behind_what_spark_has_committed_is_refused(tmp_path):
    """What lies between is never played again, and would be missed by nobody."""
    audit, _ = audited()
    audit.batch = 9
    commits = kept(tmp_path, audit) / "stream" / "commits"
    commits.mkdir()
    for name in ("8", "9", ".10.crc", ".10.some-id.tmp"):
        (commits / name).touch()
    assert opened(tmp_path, "t") == audit
    (commits / "10").touch()
    with pytest.raises(SourceError, match=r"is older than its stream, .* 10 where 9 .*new --check"):
        opened(tmp_path, "t")


def test_a_checkpoint_is_for_one_audit_at_a_time(tmp_path):
    held = taken(tmp_path)
    with pytest.raises(SourceError) as refused:
        taken(tmp_path)
    assert str(refused.value) == f"{tmp_path}: another process uses this audit; wait, or end it"
    assert opened(tmp_path, "t") == Audit("t"), "a lock is nothing strange"
    held.close()
    taken(tmp_path).close()


@pytest.mark.slow
def test_who_was_killed_holds_no_checkpoint(tmp_path):
    program = (
        "import sys; from pathlib import Path; from ottla.sim.studies.audit.ledger import taken; "
        "held = taken(Path(sys.argv[1])); print('taken', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        with pytest.raises(SourceError, match="another process uses this audit"):
            taken(tmp_path)
        process.send_signal(signal.SIGKILL)
    taken(tmp_path).close()


def test_a_folder_of_something_else_gets_no_lock(tmp_path):
    (tmp_path / "letter.txt").touch()
    with pytest.raises(SourceError, match="is not empty and holds no audit; name another"):
        taken(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_rows_come_in_the_order_of_the_log():
    rows = pa.table(
        {
            "partition": [1, 0, 0, 0],
            "base_offset": [0, 7, 0, 5],
            "last_offset": [3, 7, 4, 6],
            "records": [4, 1, 5, 2],
            "producer_id": [9, 9, None, 9],
            "producer_epoch": [1, 0, None, 0],
            "base_sequence": [4, None, None, 2],
            "leader_epoch": [3, 1, 0, 1],
        }
    )
    assert list(in_order(rows)) == [
        (0, Seen(0, 4, -1, -1, -1, 5, 0, 5)),
        (0, Seen(5, 6, 9, 0, 2, 2, 1, 2)),
        (0, Seen(7, 7, -1, -1, -1, 0, 1)),  # the mark of a transaction
        (1, Seen(0, 3, 9, 1, 4, 4, 3, 4)),
    ]


@pytest.mark.parametrize("producer", [9, None])
def test_records_that_compaction_removed_from_a_batch_are_not_counted(producer):
    """Their sequences are: the next one that is due comes behind them."""
    numbers = [None, None] if producer is None else [0, 10]
    rows = pa.table(
        {
            "partition": [0, 0],
            "base_offset": [0, 10],
            "last_offset": [9, 10],
            "records": [2, 1],
            "producer_id": [producer, producer],
            "producer_epoch": [None if producer is None else 0] * 2,
            "base_sequence": numbers,
            "leader_epoch": [0, 0],
        }
    )
    audit = Audit("t")
    assert [each for _, batch in in_order(rows) for each in audit.observe(0, batch)] == []
    ledger = audit.partitions[0]
    assert ledger.sequenced + ledger.plain == 3
    assert ledger.absent == 0


def test_of_what_spark_says_the_line_that_matters_is_kept():
    text = (
        "Job aborted\nTraceback\nottla.sim.studies.topics.asked.SourceError: t is gone\n SQLSTATE"
    )
    assert reason(text) == "t is gone"
    assert reason("Something\nelse") == "Something"
    lost = "t-0: records 5 to 9 are gone, the log starts at 10; "
    assert reason(f"Traceback\nasked.DataLossError: {lost}failOnDataLoss=false goes on there") == (
        f"{lost}audit with a new --checkpoint"
    )
