"""`ProducerIds`: hands out producer ids on one node, from blocks that the controller gives.

An id is never given out twice: a block belongs to one incarnation of one node, and a restart drops
the rest of the block. A request that finds no id waits for the next block, at most `WITHIN`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import AllocateProducerIds, Control
from ottla.idempotency.id_blocks import IdBlock, IdPool
from ottla.log.types import ProducerEpoch, ProducerId, Unpacked
from ottla.raft.types import Micros, NodeId

WITHIN: Micros = 5_000_000

HandOut: TypeAlias = Callable[[ErrorCode, ProducerId, ProducerEpoch], None]


class ProducerIds:
    """See the module's docstring. `control` sends a command to the controller's leader."""

    def __init__(self, node: NodeId, *, control: Control, now: Callable[[], Micros]):
        self._node = node
        self._control = control
        self._now = now
        self._pool = IdPool()
        self._waiting: deque[HandOut] = deque()

    def hand_out(self, done: HandOut) -> None:
        """Call `done` with a new id and epoch 0, or with COORDINATOR_LOAD_IN_PROGRESS if no block
        of ids arrives in time."""
        self._waiting.append(done)
        self._serve()

    def _serve(self) -> None:
        while self._waiting and len(self._pool):
            producer_id = self._pool.take()
            assert producer_id is not None, f"{len(self._pool)} ids left and none to take"
            self._waiting.popleft()(ErrorCode.NONE, producer_id, 0)
        if self._pool.wants_block():
            self._pool.asked()
            asked = AllocateProducerIds(self._node)
            self._control(asked, self._block_came, self._now() + WITHIN)

    def _block_came(self, error: ErrorCode, result: dict[str, Unpacked]) -> None:
        if error is ErrorCode.NONE:
            self._pool.add(IdBlock(**result))
            self._serve()
            return
        self._pool.failed()
        while self._waiting:
            self._waiting.popleft()(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
