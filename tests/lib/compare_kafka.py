"""`make kafka`: a node of Apache Kafka from its Maven artifacts, until Ctrl-C.

It needs Java 17 and Maven. `--version` chooses one of `VERSIONS`; 2.8 has a ZooKeeper beside it, in
a process of its own. Everything lies in a folder of that version (`out/kafka/4.3.1`), whose data
are deleted at each start. It prints `ready bootstrap=HOST:PORT`, as `ottla up` does. `--port N`
chooses the port; the controller or ZooKeeper listens on the next one.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "compare" / "kafka"
OUT = Path("out/kafka")
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NEWEST = "4.3.1"
WITH_ZOOKEEPER = ("2.8.2", "2.4.1")
VERSIONS = (NEWEST, "3.9.1", *WITH_ZOOKEEPER)
READY_SECONDS = 120
ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"
"""Its main class."""
_LOG = "-Dorg.slf4j.simpleLogger"
_REFUSALS = (
    "kafka.network.Processor",
    "kafka.server.KafkaApis",
    "kafka.server.ReplicaManager",
    "org.apache.kafka.common.network.Selector",
)
"""Who logs each refused request as an error with a stack trace: here that is what is wanted."""
QUIET = (f"{_LOG}.defaultLogLevel=warn", *(f"{_LOG}.log.{name}=off" for name in _REFUSALS))


def folder_of(version: str) -> Path:
    """Where all of a version lies; it is made if it is not there."""
    found = OUT.resolve() / version
    found.mkdir(parents=True, exist_ok=True)
    return found


def class_path(version: str = NEWEST) -> str:
    """The class path of a version of Kafka; Maven fetches what is missing."""
    file = folder_of(version) / "classpath.txt"
    if not file.exists():
        sys.stderr.write(f"ottla: Maven fetches Kafka {version}, once\n")
        command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath"]
        chosen = [f"-Dkafka.version={version}", f"-Dmdep.outputFile={file}"]
        subprocess.run([*command, *chosen], check=True)
    return file.read_text(encoding="utf-8")


def settings(version: str, port: int) -> Path:
    """The node's settings as a file."""
    name = "zookeeper.properties" if version in WITH_ZOOKEEPER else "server.properties"
    text = (HERE / name).read_text(encoding="utf-8")
    folder = folder_of(version)
    filled = {"$DATA": folder / "data", "$PORT": port, "$CONTROLLER": port + 1}
    for key, value in filled.items():
        text = text.replace(key, str(value))
    path = folder / "server.properties"
    path.write_text(text, encoding="utf-8")
    return path


def missing() -> str:
    """What is needed and not there; empty if all is."""
    return " and ".join(each for each in ("java", "mvn") if shutil.which(each) is None)


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as found:
        found.settimeout(1)
        return found.connect_ex(("127.0.0.1", port)) == 0


def main() -> int:
    """See the module's text; the exit status is Kafka's, or 2 if it was never started."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"ottla: {error.cmd[0]} ended with status {error.returncode}, see above\n")
        return 2
    except TimeoutError as error:
        sys.stderr.write(f"ottla: {error}\n")
        return 2


def run() -> int:
    """Start Kafka, and wait for its end."""
    parser = argparse.ArgumentParser(prog="make kafka")
    parser.add_argument("--port", type=int, default=19092)
    parser.add_argument("--version", choices=VERSIONS, default=NEWEST)
    chosen = parser.parse_args()
    port, version = chosen.port, chosen.version
    for each in (port, port + 1):
        if answers(each):
            sys.stderr.write(f"ottla: port {each} is in use; choose another: ARGS='--port N'\n")
            return 2
    if missing():
        sys.stderr.write(f"ottla: Kafka needs Java 17 and Maven; missing: {missing()}\n")
        return 2
    java, properties = ["java", *QUIET, "-cp", class_path(version)], settings(version, port)
    data = folder_of(version) / "data"
    shutil.rmtree(data, ignore_errors=True)
    if version in WITH_ZOOKEEPER:
        with zookeeper([*java, "-Xmx128M"], port + 1, data / "zookeeper"):
            return serve([*java, "-Xmx768M", "kafka.Kafka", str(properties)], port)
    form = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run([*java, *form], check=True, stdout=subprocess.DEVNULL)
    return serve([*java, "-Xmx768M", "kafka.Kafka", str(properties)], port)


@contextmanager
def zookeeper(java: list[str], port: int, data: Path) -> Iterator[None]:
    """A ZooKeeper on the loopback interface, until the block ends. Its port is bound before Kafka
    begins, and Kafka itself waits until it serves."""
    data.mkdir(parents=True)
    file = data.parent / "zookeeper.cfg"
    file.write_text(zookeeper_settings(data, port), encoding="utf-8")
    # In a session of its own: what ends this process group must not end it before Kafka, which
    # would wait for it for ever.
    process = subprocess.Popen([*java, ZOOKEEPER, str(file)], start_new_session=True)
    try:
        if not await_port(process, port):
            raise TimeoutError(f"ZooKeeper does not listen on port {port}, see above")
        yield
    finally:
        process.terminate()
        process.wait()


def zookeeper_settings(data: Path, port: int) -> str:
    """The settings of a ZooKeeper on the loopback interface."""
    lines = (f"dataDir={data}", f"clientPort={port}", "clientPortAddress=127.0.0.1")
    return "\n".join((*lines, "admin.enableServer=false", ""))


def await_port(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the process listens there; false if it ends before, or takes too long."""
    until = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < until:
        if answers(port):
            return True
        time.sleep(0.2)  # another process sends no notification
    return False


def serve(command: list[str], port: int) -> int:
    """Run Kafka until its end, and return its status."""
    kafka = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: kafka.terminate())
    try:
        if await_port(kafka, port):
            sys.stdout.write(f"ready bootstrap=127.0.0.1:{port}\n")
            sys.stdout.flush()
        elif kafka.poll() is None:
            sys.stderr.write(f"ottla: Kafka does not answer after {READY_SECONDS} s\n")
            kafka.terminate()
        return kafka.wait()
    except KeyboardInterrupt:
        kafka.terminate()
        kafka.wait()
        return 0


if __name__ == "__main__":
    sys.exit(main())
