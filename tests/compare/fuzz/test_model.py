"""The model stores what a profile of Kafka's stores: else the generator stands far from borders."""

import pytest

from compare_kit import played
from ottla.broker.wire.api.table import TABLE
from ottla.broker.wire.codec import API_NAMES
from ottla.compare.fuzz.drawing import draw_sequence
from ottla.compare.fuzz.model import LAST_SEQUENCE, WINDOW, LogModel, Sent, after
from ottla.compare.fuzz.sketch import case_of

SERVED = {API_NAMES[each.key]: each.served for each in TABLE}


def test_sequences_wrap_to_zero():
    assert after(LAST_SEQUENCE, 1) == 0
    assert Sent(LAST_SEQUENCE - 1, 3).next == 1


@pytest.fixture
def log():
    """A log with six batches of producer 7 in epoch 2."""
    found = LogModel()
    for sequence in range(6):
        found.idempotent(7, 2, Sent(sequence, 1))
    assert found.end == 6
    return found


@pytest.mark.parametrize(
    ("epoch", "sent", "stored"),
    [
        (2, Sent(6, 2), 2),
        (2, Sent(7, 1), 0),
        (2, Sent(5, 1), 0),
        (2, Sent(0, 1), 0),
        (3, Sent(0, 1), 1),
        (3, Sent(6, 1), 0),
        (1, Sent(6, 1), 0),
    ],
)
def test_what_is_next_is_stored_and_what_is_not_is_not(log, epoch, sent, stored):
    log.idempotent(7, epoch, sent)
    assert log.end == 6 + stored


def test_of_a_producer_more_batches_are_remembered_than_kafka_knows(log):
    for sequence in range(6, 12):
        log.idempotent(7, 2, Sent(sequence, 1))
    assert len(log.producers[7].sent) == WINDOW + 2


def test_records_are_deleted_up_to_the_end_and_never_back(log):
    log.delete_below(4)
    log.delete_below(2)
    log.delete_below(99)
    assert log.start == 4
    log.delete_below(-1)
    assert log.start == 6


@pytest.mark.slow
def test_most_drawn_batches_are_stored_or_known_and_many_are_refused():
    """Else nearly all requests would be refused, and nothing would be compared but refusals."""
    codes = []
    for number in (1, 2):
        case = case_of(draw_sequence(3, number, SERVED), "drawn")
        for step, reply in zip(case.steps, played(case, "kafka-4.3").replies, strict=True):
            if getattr(step.ask, "api", "") == "produce":
                codes += [f.value for p, f in reply.fields.items() if p.endswith("].error_code")]
    assert 0.4 < codes.count("NONE") / len(codes) < 0.8
    assert len(set(codes)) > 5
