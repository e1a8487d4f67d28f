"""Transcripts of producer tables: commands, and what they answered, as one text file.

A transcript is a list of blocks with an empty line between them: comments, one or more commands,
`----`, the output. Commands may begin with `NAME:`; each name has a table of its own, as a replica
or another partition has. A batch is written PID/EPOCH:FIRST-LAST.

    decide 7/0:0-4                ask the rules, change nothing
    begin 7/0:0-4                 after an Accept
    enqueue 7/0:0-4 #3            it lies at log index 3
    park 7/0:0-4 NAME             NAME waits for it
    abandon 7/0:0-4               it got no place in the log
    apply 7/0:0-4 #3 @100         committed at index 3, base offset 100 (t2: written in term 2)
    write 7/0:0-4 #3 @100         decide, begin, enqueue, apply in one go
    new_term 2                    the leadership is over; from here on term 2
    expire 7 9                    the leader put it into its log
    apply_expire 7 9 #5           the log says so
    longest_idle 2                candidates for eviction
    restart                       snapshot, and restore into a new table
    room 2                        at most 2 producers

Every command but the questions shows the table afterwards: `+` stands before a request in flight.
"""

from ottla.idempotency.decisions import Accept, Decision, Duplicate, Park, Reject
from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.table import ProducerTable, Waiters
from ottla.log.types import BatchIdentity

SEPARATOR = "----"


def play(text: str) -> str:
    """The transcript with the output its commands give now."""
    stage = Stage()
    blocks = []
    for block in text.strip().split("\n\n"):
        script = block.split(f"\n{SEPARATOR}")[0]
        commands = [line for line in script.splitlines() if line and not line.startswith("#")]
        output = [line for command in commands for line in stage.run(command)]
        blocks.append("\n".join([script, SEPARATOR, *output]) if commands else script)
    return "\n\n".join(blocks) + "\n"


