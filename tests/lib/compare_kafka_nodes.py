"""`make kafka-nodes`: the cases with several nodes, played to three brokers of Apache Kafka.

It needs Java 17 and Maven, and some five minutes. A fourth process is the controller, so that two
brokers may die; of 2.8 and 2.4 it is a ZooKeeper. `--version` chooses one, `--record FOLDER` keeps
the answers, `--cases GLOB` plays some. It prints what Kafka did not as the case says of its profile
(`PROFILES`), and then ends with status 1.

Faults are signals. Nobody cuts links: a broker that a case isolates is stopped. If it leads,
clients still speak to it, so the other brokers are stopped instead; its followers hear nothing
either way. `lead` makes a broker the preferred leader, and has it elected. Settings are not
changed, so cases that need some are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from struct import pack

from compare_kafka import (
    CLUSTER_ID,
    NEWEST,
    QUIET,
    READY_SECONDS,
    WITH_ZOOKEEPER,
    ZOOKEEPER,
    answers,
    class_path,
    folder_of,
    missing,
    zookeeper_settings,
)
from ottla.broker.client import Client
from ottla.compare.brokers import play_at
from ottla.compare.case import Case
from ottla.compare.errors import CompareError
from ottla.compare.finding import load_cases
from ottla.compare.judging import contradictions
from ottla.compare.live import LiveBroker
from ottla.compare.nodes import Place
from ottla.compare.recordings import record
from ottla.compare.requests import Versions
from ottla.compare.transcript import Transcript

PORTS = {1: 21091, 2: 21092, 3: 21093}
CONTROLLER, CONTROLLER_PORT = 100, 21100
PROFILES = {
    NEWEST: "kafka-4.3",
    "3.9.1": "kafka-3.9",
    "2.8.2": "kafka-2.8",
    "2.4.1": "kafka-2.4",
}
"""By version: the profile whose answers its brokers must give."""
_SHARED = """\
group.initial.rebalance.delay.ms=0
auto.leader.rebalance.enable=false
replica.lag.time.max.ms=1000
replica.fetch.wait.max.ms=100
"""
"""A broker that is stopped is out of sync after a second or two, as in the clusters of profiles."""
_KRAFT = f"""\
controller.quorum.voters={CONTROLLER}@127.0.0.1:{CONTROLLER_PORT}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""
_ZOOKEEPER = f"""\
zookeeper.connect=127.0.0.1:{CONTROLLER_PORT}
zookeeper.session.timeout.ms=1500
"""
_ALTER_PARTITION_REASSIGNMENTS, _ELECT_LEADERS = 45, 43
_NOT_NEEDED = 84
"""ELECTION_NOT_NEEDED: it leads."""
_BEFORE_TOPIC, _BEFORE_ERROR = 4 + 4 + 4 + 2, 4 + 4
"""Bytes of an answer of ElectLeaders 0 before the name of the topic, and from there to the code."""


