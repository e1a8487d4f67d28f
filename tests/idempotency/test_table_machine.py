"""The producer table of a leader and of a follower, under everything that happens to a log.

A model keeps the log as a list, what is begun as a list, and the naive rules of
`idempotency_naive`. After every step: decisions are those of the naive rules, the applied state is
a replay of the log's prefix (sim-I25), and what is in flight shows in nothing but the flights.
After a change of term the table is the replay and nothing else (sim-I26).
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from idempotency_naive import Begun, NaiveTable
from ottla.idempotency.decisions import Accept, Duplicate, Park
from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.sessions import make_table
from ottla.log.types import BatchIdentity
from searches import examples

ROOM = 3
MAX = 2**31 - 1
producers = st.integers(1, 4)


@dataclass
class Entry:
    """One entry of the model's log: a batch or an expiry."""

    term: int
    who: BatchIdentity | None = None
    ids: tuple[int, ...] = ()


@dataclass
class Flying:
    """A request in flight, as the machine knows it."""

    real: InFlight
    naive: Begun
    waiters: list[int] = field(default_factory=list)


def applied(table, index, entry):
    """Apply one entry of the log as every replica does: offsets and times follow from the index."""
    if entry.who is None:
        table.apply_expire(entry.ids, index=index)
        return []
    return table.apply(entry.who, index * 100, index, index=index, term=entry.term, now=index)


