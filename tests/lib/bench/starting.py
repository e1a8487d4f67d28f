"""How soon a cluster is there, and how little it weighs when it is.

Times are wall time of fresh processes, measured from outside, in the environment the suite runs in
(hypothesis included). Modules are compiled once, before anything is measured, as wherever a program
runs twice: PYTHONDONTWRITEBYTECODE, where it is set, is not handed on.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median

from bench.frames import Frame
from bench.host import resident_mib_of
from bench.measure import Outcome, Report
from bench.pipe import Child

TOPIC = "t"
IMPORT = (
    "import time; start = time.perf_counter(); import ottla; print(time.perf_counter() - start)"
)
EMBEDDED = """
import sys
from ottla import Cluster
with Cluster(nodes=3) as cluster:
    cluster.create_topic("t", replication_factor=3)
    host, port = cluster.addresses[cluster.leader("t")]
    print(f"ready bootstrap={host}:{port}", flush=True)
    sys.stdin.read()
"""
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
UP = ("-m", "ottla", "up", "--topic", "t:1:3", "--port", "0")


@dataclass(slots=True)
class Plan:
    """How often each is tried."""

    rounds: int


FULL = Plan(rounds=9)
QUICK = Plan(rounds=2)


def run(plan: Plan) -> Report:
    """All of it."""
    outcomes = _clusters(plan)
    _import_seconds()
    imports = [_import_seconds() * 1e3 for _ in range(plan.rounds)]
    outcomes.append(Outcome("import ottla", median(imports), "ms", 150))
    commands: dict[str, tuple[str, ...]] = {"python": ("-c", EMBEDDED)}
    if find_spec("ottla.cli") is not None:
        commands["ottla up"] = UP
    for name, command in commands.items():
        _first_ack(command)
        tried = [_first_ack(command) for _ in range(plan.rounds)]
        ack = median(each[0] for each in tried)
        ready = f"ready after {median(each[1] for each in tried):.0f} ms"
        outcomes += [
            Outcome(f"start to first ack, {name}", ack, "ms", 300, note=ready),
            Outcome(f"memory after it, {name}", median(each[2] for each in tried), "MiB", 60),
        ]
    return Report("starting", outcomes)


def _clusters(plan: Plan) -> list[Outcome]:
    with Child("bench.host") as host:
        found = host.ask("starts", rounds=plan.rounds + 1)
    clusters = [each * 1e3 for each in found["clusters"]]
    topics = [each * 1e3 for each in found["topics"]]
    first = f"the first of the process {clusters[0]:.1f} ms"
    return [
        Outcome("fresh cluster of three", median(clusters[1:]), "ms", 10, note=first),
        Outcome("a topic on it", median(topics[1:]), "ms", note=f"the first {topics[0]:.1f} ms"),
    ]


def _import_seconds() -> float:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    return float(run.stdout)


def _first_ack(command: tuple[str, ...]) -> tuple[float, float, float]:
    """Milliseconds from the start of the process to its first answer and to its ready line, and
    MiB it then occupies."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        ready = time.perf_counter() - start
        found = re.search(r"bootstrap=([^:,\s]+):(\d+)(.*)", line)
        assert found is not None, f"no ready line but {line!r}"
        others = re.findall(r",([^:,\s]+):(\d+)", found[3])
        for host, port in [(found[1], found[2]), *others]:
            if _produce((host, int(port))):
                break
        else:
            raise AssertionError(f"no leader behind {line!r}")
        ack = time.perf_counter() - start
        return ack * 1e3, ready * 1e3, resident_mib_of(process.pid)
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(20)
        process.stdout.close()


def _produce(address: tuple[str, int]) -> bool:
    """One request; False if this node is not the leader."""
    frame = Frame(TOPIC, 1_000)
    with socket.create_connection(address, 10) as connection:
        connection.sendall(frame.data)
        answer = connection.recv(1 << 16)
    error = int.from_bytes(answer[8 + 4 + 2 + len(TOPIC) + 8 :][:2], "big", signed=True)
    return error == 0
