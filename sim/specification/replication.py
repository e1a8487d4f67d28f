"""Replication: what leaders send, what followers take and acknowledge, and what is committed.

**Log matching** is what all of it rests on. For each term the group keeps the log of its leader,
which only grows. A leader sends parts of that log. A follower may write what is a part of that log,
behind an entry that is equal; so by induction its own log is a prefix of it, up to there. Then one
entry says all: two logs that have an equal entry at an index are equal before it.

**Commits.** `Member.bound` is how much a member may know committed. It rises when a leader's
followers, with its own disk, make a majority for an entry of its own term, and when a message of a
leader says so. What a member calls committed, in a message or by applying it, is at most that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.specification.elections import in_own_term, lead, write_promise
from ottla.sim.specification.state import Forbidden, Member
from ottla.sim.specification.trace import Entry, Message, Write

# ---- what a member hears: it may know more than before


def hear_entries(member: Member, message: Message) -> None:
    """Note entries that it may take, and what may be committed if it does."""
    if member.is_past(message.term):
        return
    key = message.term, message.sender
    member.offers[key] = max(member.offers.get(key, 0), message.last)
    _may_know(member, min(message.commit, message.last))


def hear_heartbeat(member: Member, message: Message) -> None:
    """Note what is committed, and that the leader asks whether it still leads."""
    if member.is_past(message.term):
        return
    member.barriers.add((message.sender, message.term, message.context))
    _may_know(member, message.commit)


def hear_ack(member: Member, message: Message) -> None:
    """Note what a follower holds."""
    leading = member.leading
    if leading is not None:
        leading.heard(message, member.now)
    if message.yes:
        acks = member.acks[message.term]
        acks[message.sender] = max(acks.get(message.sender, 0), message.log_index)
        advance(member)
    member.show()


def hear_confirmation(member: Member, message: Message) -> None:
    """Note that a follower answered a barrier."""
    leading, peer, context = member.leading, message.sender, message.context
    if leading is not None and leading.term == message.term:
        leading.answered[peer] = max(leading.answered.get(peer, 0), context)


def hear_life(member: Member, message: Message) -> None:
    """Note that another node lives. It may not follow in this group, if it has just started."""
    if member.leading is not None:
        message = message._replace(yes=message.yes and member.group.number not in message.span)
        member.leading.heard(message, member.now)
        member.show()


def hear_snapshot(member: Member, message: Message) -> None:
    """Note the bytes of a snapshot; they count only without a gap."""
    if member.is_past(message.term):
        return
    key, (begin, end, size) = (message.sender, message.term, message.log_index), message.span
    there, _ = member.chunks.get(key, (0, size))
    member.chunks[key] = max(there, end) if begin <= there else there, size
    _may_know(member, message.log_index)


def _may_know(member: Member, index: int) -> None:
    member.bound = max(member.bound, index)


def advance(member: Member) -> None:
    """A leader may commit what a majority holds, if it is of its own term (5.4.2)."""
    if member.leading is None:
        return
    term, group = member.leading.term, member.group
    log = group.logs[term]
    own = min(len(member.durable.log), len(log))
    held = [own if member.durable.agrees(log, own) else 0]
    held += [member.acks[term].get(voter, 0) for voter in group.voters if voter != member.node]
    index = sorted(held)[-group.majority]
    if index > member.bound and index <= len(log) and log[index - 1].term == term:
        member.bound = index


# ---- what a member sends


def send_entries(member: Member, message: Message) -> None:
    """Only the leader of a term sends entries, as they stand in its log, and what it knows
    committed."""
    lead(member, message.term)
    log = member.group.logs[message.term]
    before = log[message.log_index - 1].term if 0 < message.log_index <= len(log) else 0
    if before != message.log_term or message.last > len(log):
        raise Forbidden(f"entry {message.log_index} of its log has term {before}")
    if tuple(log[message.log_index : message.last]) != message.entries:
        raise Forbidden(f"entries {message.log_index + 1} to {message.last} differ from its log")
    _knows(member, message.commit)


def send_heartbeat(member: Member, message: Message) -> None:
    """As entries; and the follower must hold what is called committed, because it does not
    compare logs."""
    lead(member, message.term)
    leading = member.leading
    if message.context and leading is not None and leading.term == message.term:
        leading.rounds.setdefault(message.context, member.step)
    _knows(member, message.commit)
    held = max((acks.get(message.to, 0) for acks in member.acks.values()), default=0)
    if message.commit > held:
        raise Forbidden(f"node {message.to} confirmed {held} entries, not {message.commit}")


def confirm(member: Member, message: Message) -> None:
    """A barrier is answered to the leader that asked in this term; one that was deposed gets a
    newer term, and no context."""
    in_own_term(member, message)
    barrier = message.to, message.term, message.context
    if message.context and barrier not in member.barriers:
        raise Forbidden(f"node {message.to} did not ask in term {message.term} before it was over")


def send_ack(member: Member, message: Message) -> None:
    """A success says that the follower's durable log is the leader's up to there."""
    if not message.yes:
        in_own_term(member, message)
        return
    group, term, index = member.group, message.term, message.log_index
    if group.leaders.get(term) != message.to:
        raise Forbidden(f"node {message.to} does not lead term {term}")
    if index > max(member.offers.get((term, message.to), 0), member.bound):
        raise Forbidden(f"node {message.to} sent no entry {index} in term {term}")
    if member.durable.term < term:
        raise Forbidden(f"its durable term is {member.durable.term}, not {term}")
    if not _holds(member, group.logs[term], index):
        raise Forbidden(f"its durable log is not that of term {term} up to entry {index}")


def _holds(member: Member, log: Sequence[Entry], index: int) -> bool:
    if member.durable.agrees(log, index):
        return True
    return any(0 < index <= len(old) and old[index - 1 : index] == log[index - 1 : index]
               for old in member.replaced)  # fmt: skip


def send_snapshot(member: Member, message: Message) -> None:
    """A leader sends a snapshot that it has stored, of what is committed."""
    lead(member, message.term)
    if (message.log_index, message.log_term) not in member.snapshots:
        raise Forbidden(f"it has no snapshot of {message.log_index} entries")


def send_received(member: Member, message: Message) -> None:
    """Says how many bytes came, or that all that the snapshot stands for is durable."""
    group = member.group
    if group.leaders.get(message.term) != message.to:
        in_own_term(member, message)
        if message.yes:
            raise Forbidden(f"node {message.to} does not lead term {message.term}")
    elif message.yes:
        if not member.durable.agrees(group.committed, message.log_index):
            raise Forbidden(f"its durable log lacks entry {message.log_index}")
    else:
        came, _ = member.chunks.get((message.to, message.term, message.log_index), (0, 0))
        if message.span[1] > came:
            raise Forbidden(f"{came} bytes of that snapshot came, not {message.span[1]}")


def order_election(member: Member, message: Message) -> None:
    """A leader hands over to a follower that holds its whole log."""
    lead(member, message.term)
    held = member.acks[message.term].get(message.to, 0)
    if held < len(member.group.logs[message.term]):
        raise Forbidden(f"node {message.to} confirmed only {held} entries of its log")
    assert member.leading is not None, "it leads"
    member.leading.ordered = message.to


def _knows(member: Member, index: int) -> None:
    if index > member.bound:
        raise Forbidden(f"it can know {member.bound} entries committed, not {index}")


# ---- what a member writes


def write(member: Member, writes: Sequence[Write]) -> None:
    """All that one turn writes of one group."""
    before = member.written.term
    states = [each.state for each in writes if each.state is not None]
    if states:
        write_promise(member, *states[-1])
    for each in writes:
        if each.delete:
            member.group.deleted = True
        elif not member.open:
            _bootstrap(member, each)
        elif each.snapshot is not None:
            _write_snapshot(member, each)
        if each.entries and each.first > 1:
            term = states[-1][0] if states else before
            _write_entries(member, each, range(before, term + 1))
        member.written.take(each, member.group.committed)
        member.pending.append(each)


def _bootstrap(member: Member, write: Write) -> None:
    """The first entry of every log names the voters, in term 0."""
    if write.first != 1 or len(write.entries) != 1 or write.entries[0].term:
        raise Forbidden("a log begins with the entry that names the voters")
    member.opens(write.voters)


def _write_snapshot(member: Member, write: Write) -> None:
    assert write.snapshot is not None, "the caller looked"
    index, term = write.snapshot
    group = member.group
    if write.reset:
        came = [each for key, each in member.chunks.items() if key[2] == index]
        if not came:
            raise Forbidden(f"no snapshot of {index} entries came")
        if all(there < size for there, size in came):
            there, size = came[-1]
            raise Forbidden(f"{there} of {size} bytes of the snapshot of {index} entries came")
        if index <= member.commit:
            raise Forbidden(f"it knew {member.commit} entries committed, so it needs no snapshot")
    else:
        _knows(member, index)
        group.commit(member.written.log, index)
    if not 0 < index <= len(group.committed) or group.committed[index - 1].term != term:
        raise Forbidden(f"entry {index} of term {term} is not committed")
    member.snapshots.add((index, term))


def _write_entries(member: Member, write: Write, terms: range) -> None:
    """Entries come from a leader, of whose log they are a part, or this member leads and adds its
    own. `terms`: those that the member was in while it took its turn."""
    first, last = write.first, write.first - 1 + len(write.entries)
    offered = [
        term
        for (term, leader), upto in member.offers.items()
        if term in terms and upto >= last and _part(member, term, leader, write)
    ]
    if offered:
        _replace(member, write)
        return
    term = write.entries[0].term
    if term not in terms:
        raise Forbidden(f"no leader of term {terms[-1]} sent entries {first} to {last}")
    leader = member.group.leaders.get(term, member.node)
    if leader != member.node:
        raise Forbidden(f"node {leader} leads term {term}, and sent no such entries behind its own")
    lead(member, term)
    if first != len(member.written.log) + 1:
        raise Forbidden(f"a leader only appends, and its log has {len(member.written.log)} entries")
    if any(each.term != term for each in write.entries):
        raise Forbidden(f"a leader of term {term} appends entries of that term")
    assert member.leading is not None, "it leads"
    if write.hands_over_to and write.hands_over_to == member.leading.ordered:
        raise Forbidden(f"it ordered node {write.hands_over_to} to lead, and appends nothing then")
    member.group.logs[term] += write.entries
    member.leading.wrote(last, member.now)


def _part(member: Member, term: int, leader: int, write: Write) -> bool:
    """Whether these entries, and the one before, are those of that leader's log."""
    group, first = member.group, write.first
    if group.leaders.get(term) != leader:
        return False
    log = group.logs[term]
    same = tuple(log[first - 1 : first - 1 + len(write.entries)]) == write.entries
    return same and member.written.agrees(log, first - 1)


def _replace(member: Member, write: Write) -> None:
    """A follower drops entries only where the first differs, and none that is committed."""
    first, log = write.first, member.written.log
    if first > len(log):
        return
    if first <= member.commit:
        raise Forbidden(f"it knows {member.commit} entries committed, and drops entry {first}")
    if log[first - 1] == write.entries[0]:
        raise Forbidden(f"entry {first} is there already; nothing after it may be dropped")


def commit(member: Member, index: int) -> None:
    """What a node calls committed is committed, for good, and the same everywhere."""
    if index < member.commit:
        raise Forbidden(f"it knew {member.commit} entries committed before")
    _knows(member, index)
    if index > len(member.written.log):
        raise Forbidden(f"its log has {len(member.written.log)} entries")
    member.group.commit(member.written.log, index)
    member.commit = index
    member.show()
    if member.group.leaders.get(member.written.term) == member.node:
        commits = member.group.commits
        commits[member.written.term] = max(commits.get(member.written.term, 0), index)
