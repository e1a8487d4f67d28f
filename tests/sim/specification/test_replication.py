"""Entries, acknowledgements, commits, truncation and snapshots: what is allowed, and what not.

Each test plays a correct group up to the step that it is about (`sim_traces.py`). Where both are
possible, the step that is allowed stands beside the one that is not.
"""

import pytest

from ottla.sim.specification.trace import Entry
from sim_traces import Traced, led, refuses

A, B, C = Entry(1, 11, 2), Entry(1, 12, 3), Entry(1, 13, 1)


def test_a_leader_replicates_and_commits_and_followers_learn_of_it():
    traced = led(A)
    traced.offer(1, 2, 1, after=3, commit=3)
    traced.commit(2, 3)
    assert traced.spec.groups[1].ends == [0, 0, 0, 2]


def test_only_a_leader_sends_entries():
    traced = led()
    with refuses("node 1 leads term 1"):
        traced.offer(2, 3, 1, after=1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"entries": (B,)}, "entries 3 to 3 differ from its log"),
        ({"log_term": 0}, "entry 2 of its log has term 1"),
        ({"entries": (A, B)}, "entry 2 of its log has term 1"),
        ({"commit": 4}, "it can know 3 entries committed, not 4"),
    ],
)
def test_a_leader_sends_its_log_as_it_is(changed, words):
    traced = led(A)
    message = {"log_index": 2, "log_term": 1, "entries": (A,), "commit": 3}
    traced.send("append?", 1, 2, 1, **message)
    with refuses(words):
        traced.send("append?", 1, 2, 1, **{**message, **changed})


def test_a_leader_only_appends():
    traced = led(A)
    with refuses("a leader only appends, and its log has 3 entries"):
        traced.write(1, first=3, entries=(B,))


def test_a_leader_appends_in_its_own_term():
    """promise-R3: what was decided in another term is not appended in this one."""
    traced = led()
    with refuses("no leader of term 1 sent entries 3 to 3"):
        traced.write(1, first=3, entries=(Entry(2, 8),))
    with refuses("a leader of term 1 appends entries of that term"):
        traced.write(1, first=3, entries=(A, Entry(2, 8)))


def test_a_follower_takes_only_what_came():
    traced = led()
    traced.append(1, A, B)
    with refuses("node 1 leads term 1, and sent no such entries"):
        traced.write(2, first=3, entries=(A,))
    traced.offer(1, 2, 1, after=2)
    with refuses("node 1 leads term 1, and sent no such entries"):
        traced.write(2, first=3, entries=(A, C))
    traced.write(2, first=3, entries=(A, B))


def test_a_follower_takes_entries_only_behind_an_equal_one():
    """Log matching: node 3 has an entry of another leader before."""
    traced = _two_logs()
    traced.append(2, Entry(2, 30))
    traced.offer(2, 3, 2, after=3)
    with refuses("node 2 leads term 2, and sent no such entries behind its own"):
        traced.write(3, first=4, entries=(Entry(2, 30),))


def test_a_follower_of_a_newer_term_takes_nothing_from_a_deposed_leader():
    traced = led()
    traced.append(1, A)
    traced.offer(1, 3, 1, after=2)
    traced.stand(2, 2, (3,))
    traced.vote(3, 2, 2)
    with refuses("no leader of term 2 sent entries 3 to 3"):
        traced.write(3, first=3, entries=(A,))


def test_a_follower_replaces_from_the_first_entry_that_differs():
    traced = _two_logs()
    traced.offer(2, 3, 2, after=2)
    traced.write(3, first=3, entries=(Entry(2, 0),))
    assert traced.member(3).written.log[2:] == [Entry(2, 0)]


def test_a_follower_drops_nothing_that_is_equal():
    """Figure 2, receiver rule 3: a late message with fewer entries must not shorten the log."""
    traced = led(A, B)
    traced.append(1, C)
    traced.offer(1, 2, 1, after=2)
    with refuses("entry 3 is there already; nothing after it may be dropped"):
        traced.write(2, first=3, entries=(A, B, C))
    traced.write(2, first=5, entries=(C,))


def test_a_follower_drops_nothing_that_it_knows_committed():
    traced = _two_logs()
    traced.offer(2, 3, 2, after=2)
    traced.member(3).commit = 3  # no correct run comes here: the entry was never committed
    with refuses("it knows 3 entries committed, and drops entry 3"):
        traced.write(3, first=3, entries=(Entry(2, 0),))


