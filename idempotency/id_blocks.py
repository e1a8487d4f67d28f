"""Producer ids: the controller gives out blocks of 1000, a node hands out the ids of its blocks.

`IdBlocks` is part of the controller's state machine: the next block follows from the commands in
its log and nothing else, so no block is given out twice, whoever leads. `IdPool` lives on a node
and is not stored: a node that restarts abandons the rest of its block, because it cannot know which
ids it gave away. Ids are therefore unique but not dense (Kafka: KIP-730, blocks of 1000).
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
    """Controller side: where the next block begins. Put `next_id` into the snapshot."""

    __slots__ = ("next_id",)

    def __init__(self, next_id: ProducerId = 0) -> None:
        self.next_id = next_id
        """First id that no block has."""

    def allocate(self, node: int) -> IdBlock:
        """Apply the command *a block for this node*: the next ids, given out once and for all."""
        first = self.next_id
        self.next_id = first + BLOCK_SIZE
        return IdBlock(node, first, self.next_id - 1)


class IdPool:
    """Node side: ids for InitProducerId. Ask for a block when `wants_block` says so."""

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
        """An id that nobody else has or will have; None while there is no block."""
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
        """Whether the controller should be asked now: few ids are left and no question is out."""
        return not self._asked and len(self) < LOW_WATER

    def asked(self) -> None:
        """The question is out: `add` or `failed` ends it."""
        self._asked = True

    def failed(self) -> None:
        """The question came to nothing; ask again when the caller sees fit."""
        self._asked = False

    def add(self, block: IdBlock) -> bool:
        """The answer. False if this block, or one after it, was added before: an answer that comes
        twice must not give its ids out twice."""
        self._asked = False
        if block.first <= self._seen:
            return False
        self._seen = block.last
        if not self._blocks:
            self._next = block.first
        self._blocks.append(block)
        return True
