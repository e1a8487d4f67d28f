"""A rest: when a run has recovered, nothing happens for a while, and then each partition is used.

A leader that all others hear stays one, however long nobody has anything to say (thesis 6.2 and
9.6). Under faults this cannot be judged, as each change of leadership has some excuse. In a rest it
has none: sim-I50 judges what lies between the rows *rest* and *rested*.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.raft.roles import Role
from ottla.raft.types import GroupId, Micros, Term
from ottla.sim.ending.probes import Asked
from ottla.sim.world.world import World

ONE_RUN_IN = 3
TIMEOUTS = 2
"""A rest is so many election timeouts long: by then every timer has run out that was not wound up
again."""


def rests(world: World) -> bool:
    """Whether this run has a rest; the plain choice is none."""
    return world.choices.stream("rest").below(ONE_RUN_IN) == 1


def let_calm_down(world: World, healed: Micros) -> None:
    """Wait until an election timeout has passed since `healed`: until then a leader that was cut
    off may resign because it heard no majority (seed 206263)."""
    election = world.config.election_timeout_ms * 1_000
    world.kernel.run(max(world.kernel.now, healed + election))


def is_calm(world: World) -> bool:
    """Whether nothing that began under faults can depose a leader any more: no sync is slow or
    stalled, no leadership is handed over, and no election is under way. All replicas of a group
    know the same term."""
    now, terms = world.kernel.now, dict[GroupId, Term]()
    for life in world.lives.values():
        for replica in life.view.replicas():
            settled = replica.role in {Role.LEADER, Role.FOLLOWER} and not replica.successor
            if not settled or terms.setdefault(replica.group, replica.term) != replica.term:
                return False
    return all(disk.held_until <= now for disk in world.disks.values())


def rest(world: World, clients: Asked, answered: Callable[[], None] | None) -> None:
    """Let nothing happen for a while. Then hand clients a record for each partition: `answered`
    waits until each has its outcome; None: not in this run. A replica of a node that never comes
    back may have fallen out of sync by then, so partitions that need it are not asked."""
    world.history.add("phase", code="rest")
    world.kernel.run(world.kernel.now + TIMEOUTS * world.config.election_timeout_ms * 1_000)
    if answered is not None:
        for partition, placed in world.placement.items():
            able = len(set(placed).intersection(world.able))
            if world.config.acks != -1 or able >= world.config.min_insync:
                clients.probe(partition)
        answered()
    world.history.add("phase", code="rested")
