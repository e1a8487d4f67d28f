"""The rules of the `reference` profiles and of Kafka once more, slow and plain, to compare the
table with.

State is a list of what was applied and a list of what was begun; every question replays both from
the beginning. Nothing here is shared with the package but the identity tuple.
"""

from dataclasses import dataclass, field

from ottla.log.types import BatchIdentity

WINDOW = 5
KAFKAS = {
    "epoch-start-missing": "epoch-out-of-order",
    "tail-lost": "without-order",
    "in-flight": "appended",
    "gap": "out-of-order",
}
"""Rows of Kafka by those of the reference that decide the same."""


@dataclass
class Begun:
    """A request in flight."""

    who: BatchIdentity
    term: int
    index: int = 0


@dataclass
class Known:
    """What a replay says of one producer: its epoch, and all its batches in that epoch."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class NaiveTable:
    """A producer table as a list of events."""

    room: int
    strict: bool = False
    """Profile `reference-strict`."""
    kafka: bool = False
    """Profile `kafka-4.3`: its rows have other labels, and a batch counts once it is begun."""
    before_kip_360: bool = False
    """With `kafka`, profile `kafka-2.4`: an unknown producer begins at 0, and epoch -1 has an
    order."""
    applied: list[tuple[BatchIdentity, int] | int] = field(default_factory=list)
    """A batch with its offset, or the id of a producer that expired."""
    begun: list[Begun] = field(default_factory=list)
    expiring: set[int] = field(default_factory=set)

    def replay(self) -> dict[int, Known]:
        """The applied state."""
        state: dict[int, Known] = {}
        for event in self.applied:
            if isinstance(event, int):
                state.pop(event, None)
                continue
            (pid, epoch, first, last), offset = event
            if pid not in state or state[pid].epoch != epoch:
                state[pid] = Known(epoch)
            state[pid].batches.append((first, last, offset))
        return state

    def goes_on(self, who: BatchIdentity) -> bool:
        """Whether that producer was known and is forgotten, or about to be, in front of this."""
        last: BatchIdentity | None = None
        left: BatchIdentity | None = None
        for event in self.applied:
            if event == who.producer_id:
                left, last = last or left, None
            elif not isinstance(event, int) and event[0].producer_id == who.producer_id:
                last = event[0]
        if who.producer_id in self.expiring:
            left = last or left
        if left is None or left.epoch != who.epoch:
            return False
        following = 0 if left.last_sequence == 2**31 - 1 else left.last_sequence + 1
        return who.epoch == -1 or who.first_sequence == following

    def first_of_unknown(self, who: BatchIdentity) -> str:
        """Label of the row for an unknown producer, there being room for it."""
        if who.first_sequence == 0:
            return "unknown-start"
        if self.before_kip_360:
            return "unknown-elsewhere"
        if not self.strict:
            return "unknown-resumes"
        return "forgotten-resumes" if self.goes_on(who) else "unknown-start-missing"

    def decide(self, who: BatchIdentity, term: int) -> tuple[str, int | None]:
        """Label of the row, and the offset if it is a duplicate."""
        label, offset = self.decided(who, term)
        return (KAFKAS.get(label, label) if self.kafka else label), offset

    def decided(self, who: BatchIdentity, term: int) -> tuple[str, int | None]:
        """The same with the labels of the reference."""
        pid, epoch, first, last = who
        if pid < 0 or not -1 <= epoch < 2**15 or not 0 <= first < 2**31 or not 0 <= last < 2**31:
            return "malformed", None
        state = {p: k for p, k in self.replay().items() if p not in self.expiring}
        mine = [b for b in self.begun if b.who.producer_id == pid]
        if pid not in state and not mine:
            known = set(state) | {b.who.producer_id for b in self.begun}
            if len(known) >= self.room:
                return "table-full", None
            return self.first_of_unknown(who), None
        current = mine[-1].who.epoch if mine else state[pid].epoch
        if epoch == current:
            return self.in_epoch(who, term, state.get(pid), mine)
        if epoch < current:
            return "stale-epoch", None
        if current == -1:
            return self.first_of_unknown(who), None
        return ("epoch-start" if first == 0 else "epoch-start-missing"), None

    def in_epoch(
        self, who: BatchIdentity, term: int, stored: Known | None, mine: list[Begun]
    ) -> tuple[str, int | None]:
        """The same of a request of the producer's current epoch."""
        _, epoch, first, last = who
        batches = stored.batches[-WINDOW:] if stored and stored.epoch == epoch else []
        tail = mine[-1].who.last_sequence if mine else batches[-1][1]
        if self.kafka:
            mine = [each for each in mine if each.who.epoch == epoch][-WINDOW:]
            room = WINDOW - len(mine)
            batches = batches[-room:] if room else []
        for known_first, known_last, offset in batches:
            if (known_first, known_last) == (first, last):
                return "duplicate", offset
        if any(b.who == who and b.term == term for b in mine):
            return "in-flight", None
        if epoch == -1 and not self.before_kip_360:
            return "tail-lost", None
        following = 0 if tail == 2**31 - 1 else tail + 1
        return ("next" if first == following else "gap"), None
