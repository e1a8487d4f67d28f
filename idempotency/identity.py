"""Checks of a batch identity without any stored state: its ranges, and the order of epochs.

The identity is a `ottla.log.types.BatchIdentity`, read from a batch header by
`ottla.log.record_batch`. Epochs are compared as numbers and never wrap: a producer that has used
its last epoch gets a new producer id (KIP-360). Epoch -1 means *no epoch*. No client sends it with
a producer id, but Kafka accepts it (K-NO-EPOCH).
"""

from __future__ import annotations

from ottla.log.types import ProducerEpoch, ProducerId, Sequence

MAX_EPOCH: ProducerEpoch = 2**15 - 1
"""Epochs are int16 on the wire."""
MIN_EPOCH: ProducerEpoch = -(2**15)
"""Below -1 there are epochs only where nobody checks them."""
NO_EPOCH: ProducerEpoch = -1
"""No epoch: its batches have no order, and every epoch fences it (Kafka's NO_PRODUCER_EPOCH)."""


def well_formed(
    producer_id: ProducerId, epoch: ProducerEpoch, first: Sequence, last: Sequence
) -> bool:
    """Whether the numbers of an identity lie in their ranges: an id of 0 or more, an epoch of 15
    bits or -1, sequences of 31.

    >>> well_formed(7, 0, 2147483647, 0), well_formed(7, -1, 0, 0), well_formed(7, -2, 0, 0)
    (True, True, False)
    """
    # A negative number shifted right stays negative, so one comparison bounds both sides.
    return (first | last) >> 31 == 0 and NO_EPOCH <= epoch <= MAX_EPOCH and producer_id >= 0


def fences(epoch: ProducerEpoch, other: ProducerEpoch) -> bool:
    """Whether a producer at `epoch` fences one at `other`: whether `epoch` is the newer one."""
    return epoch > other
