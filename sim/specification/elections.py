"""Elections: terms, votes, pre-votes, and who becomes leader.

To become leader is a hidden step: nobody sees it happen. The first entry that a node appends, or
the first message that only a leader sends, shows it. Then the votes must have arrived.
"""

from __future__ import annotations

from ottla.sim.specification.state import Forbidden, Member
from ottla.sim.specification.trace import NOBODY, Message


def hear_candidate(member: Member, message: Message) -> None:
    """Note whether the candidate's log is up to date. This log only becomes more so later."""
    if member.is_past(message.term):
        return
    key = message.term, message.sender, message.pre
    end = message.log_term, message.log_index
    member.asked[key] = member.asked.get(key, False) or end >= member.written.end


def hear_vote(member: Member, message: Message) -> None:
    """Note a vote that was given."""
    if message.yes:
        member.grants[message.term, message.pre].add(message.sender)


def hear_order(member: Member, message: Message) -> None:
    """Note that the leader orders an election."""
    if not member.is_past(message.term):
        member.ordered.add(message.term)


def ask_for_votes(member: Member, message: Message) -> None:
    """A candidate asks."""
    term = message.term
    if (message.log_term, message.log_index) > member.written.end:
        raise Forbidden(f"it names a longer log than its own, which ends in {member.written.end}")
    if message.pre:
        if term - 1 > max(member.written.term, member.heard):
            raise Forbidden(f"pre-vote for term {term}; it may ask for the term after its own")
        return
    _promised(member, term, member.node)
    if message.transfer:
        if term - 1 not in member.ordered:
            raise Forbidden(f"no leader of term {term - 1} ordered this election")
    elif term > 1 and not _majority(member, term, pre=True):
        yes = sorted(member.grants[term, True])
        raise Forbidden(f"a majority must grant the pre-vote for term {term}, here {yes} did")


def give_vote(member: Member, message: Message) -> None:
    """A vote or a pre-vote leaves; a refusal promises nothing."""
    if not message.yes:
        in_own_term(member, message)
        return
    up_to_date = member.asked.get((message.term, message.to, message.pre))
    if up_to_date is None:
        raise Forbidden(f"node {message.to} did not ask for a vote in term {message.term}")
    if not up_to_date:
        raise Forbidden(f"the log of node {message.to} is not up to date with {member.written.end}")
    if not message.pre:
        _promised(member, message.term, message.to)


def _promised(member: Member, term: int, candidate: int) -> None:
    """A vote may leave if no other vote of this term can ever leave: it is durable."""
    durable = member.durable
    if durable.term < term or (durable.term == term and durable.vote != candidate):
        vote = durable.vote or "nobody"
        raise Forbidden(f"its durable vote is for {vote} in term {durable.term}, not {candidate}")
    given = member.group.votes.setdefault((term, member.node), candidate)
    if given != candidate:
        raise Forbidden(f"it gave its vote of term {term} to node {given} before")


def in_own_term(member: Member, message: Message) -> None:
    """A message without a promise has a term that this node can know."""
    if message.term > max(member.written.term, member.heard):
        raise Forbidden(f"it cannot know of term {message.term} yet")


def write_promise(member: Member, term: int, vote: int) -> None:
    """The term never falls, rises only to one that was heard of or to the next one for its own
    candidacy, and has one vote."""
    now = member.written
    if (term, vote) == (now.term, now.vote):
        return
    if term < now.term:
        raise Forbidden(f"the term falls from {now.term} to {term}")
    if term == now.term and now.vote != NOBODY:
        raise Forbidden(f"the vote of term {term} changes from {now.vote} to {vote}")
    own = vote == member.node
    if term > max(now.term, member.heard) + own:
        raise Forbidden(f"nobody told it of term {term}")
    if vote not in (NOBODY, member.node) and not member.asked.get((term, vote, False)):
        raise Forbidden(f"node {vote} did not ask with an up-to-date log in term {term}")


def lead(member: Member, term: int) -> None:
    """Become leader of a term, unless it was seen to lead it before."""
    group = member.group
    leader = group.leaders.get(term)
    if leader == member.node and member.leading is not None and member.leading.term >= term:
        return
    if leader is not None:
        raise Forbidden(f"node {leader} leads term {term}")
    if not _majority(member, term, pre=False):
        votes = sorted(member.grants[term, False])
        raise Forbidden(f"a majority must vote for it in term {term}, here {votes} did")
    _promised(member, term, member.node)
    _complete(member, term)
    member.leads(term)
    group.leaders[term] = member.node
    group.logs[term] = [*member.written.log]


def _majority(member: Member, term: int, *, pre: bool) -> bool:
    voters = {*member.grants[term, pre], member.node}.intersection(member.group.voters)
    return len(voters) >= member.group.majority


def _complete(member: Member, term: int) -> None:
    """What leaders of earlier terms have committed is in its log (Leader Completeness)."""
    group = member.group
    index = max((upto for of, upto in group.commits.items() if of < term), default=0)
    if not member.written.agrees(group.committed, index):
        raise Forbidden(f"its log lacks entry {index}, which was committed before term {term}")
