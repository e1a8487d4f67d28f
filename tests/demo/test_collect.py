"""What the demo reads back, while the cluster is not yet at rest."""

from confluent_kafka import KafkaError, KafkaException

from ottla.demo.collect import Logs, Stored, high_watermark
from ottla.demo.ledger import Ledger
from ottla.demo.producers import LastWords, unanswered
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, EntryKind
from ottla.sim.studies.audit.sequences import Kind


class Consumer:
    """Has no high watermark for the first so many questions."""

    def __init__(self, failures):
        self.failures = failures

    def get_watermark_offsets(self, place, *, timeout):
        assert (place, timeout > 0) == ("here", True)
        if self.failures:
            self.failures -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return 3, 17


def test_an_election_while_the_ends_are_asked_for_ends_no_run():
    """On a machine with much other work a leader moved in that moment, and the demo ended with a
    traceback."""
    assert high_watermark(Consumer(2), "here") == 17


def test_who_never_learns_of_an_end_reads_nothing():
    assert high_watermark(Consumer(100), "here", seconds=0.3) == 0


def test_records_without_an_answer_are_told_with_their_places_and_the_clients_last_lines():
    ledger = Ledger("confluent", 2)
    ledger.next_value(1)
    assert unanswered(ledger, 1) == (
        "1 records without an answer after 30 s (not acknowledged, by partition: 0, 1)"
    )
    words = LastWords()
    for number in range(7):
        words.logger().warning("line %d", number)
    assert list(words.lines) == [f"line {number}" for number in range(2, 7)]


def batch(base_offset, sequence, values):
    """An entry with a batch of producer 7, as a leader of term 1 stored it."""
    data = build_batch(values, producer_id=7, producer_epoch=0, base_sequence=sequence)
    made = read_batch(data)
    assert isinstance(made, RecordBatch)
    made.stamp(base_offset, 1)
    return Entry(base_offset + 1, 1, EntryKind.BATCH, made)


def test_the_sequences_of_what_the_leader_stored_are_audited():
    entries = [batch(0, 0, [b"a", b"b"]), batch(2, 3, [b"d"]), batch(3, 3, [b"d"])]
    logs = Logs([Stored(1, {1: entries})])
    assert [each.kind for each in logs.findings[0]] == [Kind.GAP, Kind.DUPLICATE]
    assert (logs.records, logs.batches) == ([{0: b"a", 1: b"b", 2: b"d", 3: b"d"}], 3)
