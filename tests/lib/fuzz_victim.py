"""A client that a hostile broker tries to end: `python fuzz_victim.py HOST PORT CONNECTIONS`.

On each connection it sends requests of several APIs and versions, one after the other, so that the
result does not depend on how answers are cut into pieces. An answer, a `FrameError` and a closed
connection are all fine. At the end it prints one JSON object: how many of each, and by how many
bytes it has grown.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from collections import Counter
from random import Random

from fuzz_broker import memory
from fuzz_bystander import say
from fuzz_frames import SERVED, entity
from ottla.broker.client import Client
from ottla.broker.errors import FrameError
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import request_schema

NAMES = {key: name for name, key in API_KEYS.items()}


async def main(host: str, port: int, connections: int) -> None:
    """Ask and ask."""
    rng = Random(1)
    seen: Counter[str] = Counter()
    start = 0
    for number in range(connections):
        if number == 5:
            start = memory(os.getpid(), "VmRSS")
        client = await Client.connect(host, port)
        for key, version in rng.sample(SERVED, 8):
            body = entity(request_schema(key, version).cls, rng)
            fields = {each.name: getattr(body, each.name) for each in dataclasses.fields(body)}
            if key == 0:
                fields["acks"] = 1
            try:
                await client.send(NAMES[key], version, **fields)
            except (FrameError, ConnectionResetError) as error:
                seen[type(error).__name__] += 1
                break
            seen["answer"] += 1
        client.close()
    say(json.dumps(seen | {"grown": memory(os.getpid(), "VmHWM") - start}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
