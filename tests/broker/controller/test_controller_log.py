"""Whatever happens to its leaders, the controller's state is a function of its log.

A Hypothesis machine elects, commits and truncates as Raft allows; after every step the nodes are
compared with a replay of the committed log, and with a snapshot plus what came after it.
"""

from __future__ import annotations

from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker_control import CLUSTER_ID, ControllerDriver, controller, ticket
from ottla.broker.controller.catalog import Catalog
from ottla.broker.controller.commands import PlaceTopic, logged
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import AllocateProducerIds, Command, CreateTopic, DeleteTopic
from ottla.broker.turn.tickets import ControlTicket
from ottla.raft.types import Entry
from searches import examples

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c"])
NODES = (1, 2, 3)


def commands() -> st.SearchStrategy[Command]:
    creation = st.builds(
        CreateTopic,
        NAMES,
        partitions=st.integers(-1, 4),
        replication_factor=st.sampled_from([-1, 1, 2, 3, 4]),
        validate_only=st.booleans(),
    )
    assigned = st.builds(
        CreateTopic,
        NAMES,
        assignments=st.just(((0, (2, 3)), (1, (1, 2)))),
        configs=st.just({"retention.ms": "-1"}),
    )
    deletion = st.builds(DeleteTopic, NAMES)
    return creation | assigned | deletion | st.builds(AllocateProducerIds, st.sampled_from(NODES))


class Controllers(RuleBasedStateMachine):
    """Three controllers and an election as the adversary likes it, within what Raft allows.

    Whoever has every committed entry may win; what the old leader appended and did not commit is
    replaced as soon as the new one replicates.
    """

    def __init__(self) -> None:
        super().__init__()
        self.nodes = [controller(NODES, compact_every=5) for _ in NODES]
        self.leader = 0
        self.term = 0
        self.committed: list[Entry] = []
        self.asked: list[ControlTicket] = []
        self.answered: list[ControlTicket] = []
        self.elect(0)

    @property
    def leading(self) -> ControllerDriver:
        return self.nodes[self.leader]

    def collect(self, node: ControllerDriver) -> None:
        self.answered += [each for each in node.answered() if isinstance(each, ControlTicket)]

    @rule(command=commands(), span=st.integers(1, 50))
    def ask(self, command: Command, span: int) -> None:
        asked = ticket(command, self.leading.now + span)
        self.asked.append(asked)
        self.leading.submit(asked)

    @rule(refuse=st.booleans())
    def propose(self, refuse: bool) -> None:
        self.leading.propose(refuse=refuse)

    @rule(node=st.sampled_from([0, 1, 2]))
    def replicate_and_commit(self, node: int) -> None:
        self.nodes[node].receive(self.leading.log)
        self.committed = list(self.leading.log)
        self.leading.commit()

    @rule(node=st.sampled_from([0, 1, 2]))
    def learn_of_commits(self, node: int) -> None:
        """A follower takes part of the leader's log and learns of the commits in it."""
        self.nodes[node].receive(self.committed)
        self.nodes[node].commit(len(self.committed))

    @rule(node=st.sampled_from([0, 1, 2]))
    def elect(self, node: int) -> None:
        candidate = self.nodes[node]
        if candidate.log[: len(self.committed)] != self.committed:
            candidate.receive(self.committed)
        self.term += 1
        self.leading.follow(self.term)
        self.leader = node
        candidate.lead(self.term)

    @rule(span=st.integers(1, 100))
    def time_passes(self, span: int) -> None:
        for each in self.nodes:
            each.sleep(span)

    @invariant()
    def everybody_holds_what_a_replay_of_the_log_gives(self) -> None:
        for each in self.nodes:
            replay = controller(NODES)
            replay.receive(self.committed[: each.committed])
            replay.commit()
            assert everything(each.machine.catalog) == everything(replay.machine.catalog)

    @invariant()
    def a_snapshot_and_the_entries_behind_it_give_the_same(self) -> None:
        for each in self.nodes:
            for compaction in each.compactions[-1:]:
                fresh = Catalog.decode(CLUSTER_ID, compaction.data)
                replay = Catalog(CLUSTER_ID)
                for index, entry in enumerate(self.committed[: compaction.index], 1):
                    apply(replay, index, entry)
                assert everything(fresh) == everything(replay)
                for index, entry in enumerate(self.committed[: each.committed], 1):
                    if index > compaction.index:
                        apply(fresh, index, entry)
                assert everything(fresh) == everything(each.machine.catalog)

    @invariant()
    def no_group_topic_id_or_producer_id_is_given_out_twice(self) -> None:
        groups: list[int] = []
        ids: list[bytes] = []
        blocks: list[int] = []
        catalog = Catalog(CLUSTER_ID)
        for index, entry in enumerate(self.committed, 1):
            before = catalog.next_group
            result = apply(catalog, index, entry)
            if "partitions" in result:
                groups += range(before, catalog.next_group)
                ids.append(result["topic_id"])
            elif "last" in result:
                blocks += range(result["first"], result["last"] + 1)
        assert len(set(groups)) == len(groups)
        assert len(set(ids)) == len(ids)
        assert len(set(blocks)) == len(blocks)
        alive = [part.group for topic in catalog.topics.values() for part in topic.partitions]
        assert sorted(alive) == [group for group in groups if not catalog.deleted(group)]

    @invariant()
    def every_ticket_is_answered_at_most_once_and_those_told_yes_are_in_the_log(self) -> None:
        for each in self.nodes:
            self.collect(each)
        assert len({id(each) for each in self.answered}) == len(self.answered)
        for done in self.answered:
            asked = done.command
            validated = isinstance(asked, CreateTopic) and asked.validate_only
            if done.error is ErrorCode.NONE and not validated:
                found = logged(cast(bytes, self.committed[done.index - 1].payload))
                kind = PlaceTopic if isinstance(asked, CreateTopic) else type(asked)
                assert isinstance(found, kind)
                assert getattr(found, "name", None) == getattr(asked, "name", None)

    def teardown(self) -> None:
        """Losing leadership leaves no ticket open."""
        for each in self.nodes:
            each.follow(self.term + 1)
            self.collect(each)
            assert each.machine.deadline() is None
        assert {id(each) for each in self.answered} == {id(each) for each in self.asked}


def everything(catalog: Catalog) -> tuple[object, ...]:
    """A catalog's whole state, and what it would do next."""
    loads = [(catalog.loads.leads(node), catalog.loads.holds(node)) for node in NODES]
    return catalog.encode(), loads, catalog.loads.place(NODES, 4, 2), catalog.id_blocks.next_id


def apply(catalog: Catalog, index: int, entry: Entry) -> dict[str, Any]:
    """Apply one committed entry to a catalog; its result, empty if it was refused or no command."""
    if not entry.payload:
        return {}
    assert isinstance(entry.payload, bytes)
    outcome = catalog.apply(index, logged(entry.payload))
    return outcome.result if outcome.error is ErrorCode.NONE else {}


TestControllers = Controllers.TestCase
TestControllers.settings = settings(
    max_examples=examples(60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
