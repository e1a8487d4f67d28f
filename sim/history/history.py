"""The history of a run: one row per event, in the order in which things happened.

A run is judged only by these rows: online by listeners, at the end by the checkers, and in SQL over
a sweep, where a row has two more columns, `run_id` and `seed`.

Rows of clients and of the final logs are about one *record*, rows of nodes about one *entry*. Three
numbers must not be mixed up: `log_index` counts entries of a Raft log from 1 and names the last one
(inclusive), `off` counts records from 0, `seq` is a producer's sequence.

| kind | who | what the columns say |
|---|---|---|
| inv | client | record handed to a producer: `op value seq acks`, `aux` its time, `code` rules |
| send | client | a batch leaves: `node op` (its first) `pid epoch seq seq_last`, `aux` attempt |
| ok | client | record acknowledged: `off` (-1: unknown, with acks=0), `acks`, `node` |
| fail | client | record certainly not stored: `code`; its `op` is over |
| info | client | record given up, its outcome unknown: `code`; its `op` is over |
| error | client | an answer that is retried: `code node op pid epoch seq seq_last` |
| fetch | consumer | a fetch was answered: `node term`, `hw` (exclusive), `off` asked, `aux` (15) |
| learn | consumer | a question was answered: `node`, `code` what, `value off` (16), `aux` (15) |
| poll | consumer | record delivered: `off value pid epoch seq` |
| close | client | its connection to `node` is lost: `code` why |
| check | client | an odd produce request was answered: `node partition code` (10) |
| step | client | a request of the sequential client was answered: `op` its step, `node code` (19) |
| topic | client | about topic `op` of `aux` partitions: `code` (13), by `node` |
| topic | node | at the end: it knows topic `op`, of `aux` partitions; `code` (13) |
| late | node | a request of `client`, `code`, took `value` us and may take `aux` us (14) |
| term | node | `term` is written (not yet durable) |
| vote | node | vote for `cand` in `term` is written; with `aux` 1: now it leaves the node |
| leader | node | leads `term`; `log_index` its first entry; `chain` of the one before; `aux` (5) |
| stepdown | node | no longer leads `term`; `code` the role it has now |
| append | node | entry written: as *apply*, and `aux` 1 on leaders |
| truncate | node | all from `log_index`, `off` on is cut; `code` role (L F C), `aux` its commit |
| durable | node | all up to `log_index` of the present log is durable; `off` exclusive |
| commit | node | in `term`, up to `log_index`; `hw` (exclusive), `quorum`; `aux` 1 on leaders |
| apply | node | entry applied: `term log_index off pid epoch seq seq_last chain`, `aux` (9); |
| | | `hw` (18) |
| state | node | `state_hash` of the producer table after applying up to `log_index` (1) |
| expire | node | producer `pid` is forgotten by the decision at `log_index`, applied here (8) |
| snapshot | node | ends in `log_index`: `code` (2), `off` the log start, `state_hash aux` |
| answer | node | a produce ticket is done: `client pid epoch seq seq_last off acks code`, op (6); |
| | | where it names another leader, `cand term` |
| insync | node | an answer that needs `quorum` in sync: `code aux acks value hw off` (12) |
| decide | node | what to do with batch `pid epoch seq seq_last`: `code term log_index off` (7) |
| logstart | node | its log start is `off`, `log_index` applied; `hw`; `code` *final*: at the end |
| epoch | node | in its epoch history: `term` from `off` on; `code` *final*: at the end (11) |
| named | node | it says that `cand` leads in `term`; `code` *final*: what it says at the end |
| forbidden | node | its step is not allowed (`sim/specification`): `code` which, and why not (20) |
| start | node | a new life (`inc`) begins on its disk with `term`; `log_index` its log's end (3) |
| crash | node | a life ends (3): `code` where; `aux` appends lost; `log_index off` what is left |
| pause, resume | node | the process is frozen, goes on |
| fault | nemesis | anything done on purpose: `code` says it in words |
| beyond | script | what Raft cannot survive: `node` and `code` of a disk, or `pid` given twice |
| phase | run | `code`: load (17), heal, settle, rest, rested, done, excused (4); or broke |
| final | node | each record of each log at the end: as *poll*, `term chain`, `aux` 1: committed |

(1) Not if the table is ahead of the log, as one from a snapshot may be. Node 0 is the reference
model, which replays the committed log. (2) `code` is *installed*: it replaced the log, or *taken*:
the log now begins after it. `state_hash` is that of the table in it, which belongs to log index
`aux`. (3) One row per replica on the node. (4) *heal*: one row per `node` that will be up and
connected from here on; *excused*: `partition` need not recover, the run says why. (5) How many
requests of an earlier leadership its producer table still holds; must be 0. (6) With acks=0 only:
`op` of the batch's first record. (7) `code`: accept, duplicate (`off` of the original), park, or
why it is refused; `log_index`: what was applied by then; `client`, its connection (`op`, counted on
the node) and how many requests of that came before (`aux`). A row of node 0 after it is what the
reference model would have decided instead. (8) Records from `off` on follow that decision; its
author had applied the log up to `aux`. (9) Of a deletion: the log start from here on; if that is
inside a batch, no snapshot shows it. (10) A row of node 0 after it: what Kafka answers. (11) From
each new leader too; `log_index`: what it had applied. (12) Only if more than one must be in sync,
by a model of what its leader was told. Of a produce request with acks=all: at least `aux` and at
most `acks` replicas are in sync, `value` by its own count. *FETCH*: it shows `hw`, but all from
`off` on must be held back. *HELD*: it shows `hw`, but all below `off` was committed when it was
asked. (13) Of a client:
*create* or *delete* is asked for, or how that ended: *created*, *deleted*, the name of an error, or
in small letters why there was no answer. Of a node: *listed*, without `op`: it was examined;
*known*; *unserved*: it has no replica of a partition that is placed on it; *leftover*: its store
holds a group (`log_index`) that is no topic's. Without a node: *unled*: no node leads `partition`.
(14) Only if that is longer. A row without a node: `aux` requests lost their connection before they
were answered. (15) How many rows there were when it asked: the answer was true at some time between
that row and this one. An *error* of a consumer has it too, with the `off` it asked for, the leader
epoch it named (`term`) and that of the record it has before (`value`). (16) `code`: latest;
earliest; leader: `cand` in `term`; time: of the first record not older than `value`, which is of
`hw`; epoch: where epoch `value` ended, `term` the one found; diverging: the same, for a fetch from
`hw` by a reader with that epoch. `off` -1: none. (17) *load*: readers may have to wait for `quorum`
replicas in sync, that is, behind for less than `aux`; producers are forgotten after `value`, if
that is not 0. (18) Where the log ends after that entry. (19) What was asked and answered. A row of
node 0 after it: what a model of the topic says instead. (20) Without a partition: it is a step of
another group.

`chain` and `state_hash` fit a signed 64-bit column. `chain` is over the log up to and including
that entry, so equal chains mean equal prefixes. A consumer that starts again is another `client`.
`inc` counts the lives of a node from 1. Times are microseconds of the simulator's own clock; no
node can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import msgpack

from ottla.raft.types import Micros

KINDS = (
    "inv",
    "send",
    "ok",
    "fail",
    "info",
    "error",
    "fetch",
    "learn",
    "poll",
    "close",
    "check",
    "step",
    "topic",
    "late",
    "term",
    "vote",
    "leader",
    "stepdown",
    "append",
    "truncate",
    "durable",
    "commit",
    "apply",
    "state",
    "expire",
    "snapshot",
    "logstart",
    "epoch",
    "named",
    "answer",
    "insync",
    "decide",
    "forbidden",
    "start",
    "crash",
    "pause",
    "resume",
    "fault",
    "beyond",
    "phase",
    "final",
)
CONTROLLER_PARTITION = -1
"""The number of the controller's group in rows."""