class Stage:
    """The tables of one transcript, by name."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}

    def run(self, command: str) -> list[str]:
        """The output lines of one command."""
        name, colon, rest = command.partition(": ")
        if not colon:
            name, rest = "", command
        place = self._places.setdefault(name, Place())
        verb, *words = rest.split()
        lines = getattr(place, f"do_{verb}")(*words)
        return [f"{name}: {line}" if name else line for line in lines]


class Place:
    """One table, and what was begun on it."""

    def __init__(self) -> None:
        self.table = ProducerTable(RULEBOOKS["reference"], 100)
        self.term = 1
        self.begun: dict[BatchIdentity, InFlight] = {}

    def do_room(self, most: str) -> list[str]:
        """Limit the table."""
        self.table.max_producers = int(most)
        return [f"room for {most}"]

    def do_decide(self, batch: str) -> list[str]:
        """Ask the rules."""
        return [shown(self.table.decide(parsed(batch), self.term))]

    def do_begin(self, batch: str) -> list[str]:
        """Begin what was accepted."""
        who = parsed(batch)
        assert isinstance(self.table.decide(who, self.term), Accept), f"{batch} is not accepted"
        self.begun[who] = self.table.begin(who, self.term)
        return self.state()

    def do_enqueue(self, batch: str, index: str) -> list[str]:
        """Give it its place."""
        self.table.enqueued(self.begun[parsed(batch)], int(index[1:]))
        return self.state()

    def do_park(self, batch: str, waiter: str) -> list[str]:
        """Let somebody wait for it."""
        decision = self.table.decide(parsed(batch), self.term)
        assert isinstance(decision, Park), f"{batch} is not parked but {decision}"
        self.table.park(decision.in_flight, waiter)
        return self.state()

    def do_abandon(self, batch: str) -> list[str]:
        """It got no place in the log."""
        return [*woken(self.table.abandon(self.begun[parsed(batch)]), "the error"), *self.state()]

    def do_apply(self, batch: str, index: str, offset: str, term: str = "") -> list[str]:
        """It is committed."""
        written_in = int(term[1:]) if term else self.term
        waiters = self.table.apply(
            parsed(batch), int(offset[1:]), -1, index=int(index[1:]), term=written_in
        )
        return [*woken(waiters, offset), *self.state()]

    def do_write(self, batch: str, index: str, offset: str) -> list[str]:
        """All the way through."""
        decision = self.do_decide(batch)
        self.do_begin(batch)
        self.do_enqueue(batch, index)
        return [*decision, *self.do_apply(batch, index, offset)]

    def do_new_term(self, term: str) -> list[str]:
        """The leadership is over."""
        self.term = int(term)
        lines = []
        for in_flight in self.table.new_term(self.term):
            told = f", and {' '.join(in_flight.waiters)}" if in_flight.waiters else ""
            lines.append(f"dropped {written(in_flight.identity)}{told}")
        return [*lines, *self.state()]

    def do_expire(self, *ids: str) -> list[str]:
        """The leader decided it."""
        self.table.expire([int(each) for each in ids])
        return self.state()

    def do_apply_expire(self, *words: str) -> list[str]:
        """The log says it."""
        *ids, index = words
        count = self.table.apply_expire([int(each) for each in ids], index=int(index[1:]))
        return [f"forgot {count}", *self.state()]

    def do_longest_idle(self, count: str) -> list[str]:
        """Who could be evicted."""
        return [f"idle: {self.table.longest_idle(int(count))}"]

    def do_restart(self) -> list[str]:
        """Go through a snapshot."""
        data, digest = self.table.snapshot(), self.table.digest()
        self.table = ProducerTable(self.table.rulebook, self.table.max_producers)
        self.table.restore(data)
        same = "same" if self.table.digest() == digest else "ANOTHER"
        return [f"restored, {same} digest", *self.state()]

    def state(self) -> list[str]:
        """The table, one line per producer."""
        lines = []
        for pid, known in self.table.describe()["producers"].items():
            window = [f"{first}-{last}@{at}" for first, last, at, _ in known["finished"]]
            flying = [flight(each) for each in known["in_flight"]]
            epoch = "new" if known["epoch"] is None else f"e{known['epoch']}"
            expiring = ["expiring"] if known["expiring"] else []
            lines.append(" ".join(["  ", str(pid), epoch, *expiring, *window, *flying]))
        return lines or ["   nobody"]


def flight(each: dict[str, int]) -> str:
    """A request in flight, as in `+e0:5-9#2`, with what is special about it."""
    place = f"#{each['index']}" if each["index"] else ""
    parked = f"(parked {each['parked']})" if each["parked"] else ""
    return f"+e{each['epoch']}:{each['first']}-{each['last']}{place}{parked}"


def parsed(batch: str) -> BatchIdentity:
    """`7/0:0-4` as an identity; a sequence may be written `max` for 2147483647."""
    pid, _, rest = batch.partition("/")
    epoch, _, span = rest.partition(":")
    first, _, last = span.replace("max", str(2**31 - 1)).partition("-")
    return BatchIdentity(int(pid), int(epoch), int(first), int(last))


def written(who: BatchIdentity) -> str:
    """The identity in the notation of transcripts."""
    return f"{who.producer_id}/{who.epoch}:{who.first_sequence}-{who.last_sequence}"


def shown(decision: Decision) -> str:
    """A decision in one line."""
    label = decision.row.label
    if isinstance(decision, Accept):
        return f"Accept ({label})"
    if isinstance(decision, Duplicate):
        return f"Duplicate @{decision.base_offset}"
    if isinstance(decision, Park):
        return f"Park on {written(decision.in_flight.identity)}"
    assert isinstance(decision, Reject)
    barrier = ", after a barrier" if decision.barrier else ""
    return f"Reject {decision.reason.name}{barrier} ({label})"


def woken(waiters: Waiters, answer: str) -> list[str]:
    """Who was woken with what."""
    return [f"woken with {answer}: {' '.join(waiters)}"] if waiters else []
