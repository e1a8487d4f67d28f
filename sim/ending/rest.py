"""A rest: when a run has recovered, nothing happens for a while, and then each partition is used.

A leader that all others hear stays one, however long nobody has anything to say (thesis 6.2 and
9.6). Under faults this cannot be judged, as each change of leadership has some excuse. In a rest it
has none: sim-I50 judges what lies between the rows *rest* and *rested*.

Afterwards each leader hands over to a follower, while a record is on its way to it. Under faults a
transfer may fail for many reasons; here it has none. It is tried some times, because a message may
take long by chance. If all fail, the run is not live (sim-I31).

Last of all a follower dies while nothing is written, and stays away for longer than the lag time.
Then a record is written: the leader must not count that follower as in sync (sim-I43).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.node.handover import hand_over
from ottla.raft.quorum import majority
from ottla.raft.roles import Role
from ottla.raft.types import GroupId, Micros, NodeId, Term
from ottla.sim.ending.probes import Asked
from ottla.sim.world.life import Life, awake
from ottla.sim.world.points import Trap, sends_entries
from ottla.sim.world.world import World

ONE_RUN_IN = 3
TRANSFERS = 3
"""How often a transfer is tried, at most."""
_SHORT_LAG_MS = 2_000
TIMEOUTS = 2
"""How many election timeouts a rest takes. By then each timer that nobody has reset has run out."""


def rests(world: World) -> bool:
    """Draw whether this run has a rest. One run in `ONE_RUN_IN` has one. The plain choice is none.
    Each call draws anew, so ask once a run."""
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


def hand_over_each(world: World, clients: Asked, answered: Callable[[], None] | None) -> list[str]:
    """Let each partition's leader hand over to a follower, while a record is on its way. Returns
    what failed. `answered`: as in `rest`; None: nothing is written meanwhile."""
    failed = []
    for partition, placed in world.placement.items():
        leader = awake(world.leader(partition))
        able = [each for each in placed if each in world.able]
        if leader is None or len(able) < 2:
            continue
        others = [each for each in able if each != leader.node_id]
        to = world.choices.stream("rest").pick(others)
        writes = answered is not None and len(able) >= world.config.min_insync
        if not any(
            _transfer(world, clients, partition, to, writes=writes) for _ in range(TRANSFERS)
        ):
            failed.append(f"partition {partition} from node {leader.node_id} to node {to}")
    if answered is not None:
        answered()
    return failed


def lose_a_follower(world: World, clients: Asked, answered: Callable[[], None]) -> None:
    """Let a follower die, wait until it is out of sync, write a record, and start it again."""
    config = world.config
    leaders = {each.node_id for each in map(world.leader, world.placement) if each is not None}
    controller = world.controller()
    if controller is not None:
        leaders.add(controller.node_id)
    followers = [each for each in world.able if each not in leaders]
    spare = len(world.able) - 1 >= majority(len(world.nodes))
    if config.acks != -1 or config.replica_lag_ms > _SHORT_LAG_MS or not (followers and spare):
        return
    node = world.choices.stream("rest").pick(followers)
    world.crash(node, "out of sync while nothing is written")
    world.kernel.run(
        world.kernel.now + (config.replica_lag_ms + config.election_timeout_ms) * 1_000
    )
    for partition, placed in world.placement.items():
        if node in placed:
            clients.probe(partition)
    world.kernel.run(world.kernel.now + config.replica_lag_ms * 500)
    world.start(node)
    answered()
    # Time for it to hear who leads what.
    world.kernel.run(world.kernel.now + TIMEOUTS * config.election_timeout_ms * 1_000)


def _transfer(world: World, clients: Asked, partition: int, to: NodeId, *, writes: bool) -> bool:
    """Let the partition's leader hand over to a node. Returns whether that node leads afterwards.
    Also true if the partition has no leader, or if that node leads already.

    With `writes` the leader is given a record, and hands over when it sends that record to a
    follower. Two election timeouts pass. If it has sent nothing by then, or without `writes`, the
    leader hands over now, and two election timeouts pass."""
    leader, kernel = awake(world.leader(partition)), world.kernel
    if leader is None or leader.node_id == to:
        return True
    group = world.replicas(partition)[leader.node_id].group
    end = kernel.now + TIMEOUTS * world.config.election_timeout_ms * 1_000
    if writes:
        trap = Trap("sent", _begin(leader, group, to), leader.node_id, fits=sends_entries(group))
        world.points.set(trap)
        clients.probe(partition)
        kernel.run(end)
        writes = not world.points.lift(trap)
    if not writes:
        leader.enter(hand_over, leader.node, group, to)
        kernel.run(kernel.now + TIMEOUTS * world.config.election_timeout_ms * 1_000)
    now = world.leader(partition)
    return now is not None and now.node_id == to


def _begin(leader: Life, group: GroupId, to: NodeId) -> Callable[[NodeId], None]:
    def act(_: NodeId) -> None:
        leader.kernel.after(0, leader.enter, hand_over, leader.node, group, to)

    return act