class Event(NamedTuple):
    """One row. Columns that a kind does not use are None; the table in the module's docstring lists
    the columns of each kind."""

    eid: int
    """Place in the total order of the run, from 0 without gaps."""
    t_us: Micros
    kind: str
    node: int | None = None
    inc: int | None = None
    client: int | None = None
    op: int | None = None
    """Number of the record among all that clients were handed; of the first one for a batch."""
    partition: int | None = None
    """Partition of the one topic; -1 is the controller's group."""
    term: int | None = None
    log_index: int | None = None
    off: int | None = None
    pid: int | None = None
    epoch: int | None = None
    seq: int | None = None
    seq_last: int | None = None
    value: int | None = None
    """The value that a record holds: unique per record, the same however often it is sent."""
    code: str | None = None
    chain: int | None = None
    cand: int | None = None
    hw: int | None = None
    state_hash: int | None = None
    aux: int | None = None
    acks: int | None = None
    quorum: int | None = None

    def told(self) -> dict[str, int | str]:
        """The columns of this row that have a value, for people and JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}


COLUMNS = Event._fields
_ROW = tuple.__new__

Listener: TypeAlias = Callable[[Event], None]


class History:
    """The rows of one run, and the listeners that see them as they come.

    `now` is the simulator's clock. Listeners are called at once, in the order in which they were
    added; an exception of a listener ends the run.
    """

    __slots__ = ("_listeners", "_now", "rows")

    def __init__(self, now: Callable[[], Micros]):
        self.rows: list[Event] = []
        self._now = now
        self._listeners: dict[str, tuple[Listener, ...]] = dict.fromkeys(KINDS, ())

    def listen(self, kinds: Iterable[str], listener: Listener) -> None:
        """Call `listener` with each new row of these kinds."""
        for kind in kinds:
            self._listeners[kind] = (*self._listeners[kind], listener)

    def add(
        self,
        kind: str,
        *,
        node: int | None = None,
        inc: int | None = None,
        client: int | None = None,
        op: int | None = None,
        partition: int | None = None,
        term: int | None = None,
        log_index: int | None = None,
        off: int | None = None,
        pid: int | None = None,
        epoch: int | None = None,
        seq: int | None = None,
        seq_last: int | None = None,
        value: int | None = None,
        code: str | None = None,
        chain: int | None = None,
        cand: int | None = None,
        hw: int | None = None,
        state_hash: int | None = None,
        aux: int | None = None,
        acks: int | None = None,
        quorum: int | None = None,
    ) -> Event:
        """Add a row for something that happens now; columns by name. They are spelled out because
        this is called so often: a dictionary would cost three times as much."""
        where = (node, inc, client, op, partition, term, log_index, off)
        what = (pid, epoch, seq, seq_last, value, code, chain, cand)
        more = (hw, state_hash, aux, acks, quorum)
        event = _ROW(Event, (len(self.rows), self._now(), kind, *where, *what, *more))
        self.rows.append(event)
        for listener in self._listeners[kind]:
            listener(event)
        return event

    def digest(self) -> bytes:
        """16 bytes over every row: equal digests mean equal histories."""
        return digest_of(self.rows)


def digest_of(rows: Iterable[Event]) -> bytes:
    """16 bytes over rows: the same in every process and on every Python."""
    return blake2b(msgpack.packb(list(rows)), digest_size=16).digest()
