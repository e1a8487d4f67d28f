"""Terms, votes and leaders: what the specification allows, and what not.

Each test plays a correct group up to the step that it is about (`sim_traces.py`). Where both are
possible, the step that is allowed stands beside the one that is not.
"""

from ottla.sim.specification.trace import Entry
from sim_traces import Traced, led, refuses


def test_an_election_is_allowed_and_the_next_one_too():
    traced = led()
    traced.elect(2, 2, 3)
    assert traced.spec.groups[1].leaders == {1: 1, 2: 2}


def test_a_term_never_falls():
    traced = led()
    with refuses("the term falls from 1 to 0"):
        traced.write(2, state=(0, 0))


def test_a_term_rises_only_to_one_that_was_heard_of():
    traced = Traced()
    with refuses("nobody told it of term 1"):
        traced.write(1, state=(1, 0))


def test_a_candidate_raises_its_term_by_one():
    traced = Traced()
    with refuses("nobody told it of term 2"):
        traced.write(1, state=(2, 1))


def test_a_vote_is_not_changed():
    traced = Traced()
    traced.elect(1, 1, 2)
    traced.write(3, state=(1, 3))
    traced.sync(3)
    traced.carry("vote?", 3, 2, 1, log_index=1)
    with refuses("the vote of term 1 changes from 1 to 3"):
        traced.write(2, state=(1, 3))


def test_a_vote_needs_a_candidate_that_asked():
    traced = Traced()
    traced.stand(1, 1, ())
    with refuses("nobody told it of term 1"):
        traced.write(2, state=(1, 1))


def test_a_vote_leaves_only_when_it_is_durable():
    traced = Traced()
    traced.stand(1, 1, (2,))
    traced.write(2, state=(1, 1))
    with refuses("its durable vote is for nobody in term 0, not 1"):
        traced.send("vote", 2, 1, 1, yes=True)
    traced.sync(2)
    traced.send("vote", 2, 1, 1, yes=True)


def test_a_vote_may_leave_when_a_later_term_is_durable():
    """A turn that takes two steps shows only the last: the vote of the first can never change."""
    traced = Traced()
    traced.stand(1, 1, (2,))
    traced.stand(3, 1, (2,))
    traced.write(2, state=(2, 2))
    traced.sync(2)
    traced.send("vote", 2, 1, 1, yes=True)
    with refuses("it gave its vote of term 1 to node 1 before"):
        traced.send("vote", 2, 3, 1, yes=True)


def test_a_vote_goes_to_logs_that_are_up_to_date():
    traced = led()
    traced.append(1, Entry(1, 8))
    traced.copy(1, 2, 1, after=2)
    traced.stand(3, 2, ())
    traced.take(traced.send("vote?", 3, 2, 2, log_index=2, log_term=1, pre=True))
    with refuses("the log of node 3 is not up to date"):
        traced.send("vote", 2, 3, 2, yes=True, pre=True)


def test_a_candidate_names_no_longer_log_than_its_own():
    traced = led()
    with refuses("it names a longer log than its own"):
        traced.send("vote?", 2, 3, 2, log_index=3, log_term=1, pre=True)


def test_a_candidate_needs_a_majority_of_pre_votes():
    traced = led(nodes=5)
    traced.carry("vote?", 2, 3, 2, log_index=2, log_term=1, pre=True)
    traced.carry("vote", 3, 2, 2, yes=True, pre=True)
    traced.write(2, state=(2, 2))
    traced.sync(2)
    with refuses(r"a majority must grant the pre-vote for term 2, here \[3\] did"):
        traced.send("vote?", 2, 3, 2, log_index=2, log_term=1)


def test_an_ordered_election_needs_no_pre_vote_but_an_order():
    traced, end = led(), {"log_index": 2, "log_term": 1}
    traced.carry("timeout-now", 1, 2, 1)
    traced.write(2, state=(2, 2))
    traced.sync(2)
    traced.send("vote?", 2, 3, 2, transfer=True, **end)


def test_an_order_that_comes_when_its_term_is_over_is_none():
    traced = led()
    traced.write(2, state=(2, 2))
    traced.sync(2)
    traced.carry("timeout-now", 1, 2, 1)
    with refuses("no leader of term 1 ordered this election"):
        traced.send("vote?", 2, 3, 2, transfer=True, log_index=2, log_term=1)


def test_a_pre_vote_is_for_the_next_term():
    traced = led()
    with refuses("pre-vote for term 3; it may ask for the term after its own"):
        traced.send("vote?", 2, 3, 3, log_index=2, log_term=1, pre=True)


def test_a_leader_needs_a_majority_of_votes():
    traced = Traced(5)
    traced.stand(1, 1, (2, 3))
    traced.vote(2, 1, 1)
    with refuses(r"a majority must vote for it in term 1, here \[2\] did"):
        traced.append(1, Entry(1, 0))
    traced = Traced(5)
    traced.elect(1, 1, 2, 3)


def test_a_term_has_one_leader():
    """A voter that votes twice makes two: its second vote is refused, and so is their leader."""
    traced = Traced()
    traced.elect(1, 1, 2)
    traced.stand(3, 1, (2,))
    with refuses("the vote of term 1 changes from 1 to 3"):
        traced.vote(2, 3, 1)
    traced.member(3).grants[1, False].add(2)
    with refuses("node 1 leads term 1"):
        traced.send("append?", 3, 2, 1)


def test_a_vote_is_remembered_over_a_restart():
    traced = Traced()
    traced.elect(1, 1, 2)
    with refuses("it cannot hold term 1, vote 0"):
        traced.start(2, traced.found(2)._replace(vote=0))


def test_a_leader_does_not_lead_its_term_again_after_a_restart():
    traced = led()
    traced.start(1, traced.found(1))
    with refuses("node 1 leads term 1"):
        traced.append(1, Entry(1, 9))


def test_a_leader_has_all_that_was_committed_before():
    """The voter grants a vote to a shorter log; the new leader would lack what is committed."""
    traced = led()
    traced.append(1, Entry(1, 8))
    traced.copy(1, 2, 1, after=2)
    traced.commit(1, 3)
    traced.member(3).grants[2, True].add(2)
    traced.stand(3, 2, ())
    traced.member(3).grants[2, False].add(2)  # what the test before this one refuses
    with refuses("its log lacks entry 3, which was committed before term 2"):
        traced.append(3, Entry(2, 0))


def test_a_refusal_promises_nothing_but_a_term_that_is_known():
    traced = led()
    traced.send("vote", 2, 3, 1)
    with refuses("it cannot know of term 5 yet"):
        traced.send("vote", 2, 3, 5)
