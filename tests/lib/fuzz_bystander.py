"""A client that behaves, beside those that do not: `python fuzz_bystander.py HOST PORT`.

It produces to a topic of its own, reads it back, and asks for metadata, over and over, on one
connection; every answer must be right. When its standard input ends it prints one JSON object: how
many rounds, and the times of its requests in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode

TOPIC = "calm"
PAUSE_SECONDS = 0.01


def say(line: str) -> None:
    """One line to whoever started this."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(host: str, port: int) -> None:
    """Rounds, until nobody wants more."""
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.read)
    client = await Client.connect(host, port)
    times: list[float] = []
    produced = await client.produce(TOPIC, 0, [b"begin"])
    assert produced is not None
    offset = produced.base_offset
    say("begun")
    rounds = 0
    while not ended.done():
        rounds += 1
        value = b"value %d" % rounds
        began = time.perf_counter()
        produced = await client.produce(TOPIC, 0, [value])
        times.append(time.perf_counter() - began)
        offset += 1
        assert produced == (ErrorCode.NONE, offset, 0), produced
        began = time.perf_counter()
        fetched = await client.fetch(TOPIC, 0, offset)
        times.append(time.perf_counter() - began)
        assert (fetched.error, fetched.high_watermark) == (ErrorCode.NONE, offset + 1)
        assert value in fetched.batches[-1].data
        began = time.perf_counter()
        metadata = await client.metadata([TOPIC])
        times.append(time.perf_counter() - began)
        assert [(t.name, len(t.partitions)) for t in metadata.topics] == [(TOPIC, 1)]
        await asyncio.sleep(PAUSE_SECONDS)
    times.sort()
    figures = {
        "rounds": rounds,
        "p50": round(times[len(times) // 2] * 1000, 2),
        "p99": round(times[len(times) * 99 // 100] * 1000, 2),
        "longest": round(times[-1] * 1000, 2),
    }
    say(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
