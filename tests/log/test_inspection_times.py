"""Times of records: what is refused, what is stored, in which words; measured on Kafka 4.3.1.

`NOW` is the broker's clock. Each row is one batch, and what became of it on a topic with default
configs, on one with narrow limits (10 s behind, 5 s ahead), and on a LogAppendTime topic: numbers
of the records at fault, or the largest time in the header that is stored.
"""

import pytest

import log_kit as kit
from ottla.log.build import Codec, NewRecord, build_batch
from ottla.log.inspection import NO_CLOCK, UNLIMITED, Flaw, RecordRules, appended_at, inspect
from ottla.log.record_batch import BatchDefect, check_batch, crc_matches

NOW = 1_700_000_000_000
SECOND, HOUR = 1000, 3_600_000
FLAG = 8
ALL = 2**31
DEFAULT = RecordRules()
NARROW = RecordRules(before_max_ms=10 * SECOND, after_max_ms=5 * SECOND)
APPEND_TIME = RecordRules(append_time=True)


def batch(*times, codec=Codec.NONE, base=NOW, key=b"k", **header):
    """A batch with a record for each time, and header fields that may lie."""
    records = [NewRecord(b"v", key, timestamp=each) for each in times]
    data = build_batch(records, codec=codec, base_timestamp=base)
    if "attributes" in header:
        header["attributes"] |= codec
    return kit.parsed(kit.with_header(data, **header))


def fault(*numbers):
    return ("fault", *numbers)


# times, what else, then default, narrow, LogAppendTime (None: stored; the time is the broker's)
ROWS = {
    "now": ((NOW, NOW), {}, NOW, NOW, None),
    "2 h ahead": ((NOW + 2 * HOUR,), {}, fault(0), fault(0), None),
    "one of three ahead": ((NOW, NOW + 2 * HOUR, NOW), {}, fault(1), fault(1), None),
    "all three ahead": ((NOW + 2 * HOUR,) * 3, {}, fault(0, 1, 2), fault(0, 1, 2), None),
    "1 h ahead": ((NOW + HOUR,), {}, NOW + HOUR, fault(0), None),
    "1 h and 1 ms ahead": ((NOW + HOUR + 1,), {}, fault(0), fault(0), None),
    "5 s ahead": ((NOW + 5 * SECOND,), {}, NOW + 5 * SECOND, NOW + 5 * SECOND, None),
    "5001 ms ahead": ((NOW + 5001,), {}, NOW + 5001, fault(0), None),
    "10 s ago": ((NOW - 10 * SECOND,), {}, NOW - 10 * SECOND, NOW - 10 * SECOND, None),
    "10001 ms ago": ((NOW - 10_001,), {}, NOW - 10_001, fault(0), None),
    "header ahead": ((NOW,), {"max_timestamp": NOW + 2 * HOUR}, NOW, NOW, None),
    "header a little ahead": ((NOW,), {"max_timestamp": NOW + SECOND}, NOW, NOW, None),
    "header hides it": (
        (NOW, NOW + 2 * HOUR),
        {"max_timestamp": NOW},
        fault(1),
        fault(1),
        None,
    ),
    "header -1": ((NOW,), {"max_timestamp": -1}, NOW, NOW, None),
    "no times": ((-1, -1), {"base": -1}, -1, -1, None),
    "one without a time": ((-1, NOW), {}, NOW, NOW, None),
    "below -1": ((-5,), {"base": -5}, -1, fault(0), None),
    "zero": ((0,), {"base": 0}, 0, fault(0), None),
    "flag": ((NOW, NOW), {"attributes": FLAG}, NOW, NOW, fault(0, 1)),
    "flag, header 0": (
        (NOW,),
        {"attributes": FLAG, "max_timestamp": 0},
        0,
        fault(0),
        fault(0),
    ),
    "flag, header -1": (
        (NOW, NOW),
        {"attributes": FLAG, "max_timestamp": -1},
        fault(0, 1),
        fault(0, 1),
        fault(0, 1),
    ),
    "flag, header -2": (
        (NOW, NOW),
        {"attributes": FLAG, "max_timestamp": -2},
        -1,
        fault(0, 1),
        fault(0, 1),
    ),
    "flag, header ahead": (
        (NOW, NOW),
        {"attributes": FLAG, "max_timestamp": NOW + 2 * HOUR},
        fault(0, 1),
        fault(0, 1),
        fault(0, 1),
    ),
    "flag, record ahead": (
        (NOW + 2 * HOUR,),
        {"attributes": FLAG, "max_timestamp": NOW},
        NOW,
        NOW,
        fault(0),
    ),
}


