"""A client that a hostile broker tries to end: `python fuzz_victim.py HOST PORT CONNECTIONS`.

On each connection it asks for things in several APIs and versions, and waits for what comes; the
broker hangs up when it has answered all. An answer, a `FrameError` and a closed connection are all
fine. At the end it prints one JSON object: how many of each, and by how many bytes it has grown.
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
from fuzz_server import ASKED
from ottla.broker.client import Client
from ottla.broker.client_requests import API_KEYS
from ottla.broker.codec import request_schema
from ottla.broker.errors import FrameError

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
        asked = []
        for key, version in rng.sample(SERVED, ASKED):
            body = entity(request_schema(key, version).cls, rng)
            fields = {each.name: getattr(body, each.name) for each in dataclasses.fields(body)}
            if key == 0:
                fields["acks"] = 1
            try:
                asked.append(client.send(NAMES[key], version, **fields))
            except ConnectionResetError:
                break
        await asyncio.wait(asked)
        for each in asked:
            error = each.exception()
            assert error is None or isinstance(error, (FrameError, ConnectionResetError)), error
            seen["answer" if error is None else type(error).__name__] += 1
        client.close()
    say(json.dumps(seen | {"grown": memory(os.getpid(), "VmHWM") - start}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
