"""A raw client for tests that must send exact bytes to a cluster.

`Client` does nothing on its own: no retries, no metadata refresh, and no sequence numbers unless
the test gives them. So a test can send a gap, a wrong epoch, or the same batch twice, and check the
exact answer.

    from ottla.testing import Client, Producer

    client = await Client.connect(*cluster.addresses[1])
    answer = await client.produce("orders", 0, [b"value"], producer=Producer(7, 0, 3))
    answer.error, answer.base_offset
"""

from ottla.broker.client import (
    Client,
    DamagedBatchError,
    Exchange,
    Fetched,
    NoAnswerError,
    Produced,
    Producer,
    split_batches,
)
from ottla.broker.errors import ErrorCode
from ottla.log.build import Codec, NewRecord, build_batch
from ottla.log.records import iter_records
from ottla.log.types import RecordBatch

__all__ = [
    "Client",
    "Codec",
    "DamagedBatchError",
    "ErrorCode",
    "Exchange",
    "Fetched",
    "NewRecord",
    "NoAnswerError",
    "Produced",
    "Producer",
    "RecordBatch",
    "build_batch",
    "iter_records",
    "split_batches",
]