def outcome(rules, sent, now=NOW):
    assert check_batch(sent, 1 << 20) is None
    found = inspect(sent, rules, now)
    if isinstance(found, Flaw):
        assert found.defect is BatchDefect.BAD_TIMES
        return fault(*(each.number for each in found.faults))
    assert crc_matches(found)
    assert found.data[61:] == sent.data[61:]
    return found


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(("rules", "column"), [(DEFAULT, 2), (NARROW, 3)])
@pytest.mark.parametrize("name", ROWS)
def test_with_the_producers_times(name, rules, column, codec):
    times, header, *_ = ROWS[name]
    sent = batch(*times, codec=codec, **header)
    found = outcome(rules, sent)
    if isinstance(found, tuple):
        assert found == ROWS[name][column]
    else:
        assert found.max_timestamp == ROWS[name][column]
        assert (found.attributes, found.base_timestamp) == (codec, sent.base_timestamp)
        changed = (found.max_timestamp, found.attributes) != (sent.max_timestamp, sent.attributes)
        assert changed is (found is not sent)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("name", ROWS)
def test_with_the_brokers_time(name, codec):
    times, header, *_, refused = ROWS[name]
    sent = batch(*times, codec=codec, **header)
    found = outcome(APPEND_TIME, sent)
    assert found == refused if refused else found is sent
    if not refused:
        sent.stamp(50, 3)
        stored = appended_at(sent, NOW + 7)
        assert (stored.max_timestamp, stored.attributes) == (NOW + 7, codec | FLAG)
        assert (stored.base_offset, stored.leader_epoch) == (50, 3)
        assert stored.base_timestamp == sent.base_timestamp
        assert crc_matches(stored)
        assert stored.data[61:] == sent.data[61:]


@pytest.mark.parametrize("name", ROWS)
def test_without_a_clock_no_time_is_early_or_late(name):
    times, header, *_ = ROWS[name]
    found = inspect(batch(*times, **header), NARROW, NO_CLOCK)
    assert isinstance(found, Flaw) is (name == "flag, header -1")


# ---- in Kafka's words

OUT_OF_RANGE = (
    "Timestamp {} of message with offset {} is out of range. The timestamp should be within "
    "[{}, {}]"
)
WRONG_TYPE = (
    "Invalid timestamp type in message {}. Producer should not set timestamp type to LogAppendTime."
)


def words(rules, sent):
    found = inspect(sent, rules, NOW)
    assert isinstance(found, Flaw)
    return [each.text for each in found.faults]


def test_a_time_out_of_range_is_named_with_the_range():
    late, early = NOW + 2 * HOUR, NOW - 2 * HOUR
    narrow = words(NARROW, batch(late, NOW, early))
    limits = (NOW - 10 * SECOND, NOW + 5 * SECOND)
    assert narrow == [
        OUT_OF_RANGE.format(late, 0, *limits),
        OUT_OF_RANGE.format(early, 2, *limits),
    ]
    default = words(DEFAULT, batch(NOW, late))
    assert default == [OUT_OF_RANGE.format(late, 1, NOW - UNLIMITED, NOW + HOUR)]


@pytest.mark.parametrize(("key", "size"), [(b"key", 3), (b"", 0), (None, -1)])
@pytest.mark.parametrize("codec", list(Codec))
def test_a_flag_that_only_the_broker_may_set_is_named_with_the_record(codec, key, size):
    kind = "PartialDefaultRecord" if codec else "DefaultRecord"
    sent = batch(NOW, codec=codec, key=key, attributes=FLAG)
    size = size if codec else max(size, 0)
    shown = f"{kind}(offset=0, timestamp={NOW}, key={size} bytes, value=1 bytes)"
    assert words(APPEND_TIME, sent) == [WRONG_TYPE.format(shown)]


def test_a_flag_of_the_broker_may_be_refused():
    """Kafka 2.8, and a topic that has the times of producers: every record is at fault."""
    flagged = batch(NOW, NOW, attributes=FLAG)
    found = inspect(flagged, RecordRules(flag_refused=True), NOW, max_bytes=ALL)
    assert isinstance(found, Flaw)
    assert [each.number for each in found.faults] == [0, 1]
    assert "should not set timestamp type" in found.faults[0].text