def test_an_acknowledgement_leaves_when_the_entries_are_durable():
    traced = led()
    traced.append(1, A)
    traced.offer(1, 2, 1, after=2)
    with refuses("its durable log is not that of term 1 up to entry 3"):
        traced.send("append", 2, 1, 1, yes=True, log_index=3)
    traced.write(2, first=3, entries=(A,))
    with refuses("its durable log is not that of term 1 up to entry 3"):
        traced.send("append", 2, 1, 1, yes=True, log_index=3)
    traced.sync(2)
    traced.send("append", 2, 1, 1, yes=True, log_index=3)


def test_an_acknowledgement_may_leave_although_the_same_sync_replaced_the_entry():
    """The entry was written and acknowledged in its term; the answer is only late. A sync later it
    must not leave any more: then it would be about another entry (append ABA)."""
    traced = _two_logs(sync=False)
    traced.offer(2, 3, 2, after=2)
    traced.write(3, first=3, entries=(Entry(2, 0),))
    traced.sync(3)
    traced.send("append", 3, 1, 1, yes=True, log_index=3)
    traced.sync(3)
    with refuses("its durable log is not that of term 1 up to entry 3"):
        traced.send("append", 3, 1, 1, yes=True, log_index=3)


def test_an_acknowledgement_is_about_entries_that_came():
    traced = led(A)
    with refuses("node 1 sent no entry 4 in term 1"):
        traced.send("append", 2, 1, 1, yes=True, log_index=4)
    with refuses("node 3 does not lead term 1"):
        traced.send("append", 2, 3, 1, yes=True, log_index=3)
    traced.send("append", 2, 1, 1, log_index=4)  # a refusal


def test_an_acknowledgement_is_of_a_term_that_is_durable():
    traced = led()
    traced.elect(2, 2, 1)
    traced.offer(2, 3, 2, after=2)
    traced.write(3, first=3, entries=(Entry(2, 0),), state=(2, 0))
    with refuses("its durable term is 1, not 2"):
        traced.send("append", 3, 2, 2, yes=True, log_index=3)


def test_a_commit_needs_a_majority():
    traced = led(nodes=5)
    traced.append(1, A)
    traced.copy(1, 2, 1, after=2)
    with refuses("it can know 2 entries committed, not 3"):
        traced.commit(1, 3)
    traced.copy(1, 3, 1, after=2)
    traced.commit(1, 3)


def test_a_leader_counts_itself_only_when_its_disk_has_the_entry():
    traced = led()
    traced.write(1, first=3, entries=(A,))
    traced.copy(1, 2, 1, after=2)
    with refuses("it can know 2 entries committed, not 3"):
        traced.commit(1, 3)
    traced.sync(1)
    traced.commit(1, 3)


def test_an_entry_of_an_older_term_is_not_committed_by_counting():
    """Figure 8: node 1 leads again, and a majority holds its old entry, but none of its term."""
    traced = led(nodes=5)
    traced.append(1, A)
    traced.copy(1, 2, 1, after=2)
    traced.elect(5, 2, 3, 4)
    traced.carry("heartbeat?", 5, 1, 2)
    traced.elect(1, 3, 2, 3)
    for node in (2, 3):
        traced.carry("append?", 1, node, 3, log_index=2, log_term=1, entries=(A,))
    traced.write(3, first=3, entries=(A,))
    traced.sync(3)
    for node in (2, 3):
        traced.carry("append", node, 1, 3, yes=True, log_index=3)
    with refuses("it can know 2 entries committed, not 3"):
        traced.commit(1, 3)
    for node in (2, 3):
        traced.copy(1, node, 3, after=3)
    traced.commit(1, 4)


def test_a_commit_never_goes_back():
    traced = led(A)
    with refuses("it knew 3 entries committed before"):
        traced.commit(1, 2)


def test_a_follower_commits_what_its_leader_says():
    traced = led(A)
    with refuses("it can know 0 entries committed, not 3"):
        traced.commit(2, 3)
    traced.carry("heartbeat?", 1, 2, 1, commit=3)
    traced.commit(2, 3)


def test_all_nodes_commit_the_same():
    """State Machine Safety."""
    traced = _two_logs()
    for node in (4, 5):
        traced.copy(2, node, 2, after=2)
    traced.commit(2, 3)
    traced.member(3).bound = 3  # as if its leader had said so, although it holds another entry
    with refuses("entry 3 is committed as"):
        traced.commit(3, 3)


def test_a_heartbeat_calls_committed_only_what_the_follower_confirmed():
    traced = led(nodes=5)
    traced.append(1, A)
    for node in (2, 3):
        traced.copy(1, node, 1, after=2)
    traced.send("heartbeat?", 1, 2, 1, commit=3)
    with refuses("node 4 confirmed 2 entries, not 3"):
        traced.send("heartbeat?", 1, 4, 1, commit=3)


