"""Producer ids: the controller gives each node blocks of 1000 ids, the node gives them to clients.

`IdBlocks` is part of the controller's state machine. The next block follows from the commands in
the controller's log alone, so no block is given out twice, whichever node leads. `IdPool` lives on
a node and is not stored. A node that restarts drops the rest of its block, because it does not know
which ids of it are used. So ids are unique, but some are never used (KIP-730, blocks of 1000).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ottla.log.types import ProducerId

BLOCK_SIZE = 1000
"""Ids in a block (KIP-730)."""
LOW_WATER = 100
"""A pool with fewer ids left asks for its next block."""


class IdBlock(NamedTuple):
    """The ids first..last, for one node."""

    node: int
    first: ProducerId
    last: ProducerId


class IdBlocks:
    """On the controller: where the next block begins. `next_id` belongs into its snapshot."""

    __slots__ = ("next_id",)

    def __init__(self, next_id: ProducerId = 0) -> None:
        self.next_id = next_id
        """The lowest id that is in no block yet."""

    def allocate(self, node: int) -> IdBlock:
        """Apply the command that asks for a block: the next 1000 ids, for `node`."""
        first = self.next_id
        self.next_id = first + BLOCK_SIZE
        return IdBlock(node, first, self.next_id - 1)


class IdPool:
    """On a node: the ids that InitProducerId answers. If `wants_block`, ask the controller."""

    __slots__ = ("_asked", "_blocks", "_next", "_seen")

    def __init__(self) -> None:
        self._blocks: deque[IdBlock] = deque()
        self._next: ProducerId = 0
        self._seen: ProducerId = -1
        self._asked = False

    def __len__(self) -> int:
        """How many ids are left."""
        if not self._blocks:
            return 0
        rest = sum(block.last - block.first + 1 for block in self._blocks)
        return rest - (self._next - self._blocks[0].first)

    def take(self) -> ProducerId | None:
        """An id that is never given out again; None while the node has no block."""
        if not self._blocks:
            return None
        producer_id = self._next
        if producer_id == self._blocks[0].last:
            self._blocks.popleft()
            self._next = self._blocks[0].first if self._blocks else 0
        else:
            self._next = producer_id + 1
        return producer_id

    def wants_block(self) -> bool:
        """Whether to ask the controller now: few ids are left and no request waits for its
        answer."""
        return not self._asked and len(self) < LOW_WATER

    def asked(self) -> None:
        """The request for a block was sent: `add` or `failed` ends it."""
        self._asked = True

    def failed(self) -> None:
        """The request failed; the caller may ask again."""
        self._asked = False

    def add(self, block: IdBlock) -> bool:
        """Take the block of an answer. False if this block or a later one was added before: an
        answer that arrives twice must not give its ids out twice."""
        self._asked = False
        if block.first <= self._seen:
            return False
        self._seen = block.last
        if not self._blocks:
            self._next = block.first
        self._blocks.append(block)
        return True
