"""What clients may be told, and what not.

Entry A holds 2 records and B 3, so offsets and indexes cannot be mixed up: after the entry that
names the voters and the leader's empty one, A is entry 3 and ends at offset 2.
"""

from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.trace import Entry
from sim_traces import LAG, Traced, led, refuses

A, B = Entry(1, 11, 2), Entry(1, 12, 3)
GAP, RANGE = "OUT_OF_ORDER_SEQUENCE_NUMBER", "OFFSET_OUT_OF_RANGE"


def test_a_batch_is_confirmed_to_all_when_it_is_committed():
    traced = led(A)
    traced.append(1, B)
    ref = traced.ask(1, acks=-1)
    with refuses("offset 2 is not committed, only all below 2"):
        traced.answer(1, ref, "produce", offset=2, placed=True)
    traced.copy(1, 2, 1, after=3)
    traced.commit(1, 4)
    traced.answer(1, traced.ask(1, acks=-1), "produce", offset=2, placed=True)


def test_a_batch_is_confirmed_to_one_when_it_is_in_the_log():
    traced = led(A)
    with refuses("its log ends at offset 2"):
        traced.answer(1, traced.ask(1, acks=1), "produce", offset=2)
    traced.write(1, first=4, entries=(B,))
    traced.answer(1, traced.ask(1, acks=1), "produce", offset=2)


def test_only_a_leader_confirms():
    traced = led(A)
    with refuses("it does not lead"):
        traced.answer(2, traced.ask(2, acks=1), "produce")
    traced.answer(2, traced.ask(2, acks=1), "produce", "NOT_LEADER_OR_FOLLOWER")


def test_a_leader_serves_when_an_entry_of_its_term_is_committed():
    traced = led(A)
    traced.elect(2, 2, 3)
    for ref, what in ((traced.ask(2), "fetch"), (traced.ask(2, acks=1), "produce")):
        with refuses("no entry of its own term 2 is committed"):
            traced.answer(2, ref, what)
    traced.copy(2, 3, 2, after=3)
    traced.commit(2, 4)
    traced.answer(2, traced.ask(2), "fetch", offset=2, last=3)


def test_readers_see_what_is_committed():
    traced = led(A)
    traced.append(1, B)
    traced.answer(1, traced.ask(1), "fetch", offset=2, last=3)
    with refuses("it shows offsets below 5, it may show those below 2"):
        traced.answer(1, traced.ask(1), "fetch", offset=5, last=3)
    with refuses("it gives entry 4, readers may see 3 entries"):
        traced.answer(1, traced.ask(1), "fetch", offset=2, last=4)
    with refuses("it shows offsets below 5"):
        traced.answer(1, traced.ask(1), "latest", offset=5)


def test_an_entry_without_records_shows_readers_nothing():
    """Seed 65: a leader's first entry was given while readers had to wait for a silent replica."""
    traced = led(A)
    traced.elect(2, 2, 3)
    ref = traced.ask(2, minimum=3)
    traced.now += 3 * LAG  # node 1 is silent
    traced.copy(2, 3, 2, after=3)
    traced.commit(2, 4)
    traced.answer(2, ref, "fetch", offset=2, last=4)
    traced.append(2, Entry(2, 12, 3))
    traced.copy(2, 3, 2, after=4)
    traced.commit(2, 5)
    with refuses("it gives entry 5, readers may see 3 entries"):
        traced.answer(2, traced.ask(2, minimum=3), "fetch", offset=2, last=5)


def test_readers_never_see_less_than_before():
    """promise-K3."""
    traced = led(A)
    traced.answer(1, traced.ask(1), "latest", offset=2)
    with refuses("it showed offsets below 2 before"):
        traced.answer(1, traced.ask(1), "fetch", offset=1)


def test_what_is_beyond_the_log_is_refused_only_by_a_leader_that_proves_it():
    traced = led(A)
    traced.answer(1, traced.ask(1, offset=1), "fetch", RANGE)  # deleted: that needs no proof
    ref = traced.ask(1, offset=9)
    with refuses("no majority confirmed since the request came that it leads"):
        traced.answer(1, ref, "fetch", RANGE)
    ref = traced.ask(1, offset=9)
    _confirm(traced, 1)
    traced.answer(1, ref, "fetch", RANGE)


def test_a_proof_from_before_the_request_is_none():
    traced = led(A)
    _confirm(traced, 1)
    ref = traced.ask(1, acks=-1)
    with refuses("no majority confirmed"):
        traced.answer(1, ref, "produce", GAP)


def test_a_proof_that_nobody_answered_is_none():
    traced = led(A)
    ref = traced.ask(1, acks=-1)
    traced.carry("heartbeat?", 1, 2, 1, commit=2, context=1)
    with refuses("no majority confirmed"):
        traced.answer(1, ref, "produce", GAP)


def test_a_single_member_needs_no_proof():
    traced = Traced(1)
    traced.elect(1, 1)
    traced.commit(1, 2)
    traced.answer(1, traced.ask(1, acks=-1), "produce", GAP)


def test_some_profiles_refuse_gaps_without_proof():
    traced = led(A)
    traced.member(1).rules = Rules(proves_gaps=False)
    traced.answer(1, traced.ask(1, acks=-1), "produce", GAP)


def _confirm(traced: Traced, context: int) -> None:
    traced.carry("heartbeat?", 1, 2, 1, commit=2, context=context)
    traced.carry("heartbeat", 2, 1, 1, context=context)
