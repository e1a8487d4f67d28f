"""What the demo reads back, while the cluster is not yet at rest."""

from confluent_kafka import KafkaError, KafkaException

from ottla.demo.collect import high_watermark
from ottla.demo.ledger import Ledger
from ottla.demo.producers import LastWords, unanswered


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
