"""The demo's proof finds what it is there to find: each check, with a sound log and a broken one.

A proof that cannot fail proves nothing, so every kind of damage is done to a sound set of evidence
and must turn up in the one verdict that is about it, by name.
"""

import pytest

from ottla.demo import audit
from ottla.demo.audit import Claims, Evidence, LogEntry
from ottla.demo.ledger import Ack, make_value
from ottla.sim.studies.audit.sequences import Finding, Kind

SENT = [make_value("p", 0, number) for number in range(6)]
OTHER = [make_value("q", 0, number) for number in range(2)]


def evidence(**changes):
    """Two producers, eight records, three replicas; `changes` replace parts of it."""
    log = dict(enumerate([SENT[0], OTHER[0], *SENT[1:4], OTHER[1], *SENT[4:]]))
    offsets = {value: offset for offset, value in log.items()}
    entries = [LogEntry(index, 1, "BATCH", bytes([index])) for index in range(1, 5)]
    claims = [
        Claims("p", SENT, [Ack(value, offsets[value]) for value in SENT]),
        Claims("q", OTHER, [Ack(value, offsets[value]) for value in OTHER]),
    ]
    replicas = dict.fromkeys((1, 2, 3), entries)
    return Evidence(0, claims, log, replicas, sorted(log.items()))._replace(**changes)


def swapped(records, one, other):
    """`records` with two values in each other's place."""
    return records | {one: records[other], other: records[one]}


def failing(found):
    """Names of the checks that do not hold."""
    return [each.check for each in audit.examine([found], idempotent=True) if not each.passed]


def test_sound_evidence_passes_every_check():
    assert failing(evidence()) == []
    assert len(audit.examine([evidence()], idempotent=True)) == 6


def test_a_lost_record_is_found():
    log = {offset: value for offset, value in evidence().log.items() if value != SENT[3]}
    found = evidence(log=log, consumed=sorted(log.items()))
    assert failing(found) == ["Nothing acknowledged is lost"]
    (verdict, *_) = audit.examine([found], idempotent=True)
    assert verdict.violations == 1
    assert "p/0/3" in verdict.shown[0]
    assert audit.lost_messages([found]) == [(0, Ack(SENT[3], 4))]


def test_a_gap_in_the_sequences_of_the_log_is_out_of_order():
    """What `ottla study audit` would tell of the topic: all values are there, some sequence not."""
    gap = Finding(Kind.GAP, 7, 0, 3, 4, 2, 5)
    (_, _, order, *_) = audit.examine([evidence(findings=[gap])], idempotent=True)
    assert order.shown == (
        "gap demo-0 producer 7 epoch 0: sequences 3 to 4, 2 missing before offset 5",
    )
    assert failing(evidence(findings=[gap])) == [order.check]


def test_a_record_at_another_than_its_acknowledged_offset_counts_as_lost():
    sound = evidence()
    claims = [sound.claims[0]._replace(acked=[Ack(SENT[0], 7)]), sound.claims[1]]
    assert failing(evidence(claims=claims)) == ["Nothing acknowledged is lost"]


def test_a_doubled_record_is_found():
    log = evidence().log | {8: SENT[5]}
    found = evidence(log=log, consumed=sorted(log.items()))
    assert failing(found) == ["Nothing is stored twice"]
    assert audit.twice(log) == {SENT[5]: [7, 8]}


def test_reordered_records_are_found_though_all_are_there():
    log = swapped(evidence().log, 2, 3)
    offsets = {value: offset for offset, value in log.items()}
    claims = [Claims("p", SENT, [Ack(value, offsets[value]) for value in SENT])]
    claims.append(Claims("q", OTHER, [Ack(value, offsets[value]) for value in OTHER]))
    found = evidence(log=log, claims=claims, consumed=sorted(log.items()))
    assert failing(found) == ["Nothing is out of order"]
    assert audit.disordered(log, SENT) == [(3, SENT[1])]


def test_two_producers_may_be_interleaved_in_any_way():
    log = swapped(swapped(evidence().log, 0, 1), 4, 5)
    assert audit.disordered(log, SENT) == []
    assert audit.disordered(log, OTHER) == []


def test_a_record_that_nobody_sent_is_found():
    log = evidence().log | {8: b"phantom"}
    assert failing(evidence(log=log, consumed=sorted(log.items()))) == [
        "Nothing was stored that nobody sent"
    ]


def test_a_refused_record_that_was_stored_is_found():
    sound = evidence()
    claims = [sound.claims[0]._replace(refused=[SENT[5]]), sound.claims[1]]
    assert failing(evidence(claims=claims)) == ["Nothing was stored that nobody sent"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: log[:-1],
        lambda log: [*log[:-1], LogEntry(4, 1, "BATCH", b"x")],
        lambda log: [*log[:-1], LogEntry(4, 2, "BATCH", log[3].digest)],
        lambda log: [*log[:-1], LogEntry(4, 1, "COMMAND", log[3].digest)],
    ],
    ids=["shorter", "other bytes", "other term", "other kind"],
)
def test_a_replica_that_differs_is_found(damage):
    replicas = dict(evidence().replicas)
    replicas[3] = damage(list(replicas[3]))
    assert failing(evidence(replicas=replicas)) == ["All replicas hold the same log"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda read: read[:-1],
        lambda read: [read[1], read[0], *read[2:]],
        lambda read: [*read, read[-1]],
        lambda read: [(0, b"else"), *read[1:]],
        lambda read: [*read, (8, b"beyond")],
    ],
    ids=["misses one", "other order", "one twice", "other value", "one too many"],
)
def test_a_consumer_that_saw_something_else_is_found(damage):
    found = evidence(consumed=damage(evidence().consumed))
    assert "The consumer read what the log holds" in failing(found)


def test_acknowledged_without_an_offset_is_lost_only_when_no_consumer_finds_it():
    sound = evidence()
    claims = [sound.claims[0]._replace(acked=[Ack(SENT[0], None), Ack(b"gone", None)])]
    assert audit.lost_messages([evidence(claims=claims)]) == [(0, Ack(b"gone", None))]


def test_all_violations_are_counted_and_the_first_are_shown():
    found = evidence(log={}, consumed=[])
    (verdict, *_) = audit.examine([found], idempotent=True)
    assert verdict.violations == 8
    many = audit.verdict("check", "what", [str(number) for number in range(100)])
    assert (many.violations, len(many.shown)) == (100, audit.SHOWN)


def test_plain_producers_are_not_held_to_what_they_do_not_promise():
    checks = [each.check for each in audit.examine([evidence()], idempotent=False)]
    assert checks == [
        "Nothing was stored that nobody sent",
        "All replicas hold the same log",
        "The consumer read what the log holds",
    ]
