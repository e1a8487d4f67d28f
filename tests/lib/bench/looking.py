"""What looking into produced batches costs: for each record, and in one turn of the loop at most.

Times are of CPU, the least of several passes: another process on the machine only adds. A *turn* is
a slice as a node works it off (`ottla.broker.turn.looks`), with what a piece that is inflated in
one go takes on top.
"""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass

from bench.measure import Outcome, Report
from ottla.log.build import Codec, NewRecord, build_batch, seal
from ottla.log.inspection import RecordRules, inspect, looked_at, looked_into, verdict
from ottla.log.record_batch import read_batch
from ottla.log.record_walk import SLICE, Allowance
from ottla.log.types import RecordBatch

LONGEST_MS = 50.0
"""A turn of the loop takes no longer for one request."""
MAX_BYTES = 16 << 20
NOW = 1_700_000_000_000
RULES = RecordRules()


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    passes: int
    most: int
    """Records of the largest batch."""


FULL = Plan(5, 100_000)
QUICK = Plan(1, 2_000)


def run(plan: Plan) -> Report:
    """Records of usual batches, then the longest turn of nasty ones."""
    outcomes = [
        _usual(plan, "1 x 1 KB", [b"v" * 1000]),
        _usual(plan, "10 x 100 B", [b"v" * 100] * 10),
        _usual(plan, "1,000 x 100 B", [b"v" * 100] * 1000),
    ]
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        for count in (10, 64, 65, 1000, plan.most):
            values = [b"v" * 20] * count
            outcomes.append(_usual(plan, f"{count:,} x 20 B, {codec.name.lower()}", values, codec))
    outcomes += [_turn(plan, name, batch) for name, batch in _nasty(plan.most)]
    return Report("looking", outcomes)


def _usual(plan: Plan, name: str, values: list[bytes], codec: Codec = Codec.NONE) -> Outcome:
    batch = _batch(build_batch(values, codec=codec, base_timestamp=NOW))
    times = max(1, plan.most // len(values) // 10)
    best = min(_look(batch, times) for _ in range(plan.passes))
    return Outcome(f"{name}, a record", best / times / len(values) * 1e9, "ns")


def _look(batch: RecordBatch, times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        if not RULES.trusts(batch, NOW) and looked_at(batch, RULES, NOW) is None:
            inspect(batch, RULES, NOW, MAX_BYTES)
    return time.process_time() - begun


def _turn(plan: Plan, name: str, batch: RecordBatch) -> Outcome:
    longest, turns = min(_slices(batch) for _ in range(plan.passes))
    return Outcome(
        f"longest turn, {name}",
        longest * 1e3,
        "ms",
        LONGEST_MS,
        at_least=False,
        note=f"{turns} turns",
    )


def _slices(batch: RecordBatch) -> tuple[float, int]:
    """The longest turn, and how many there are."""
    allowance = Allowance(SLICE)
    looking = looked_into(batch, RULES, NOW, max_bytes=MAX_BYTES, allowance=allowance)
    longest, turns, found = 0.0, 0, None
    while found is None:
        begun = time.process_time()
        found = verdict(looking)
        longest = max(longest, time.process_time() - begun)
        turns += 1
        allowance.left = SLICE
    return longest, turns


def _nasty(most: int) -> list[tuple[str, RecordBatch]]:
    zeros = b"\x0c\0\0\0\1\0\0"
    late = [NewRecord(b"v", timestamp=NOW + 10**9)] * most
    headers = NewRecord(b"v", None, (("", None),) * (3 * most), timestamp=NOW)
    return [
        (f"{90 * most:,} records numbered 0, gzip", _packed(zeros * (90 * most), 90 * most)),
        (f"{most:,} records far ahead", _batch(build_batch(late, base_timestamp=NOW))),
        (f"{3 * most:,} headers of one record", _batch(build_batch([headers]))),
        (f"{most // 2:,} empty gzip streams", _packed(b"", 1, gzip.compress(b"") * (most // 2))),
        ("15 MB of zstd", _batch(build_batch([bytes(15_000_000)], codec=Codec.ZSTD))),
        ("15 MB of snappy", _batch(build_batch([bytes(15_000_000)], codec=Codec.SNAPPY))),
        ("60 MB of lz4", _batch(build_batch([bytes(60_000_000)], codec=Codec.LZ4))),
    ]


def _packed(records: bytes, count: int, payload: bytes = b"") -> RecordBatch:
    payload = payload or gzip.compress(records)
    head = bytearray(build_batch([b""], codec=Codec.GZIP, base_timestamp=NOW)[:61])
    head[8:12] = (49 + len(payload)).to_bytes(4, "big")
    head[23:27] = (count - 1).to_bytes(4, "big")
    head[57:61] = count.to_bytes(4, "big")
    return _batch(seal(bytes(head) + payload))


def _batch(data: bytes) -> RecordBatch:
    batch = read_batch(data)
    assert isinstance(batch, RecordBatch), f"built a batch with a defect: {batch}"
    return batch