class KafkaNodes:
    """The processes, and what a case does to them (`ottla.compare.nodes.Faults`)."""

    def __init__(self, version: str):
        self._folder = folder_of(version)
        self._zookeeper = version in WITH_ZOOKEEPER
        self._java = ["java", *QUIET, "-cp", class_path(version)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped: set[int] = set()
        self._isolated: dict[int, list[int]] = {}
        """By the node that is isolated: those that are stopped for it."""
        self._leader = 1

    # ---- processes

    def boot(self) -> None:
        """Start all with empty folders, and wait until they listen."""
        for node in (CONTROLLER, *PORTS):
            data = self._folder / f"data-{node}"
            shutil.rmtree(data, ignore_errors=True)
            if self._zookeeper:
                data.mkdir()
            else:
                form = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]
                command = [*self._java, *form, self._file(node)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self._start(node)
            if node == CONTROLLER:
                self._until_up(node)
        for node in PORTS:
            self._until_up(node)

    def recover(self) -> None:
        """Undo all that a case has done."""
        for node in list(self._stopped):
            self._go_on(node)
        self._isolated.clear()
        self._leader = 1
        for node in PORTS:
            if self._processes[node].poll() is not None:
                self._start(node)
        for node in PORTS:
            self._until_up(node)

    def end(self) -> None:
        """Kill all."""
        for each in self._processes.values():
            each.kill()
            each.wait()

    def _file(self, node: int) -> str:
        role, port = ("broker", PORTS.get(node, CONTROLLER_PORT))
        listener = "PLAINTEXT"
        if node == CONTROLLER:
            role, listener = "controller", "CONTROLLER"
        path = self._folder / f"node-{node}.properties"
        data = self._folder / f"data-{node}"
        lines = f"listeners={listener}://127.0.0.1:{port}\nlog.dirs={data}\n{_SHARED}"
        if not self._zookeeper:
            lines += f"process.roles={role}\nnode.id={node}\n{_KRAFT}"
        elif node == CONTROLLER:
            lines = zookeeper_settings(data, port)
        else:
            lines += f"broker.id={node}\n{_ZOOKEEPER}"
        path.write_text(lines, encoding="utf-8")
        return str(path)

    def _start(self, node: int) -> None:
        main_class = ZOOKEEPER if self._zookeeper and node == CONTROLLER else "kafka.Kafka"
        command = [*self._java, "-Xmx400M", main_class, self._file(node)]
        with (self._folder / f"node-{node}.log").open("ab") as log:
            self._processes[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def _until_up(self, node: int) -> None:
        until = time.monotonic() + READY_SECONDS
        while not answers(PORTS.get(node, CONTROLLER_PORT)):
            ended = self._processes[node].poll() is not None
            if time.monotonic() > until or (ended and not self._zookeeper):
                raise CompareError(f"node {node} does not start; see {self._folder}")
            if ended:  # ZooKeeper takes it for alive until its session of before is over
                self._start(node)
            time.sleep(0.1)

    def _stop(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGSTOP)
        self._stopped.add(node)

    def _go_on(self, node: int) -> None:
        if node in self._stopped:
            self._stopped.remove(node)
            self._processes[node].send_signal(signal.SIGCONT)

    # ---- faults

    async def kill(self, node: int) -> None:
        """Signal 9."""
        process = self._processes[node]
        process.kill()
        process.wait()
        self._stopped.discard(node)
        self.heal(node)

    async def restart(self, node: int) -> None:
        """Start it on its disk; one that runs is stopped in order before."""
        process, wait = self._processes[node], asyncio.get_running_loop().run_in_executor
        self.heal(node)
        if process.poll() is None:
            self._go_on(node)
            process.terminate()
            await wait(None, process.wait)
        self._start(node)
        await wait(None, self._until_up, node)

    def pause(self, node: int) -> None:
        """SIGSTOP."""
        self._stop(node)

    def resume(self, node: int) -> None:
        """SIGCONT."""
        self._go_on(node)

    def isolate(self, node: int) -> None:
        """Stop it, or all others if it leads."""
        wanted = [each for each in PORTS if each != node] if node == self._leader else [node]
        self._isolated[node] = [each for each in wanted if each not in self._stopped]
        for each in self._isolated[node]:
            self._stop(each)

    def heal(self, node: int | None = None) -> None:
        """End that."""
        for each in self._isolated.pop(node or 0, []):
            self._go_on(each)

    async def transfer_leadership(
        self, topic: str, partition: int, to: int, *, timeout: float = 10.0
    ) -> None:
        """Make it the preferred leader, and elect it, until its own Metadata names it."""
        order = [to, *(each for each in PORTS if each != to)]
        until = time.monotonic() + timeout
        asked = await _controller_of(to) if self._zookeeper else to
        await _ask(asked, _ALTER_PARTITION_REASSIGNMENTS, _reassigned(topic, partition, order))
        while self._leader != to:
            answer = await _ask(asked, _ELECT_LEADERS, _elected(topic, partition))
            at = _BEFORE_TOPIC + len(topic.encode()) + _BEFORE_ERROR
            if int.from_bytes(answer[at : at + 2]) in {0, _NOT_NEEDED}:
                self._leader = to
            elif time.monotonic() > until:
                raise CompareError(f"broker {to} is not elected: {answer[at:].hex()}")
            else:
                await asyncio.sleep(0.2)


async def _controller_of(node: int) -> int:
    """The broker that is the controller, as this one says."""
    client = await Client.connect("127.0.0.1", PORTS[node])
    known = await client.call("metadata", 1, topics=[])
    client.close()
    return int(known.controller_id)


async def _ask(node: int, key: int, body: bytes) -> bytes:
    """The answer to a request of version 0 without a client id."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORTS[node])
    flexible = b"\0" if key == _ALTER_PARTITION_REASSIGNMENTS else b""
    frame = pack(">hhih", key, 0, 1, -1) + flexible + body
    writer.write(pack(">i", len(frame)) + frame)
    size = int.from_bytes(await reader.readexactly(4))
    answer = await reader.readexactly(size)
    writer.close()
    return answer


def _reassigned(topic: str, partition: int, replicas: list[int]) -> bytes:
    """A body of AlterPartitionReassignments 0."""
    name = topic.encode()
    inside = pack(">i", partition) + bytes([len(replicas) + 1])
    inside += b"".join(pack(">i", each) for each in replicas) + b"\0"
    return pack(">i", 10_000) + bytes([2, len(name) + 1]) + name + b"\2" + inside + b"\0\0"


def _elected(topic: str, partition: int) -> bytes:
    """A body of ElectLeaders 0."""
    name = topic.encode()
    return pack(">ih", 1, len(name)) + name + pack(">iii", 1, partition, 10_000)


class KafkaBroker(LiveBroker):
    """The brokers, as somebody who plays cases."""

    does_faults = True

    def __init__(self, nodes: KafkaNodes):
        super().__init__("127.0.0.1", PORTS[1], "Kafka")
        self._kafka = nodes

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`; what the case before has done is undone first."""
        self._kafka.recover()
        addresses = {node: ("127.0.0.1", port) for node, port in PORTS.items()}
        place = Place(addresses, {node: node for node in PORTS}, self._kafka)
        return self._runner.run(play_at(case, self._start(case, versions), place))


def play(broker: KafkaBroker, profile: str, globs: list[str], folder: Path | None) -> int:
    """Play cases, and tell what is not as they say; the exit status."""
    status = 0
    for case in load_cases(globs):
        if not case.own_cluster or case.settings or profile in case.left_out:
            continue
        try:
            played = broker.play(case, broker.versions())
        except (CompareError, OSError) as error:
            told = [f"not played: {error}"]
        else:
            wrong = contradictions(case, played, profile)
            told = [f"step {e.step} {e.field}: {e.target}, said {e.expected}" for e in wrong]
            if folder is not None and not wrong:
                record(folder, played)
        status = status or int(bool(told))
        sys.stdout.write("".join(f"{case.name}: {each}\n" for each in told or ["as it says"]))
        sys.stdout.flush()
    return status


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="make kafka-nodes")
    parser.add_argument("--version", choices=sorted(PROFILES), default=NEWEST)
    parser.add_argument("--cases", action="append")
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    if missing():
        sys.stderr.write(f"ottla: Kafka needs Java 17 and Maven; missing: {missing()}\n")
        return 2
    nodes = KafkaNodes(asked.version)
    try:
        nodes.boot()
        with KafkaBroker(nodes) as broker:
            return play(broker, PROFILES[asked.version], asked.cases or ["*"], asked.record)
    finally:
        nodes.end()


if __name__ == "__main__":
    sys.exit(main())
