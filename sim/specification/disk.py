"""Disks: what a sync makes durable, and what a life may find when it begins."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.specification.replication import advance
from ottla.sim.specification.state import Forbidden, Member, Stored
from ottla.sim.specification.trace import Entry, Found


def become_durable(member: Member, number: int) -> None:
    """All writes of the node up to that number survive from now on."""
    durable, member.replaced = member.durable, []
    while member.pending and member.pending[0].number <= number:
        write = member.pending.pop(0)
        if write.entries and write.first <= len(durable.log):
            member.replaced.append([*durable.log])
        durable.take(write, member.group.committed)
    advance(member)


def begin_life(member: Member, found: Found | None) -> None:
    """A life begins on what its disk holds: all that was durable, and of the later writes the
    first few. Of the last of these, some entries may be missing: a torn write."""
    if found is None:
        survivor = _survivor(member, Stored())
    else:
        log = [*member.group.committed[: found.first - 1], *found.entries]
        survivor = _survivor(member, Stored(found.term, found.vote, log))
    member.written = survivor
    member.durable = Stored(survivor.term, survivor.vote, survivor.log)
    member.pending, member.replaced = [], []
    member.open = found is not None and bool(survivor.log)
    member.begin()
    if found is not None and found.first > 1:
        index = found.first - 1
        member.commit = member.bound = index
        member.snapshots.add((index, survivor.log[index - 1].term))


def _survivor(member: Member, found: Stored) -> Stored:
    tried = Stored(member.durable.term, member.durable.vote, member.durable.log)
    least = len(tried.log)
    for write in (None, *member.pending):
        if write is not None:
            least = min(len(tried.log), write.first - 1) if write.entries else 0
            tried.take(write, member.group.committed)
        if _same(tried, found, least):
            return found
    durable = member.durable
    raise Forbidden(
        f"the disk held term {durable.term}, vote {durable.vote}, {len(durable.log)} entries, and "
        f"{len(member.pending)} later writes; it cannot hold term {found.term}, vote "
        f"{found.vote}, {len(found.log)} entries"
    )


def _same(tried: Stored, found: Stored, least: int) -> bool:
    same = (tried.term, tried.vote) == (found.term, found.vote)
    return same and len(found.log) >= least and _begins(tried.log, found.log)


def _begins(log: Sequence[Entry], beginning: Sequence[Entry]) -> bool:
    return len(beginning) <= len(log) and log[: len(beginning)] == beginning
