"""The model of a topic with one client: what each of its answers must be.

A model is filled with a few batches, and asked about answers that are right, that are wrong in one
way, and that only a node may give which was deposed and does not know it.
"""

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import PartitionFetched, PartitionListed
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.sim.clients.topic_model import NOTHING, TopicModel, Written
from ottla.sim.world.batch import time_of
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.reference_model import SEQUENCES

DECODER = Decoder()


def model(*sizes, first=0):
    """A topic in which one producer wrote batches of so many records."""
    made, value = TopicModel(), 0
    made.began(7, first)
    for size in sizes:
        batch = Written(tuple(range(value, value + size)), 7, 0, made.next_seq)
        value += size
        made.writes(batch)
        made.stored(batch)
    return made


def read(batch, *, off=None, epoch=3):
    """That batch as a reader gets it."""
    found = read_batch(batch.encode())
    assert isinstance(found, RecordBatch)
    found.stamp(batch.off if off is None else off, epoch)
    return found


def fetched(made, batches, **columns):
    told = {"high_watermark": made.end, "log_start_offset": made.start, **columns}
    return PartitionFetched(0, ErrorCode.NONE, batches=tuple(batches), **told)


def wrong(made, off, found, *, sure=True, asked=None):
    return made.wrong_fetch(off, found, DECODER, asked or made.extent, sure=sure)


def test_batches_lie_one_behind_the_other_and_sequences_wrap():
    made = model(2, 3, first=SEQUENCES - 1)
    assert [(each.off, each.end) for each in made.batches] == [(0, 2), (2, 5)]
    assert (made.end, made.next_seq) == (5, 4)


def test_a_reader_gets_the_batch_that_holds_the_offset_and_those_behind_it():
    made = model(2, 3, 1)
    batches = [read(each) for each in made.batches]
    assert not wrong(made, 1, fetched(made, batches))
    assert not wrong(made, 2, fetched(made, batches[1:2]))
    assert wrong(made, 2, fetched(made, batches[:1])) == "batches 2-4"
    assert wrong(made, 2, fetched(made, [batches[1], batches[1]])) == "batches 2-4 5-5"
    assert wrong(made, 2, fetched(made, [])) == "a record"


def test_records_that_are_others_are_noticed():
    made = model(2)
    (batch,) = made.batches
    for other in (batch._replace(epoch=1), batch._replace(seq=9), batch._replace(values=(5, 6))):
        assert wrong(made, 0, fetched(made, [read(other)])) == "batches 0-1"
    assert wrong(made, 0, fetched(made, [read(batch, off=1)])) == "batches 0-1"


def test_the_epoch_of_a_stored_batch_never_changes():
    made = model(2)
    (batch,) = made.batches
    assert not wrong(made, 0, fetched(made, [read(batch, epoch=3)]))
    assert wrong(made, 0, fetched(made, [read(batch, epoch=4)]))
    assert made.wrong_time(
        (0, time_of(0)), PartitionListed(0, offset=0, timestamp=time_of(0)), sure=True
    )


def test_a_node_that_may_be_deposed_may_show_less_and_never_more():
    made = model(2, 3)
    first = read(made.batches[0])
    behind = fetched(made, [first], high_watermark=2)
    assert not wrong(made, 0, behind, sure=False)
    assert wrong(made, 0, behind) == "a high watermark of 5 to 5"
    assert wrong(made, 0, fetched(made, [first], high_watermark=6), sure=False)
    assert not made.wrong_end(True, PartitionListed(0, offset=2), sure=False)
    assert made.wrong_end(True, PartitionListed(0, offset=2), sure=True) == "5"
    assert made.wrong_end(True, PartitionListed(0, offset=6), sure=False) == "at most 5"


def test_what_is_being_written_may_be_read_and_need_not_be():
    made = model(2)
    made.writes(Written((2, 3), 7, 0, 2))
    (coming,) = made.coming
    both = [read(made.batches[0]), read(coming)]
    assert not wrong(made, 0, fetched(made, both, high_watermark=4))
    assert not wrong(made, 0, fetched(made, both[:1]))


def test_outside_of_the_log_nothing_is_read():
    made = model(2, 3)
    made.start = 3
    assert wrong(made, 2, fetched(made, [])).startswith("OFFSET_OUT_OF_RANGE")
    assert wrong(made, 6, fetched(made, [])).startswith("OFFSET_OUT_OF_RANGE")
    assert not wrong(made, 5, fetched(made, []))
    assert wrong(made, 3, fetched(made, [], log_start_offset=4), sure=False) == "a log start of 3"


def test_the_first_record_of_a_time_and_that_of_the_largest():
    made = model(2, 3, 2)
    times = [time_of(value) for value in range(7)]
    for time in {each + step for each in times for step in (-1, 0, 1)}:
        later = [(off, of) for off, of in enumerate(times) if of >= time]
        assert made.first_of(time) == (later[0] if later else NOTHING)
    largest = made.largest()
    assert largest == (times.index(max(times)), max(times))
    made.start = made.end
    assert made.largest() == made.first_of(0) == NOTHING


def test_only_batches_of_this_epoch_are_known_again():
    made = model(1, 1)
    batch = Written((2,), 7, 1, 0)
    made.writes(batch)
    made.stored(batch)
    assert [each.epoch for each in made.known_again()] == [1]


def test_nobody_is_known_in_a_topic_that_was_made_again():
    made = model(2)
    made.emptied()
    assert (made.end, made.pid, made.topics, made.ids) == (0, -1, 2, {7})
    assert made.largest() == NOTHING