def test_a_barrier_is_not_confirmed_to_a_leader_that_was_deposed():
    """Else it would refuse for good what the new leader holds."""
    traced = led(A)
    traced.carry("heartbeat?", 1, 2, 1, context=5)
    traced.carry("heartbeat", 2, 1, 1, context=5)
    traced.elect(3, 2, 2)
    traced.carry("heartbeat?", 1, 2, 1, context=6)
    traced.send("heartbeat", 2, 1, 2)
    with refuses("node 1 did not ask in term 1 before it was over"):
        traced.send("heartbeat", 2, 1, 1, context=6)


def test_leadership_is_handed_to_a_follower_that_holds_all():
    traced = led()
    traced.append(1, A)
    with refuses("node 2 confirmed only 2 entries of its log"):
        traced.send("timeout-now", 1, 2, 1)
    traced.copy(1, 2, 1, after=2)
    traced.send("timeout-now", 1, 2, 1)


def test_a_leader_that_has_ordered_an_election_appends_nothing_until_it_gives_that_up():
    """Thesis 3.10: what it appends then, the new leader would cut off."""
    traced = led()
    traced.append(1, A)
    traced.write(1, first=4, entries=(B,), hands_over_to=2)
    traced.sync(1)
    traced.copy(1, 2, 1, after=2)
    traced.send("timeout-now", 1, 2, 1)
    with refuses("it ordered node 2 to lead, and appends nothing then"):
        traced.write(1, first=5, entries=(C,), hands_over_to=2)
    traced.write(1, first=5, entries=(C,))


def test_a_snapshot_is_taken_of_what_is_committed():
    traced = led(A)
    with refuses("it can know 3 entries committed, not 4"):
        traced.write(1, snapshot=(4, 1))
    with refuses("entry 3 of term 0 is not committed"):
        traced.write(1, snapshot=(3, 0))
    traced.write(1, snapshot=(3, 1))


def test_a_snapshot_is_sent_and_installed_when_all_of_it_came():
    traced = led(A, B)
    snapshot = {"log_index": 4, "log_term": 1}
    with refuses("it has no snapshot of 4 entries"):
        traced.send("snapshot?", 1, 2, 1, span=(0, 5, 9), **snapshot)
    traced.write(1, snapshot=(4, 1))
    with refuses("no snapshot of 4 entries came"):
        traced.write(2, snapshot=(4, 1), reset=True)
    traced.carry("snapshot?", 1, 2, 1, span=(0, 5, 9), **snapshot)
    with refuses("5 of 9 bytes of the snapshot of 4 entries came"):
        traced.write(2, snapshot=(4, 1), reset=True)
    with refuses("5 bytes of that snapshot came, not 9"):
        traced.send("snapshot", 2, 1, 1, log_index=4, span=(0, 9, 0))
    traced.carry("snapshot", 2, 1, 1, log_index=4, span=(0, 5, 0))
    traced.carry("snapshot?", 1, 2, 1, span=(5, 9, 9), **snapshot)
    traced.write(2, snapshot=(4, 1), reset=True)


def test_a_snapshot_is_confirmed_when_it_is_durable():
    traced = Traced()
    traced.elect(1, 1, 2)
    traced.append(1, A)
    traced.copy(1, 2, 1, after=1)
    traced.commit(1, 3)
    traced.write(1, snapshot=(3, 1))
    traced.carry("snapshot?", 1, 3, 1, span=(0, 9, 9), log_index=3, log_term=1)
    traced.write(3, state=(1, 0))
    traced.write(3, snapshot=(3, 1), reset=True)
    with refuses("its durable log lacks entry 3"):
        traced.send("snapshot", 3, 1, 1, log_index=3, yes=True)
    traced.sync(3)
    traced.send("snapshot", 3, 1, 1, log_index=3, yes=True)
    with refuses("node 2 does not lead term 1"):
        traced.send("snapshot", 3, 2, 1, log_index=3, yes=True)


def _two_logs(*, sync: bool = True) -> Traced:
    """Nodes 1 and 3 of 5 hold an entry of term 1; node 2 leads term 2 and has its own there."""
    traced = led(nodes=5)
    traced.append(1, A)
    traced.offer(1, 3, 1, after=2)
    traced.write(3, first=3, entries=(A,))
    if sync:
        traced.sync(3)
    traced.elect(2, 2, 4, 5)
    traced.carry("heartbeat?", 2, 3, 2)
    traced.write(3, state=(2, 0))
    return traced