class TableMachine(RuleBasedStateMachine):
    rulebook = RULEBOOKS["reference"]

    def __init__(self):
        super().__init__()
        self.term = 1
        self.log: list[Entry] = []
        self.committed = 0
        self.leader = self.fresh()
        self.follower = self.fresh()
        self.reached = 0
        name = self.rulebook.name
        self.naive = NaiveTable(
            ROOM,
            strict=name == "reference-strict",
            kafka=name.startswith("kafka"),
            before_kip_360=name == "kafka-2.4",
        )
        self.flying: list[Flying] = []
        self.tokens = 0

    def fresh(self):
        return make_table(self.rulebook, ROOM)

    # ---- requests

    def sequence(self, data, producer):
        """A first sequence near what this producer did last, so that every row is met."""
        queued = [f.naive.who for f in self.flying if not f.naive.index]
        written = [each.who for each in self.log if each.who] + queued
        mine = [who for who in written if who.producer_id == producer][-8:]
        starts = [0, MAX - 1, *((who.last_sequence + 1) & MAX for who in mine[-1:])]
        return data.draw(st.sampled_from([*starts, starts[-1], *(w.first_sequence for w in mine)]))

    @rule(data=st.data(), producer=producers, epoch=st.sampled_from([0, 0, 0, 1, 2, -1]))
    def request(self, data, producer, epoch):
        first = self.sequence(data, producer)
        who = BatchIdentity(producer, epoch, first, (first + data.draw(st.integers(0, 2))) & MAX)
        label, offset = self.naive.decide(who, self.term)
        decision = self.leader.decide(who, self.term)
        assert decision.row.label == label
        if isinstance(decision, Duplicate):
            assert decision.base_offset == offset
        elif isinstance(decision, Park):
            self.tokens += 1
            self.leader.park(decision.in_flight, self.tokens)
            flying = next(f for f in self.flying if f.naive.who == who)
            assert flying.real is decision.in_flight
            flying.waiters.append(self.tokens)
        elif isinstance(decision, Accept):
            real = self.leader.begin(who, self.term)
            self.flying.append(Flying(real, Begun(who, self.term)))
            self.naive.begun.append(self.flying[-1].naive)

    @rule(who=st.builds(BatchIdentity, *[st.integers(-2, 2**31)] * 4))
    def wild_request(self, who):
        label, _ = self.naive.decide(who, self.term)
        assert self.leader.decide(who, self.term).row.label == label

    def waiting_for_a_place(self):
        return [f for f in self.flying if not f.naive.index]

    @precondition(waiting_for_a_place)
    @rule()
    def enqueue(self):
        flying = self.waiting_for_a_place()[0]
        self.log.append(Entry(self.term, flying.naive.who))
        flying.naive.index = len(self.log)
        self.leader.enqueued(flying.real, len(self.log))

    @precondition(waiting_for_a_place)
    @rule(data=st.data())
    def abandon(self, data):
        flying = data.draw(st.sampled_from(self.waiting_for_a_place()))
        assert list(self.leader.abandon(flying.real)) == flying.waiters
        self.forget(flying)

    def forget(self, flying):
        self.flying.remove(flying)
        self.naive.begun.remove(flying.naive)

    # ---- expiry

    def idle(self):
        """By last applied index; never with a request in flight, never twice."""
        busy = {f.naive.who.producer_id for f in self.flying} | self.naive.expiring
        last: dict[int, int] = {}
        for index, entry in enumerate(self.log[: self.committed], 1):
            for producer in entry.ids:
                last.pop(producer, None)
            if entry.who:
                last[entry.who.producer_id] = index
        return [
            (index, p) for p, index in sorted(last.items(), key=lambda i: i[1]) if p not in busy
        ]

    @rule(count=st.integers(1, 2), before=st.integers(0, 20))
    def expire(self, count, before):
        idle = self.idle()
        assert self.leader.idle_since(before) == [p for seen, p in idle if seen < before]
        victims = self.leader.longest_idle(count)
        assert victims == [producer for _, producer in idle][:count]
        if victims:
            self.leader.expire(victims)
            self.naive.expiring |= set(victims)
            self.log.append(Entry(self.term, ids=tuple(victims)))

    # ---- the log

    @precondition(lambda self: self.committed < len(self.log))
    @rule()
    def commit(self):
        entry = self.log[self.committed]
        self.committed += 1
        index = self.committed
        woken = applied(self.leader, index, entry)
        mine = [f for f in self.flying if f.naive.index == index]
        assert list(woken) == [waiter for f in mine for waiter in f.waiters]
        for flying in mine:
            self.forget(flying)
        self.note(index, entry)

    def note(self, index, entry):
        if entry.who:
            self.naive.applied.append((entry.who, index * 100))
        for producer in entry.ids:
            self.naive.applied.append(producer)
            self.naive.expiring.discard(producer)

    @rule(data=st.data(), foreign=st.booleans())
    def leadership_moves_away_and_back(self, data, foreign):
        """The tail is cut anywhere, another leader may write, then this one syncs and leads."""
        dropped = self.leader.new_term(self.term + 2)
        assert {id(f): f.waiters for f in dropped} == {id(f.real): f.waiters for f in self.flying}
        for producer in range(1, 5):
            mine = [f for f in self.flying if f.naive.who.producer_id == producer]
            assert [f for f in dropped if f.identity.producer_id == producer] == [
                f.real for f in mine
            ]
        self.flying, self.naive.begun, self.naive.expiring = [], [], set()
        assert self.leader.describe() == self.replay(self.committed).describe()
        del self.log[data.draw(st.integers(self.committed, len(self.log))) :]
        if foreign:
            self.log.append(Entry(self.term + 1, BatchIdentity(data.draw(producers), 1, 0, 1)))
        self.term += 2
        while self.committed < len(self.log):
            self.commit()

    # ---- replicas

    @precondition(lambda self: self.reached < self.committed)
    @rule()
    def follow(self):
        self.reached += 1
        assert not applied(self.follower, self.reached, self.log[self.reached - 1])

    @rule(data=st.data())
    def follower_restarts_from_a_snapshot_that_is_ahead(self, data):
        """The snapshot stands at the commit; what is replayed over it may start far before."""
        data_bytes = self.leader.snapshot()
        self.follower = self.fresh()
        self.follower.restore(data_bytes)
        assert self.follower.snapshot() == data_bytes
        for index in range(data.draw(st.integers(0, self.committed)), self.committed):
            assert not applied(self.follower, index + 1, self.log[index])
        self.reached = self.committed
        assert self.follower.longest_idle() == list(self.replay(self.committed).longest_idle())

    def replay(self, upto):
        table = self.fresh()
        for index, entry in enumerate(self.log[:upto], 1):
            applied(table, index, entry)
        return table

    @invariant()
    def the_applied_state_is_a_replay_of_the_log(self):
        for table, upto in ((self.leader, self.committed), (self.follower, self.reached)):
            replayed = self.replay(upto)
            assert table.digest() == replayed.digest()
            assert len(table) == len(replayed)
            state = replayed.describe()["producers"]
            naive = self.naive.replay() if upto == self.committed else None
            if naive is not None:
                assert {
                    p: (s["epoch"], [(f[0], f[1], f[2]) for f in s["finished"]])
                    for p, s in state.items()
                } == {p: (k.epoch, k.batches[-5:]) for p, k in naive.items()}

    @invariant()
    def the_flights_are_those_begun(self):
        flights = {id(f) for f in self.leader.in_flight()}
        assert flights == {id(f.real) for f in self.flying}
        assert not list(self.follower.in_flight())


class StrictTableMachine(TableMachine):
    rulebook = RULEBOOKS["reference-strict"]


class KafkasTableMachine(TableMachine):
    rulebook = RULEBOOKS["kafka-4.3"]


class OlderKafkasTableMachine(TableMachine):
    rulebook = RULEBOOKS["kafka-2.4"]


TestTableMachine = TableMachine.TestCase
TestOlderKafkasTableMachine = OlderKafkasTableMachine.TestCase
TestKafkasTableMachine = KafkasTableMachine.TestCase
TestStrictTableMachine = StrictTableMachine.TestCase
SETTINGS = settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
TestTableMachine.settings = TestStrictTableMachine.settings = SETTINGS
TestKafkasTableMachine.settings = TestOlderKafkasTableMachine.settings = SETTINGS
