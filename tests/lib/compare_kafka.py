"""`make kafka`: a node of Apache Kafka 4.3.1 from its Maven artifacts, until Ctrl-C.

It needs Java 17 and Maven. Everything lies in a folder (`out/kafka`), whose data are deleted at
each start. It prints `ready bootstrap=HOST:PORT`, as `ottla up` does. `--port N` chooses the port.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "compare" / "kafka"
OUT = Path("out/kafka")
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
READY_SECONDS = 120
_LOG = "-Dorg.slf4j.simpleLogger"
_REFUSALS = (
    "kafka.network.Processor",
    "kafka.server.KafkaApis",
    "kafka.server.ReplicaManager",
    "org.apache.kafka.common.network.Selector",
)
"""Who logs each refused request as an error with a stack trace: here that is what is wanted."""
QUIET = (f"{_LOG}.defaultLogLevel=warn", *(f"{_LOG}.log.{name}=off" for name in _REFUSALS))


def class_path() -> str:
    """Kafka's class path; Maven fetches what is missing."""
    file = OUT.resolve() / "classpath.txt"
    if not file.exists():
        sys.stderr.write("ottla: Maven fetches Kafka, once\n")
        command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath"]
        subprocess.run([*command, f"-Dmdep.outputFile={file}"], check=True)
    return file.read_text(encoding="utf-8")


def settings(port: int) -> Path:
    """The node's settings as a file."""
    text = (HERE / "server.properties").read_text(encoding="utf-8")
    filled = {"$DATA": OUT.resolve() / "data", "$PORT": port, "$CONTROLLER": port + 1}
    for name, value in filled.items():
        text = text.replace(name, str(value))
    path = OUT / "server.properties"
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


def run() -> int:
    """Start Kafka, and wait for its end."""
    parser = argparse.ArgumentParser(prog="make kafka")
    parser.add_argument("--port", type=int, default=19092)
    port = parser.parse_args().port
    if answers(port):
        sys.stderr.write(f"ottla: port {port} is in use; choose another: ARGS='--port N'\n")
        return 2
    if missing():
        sys.stderr.write(f"ottla: Kafka needs Java 17 and Maven; missing: {missing()}\n")
        return 2
    OUT.mkdir(parents=True, exist_ok=True)
    java, properties = ["java", *QUIET, "-cp", class_path()], settings(port)
    shutil.rmtree(OUT / "data", ignore_errors=True)
    form = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run([*java, *form], check=True, stdout=subprocess.DEVNULL)
    kafka = subprocess.Popen([*java, "-Xmx768M", "kafka.Kafka", str(properties)])
    signal.signal(signal.SIGTERM, lambda *_: kafka.terminate())
    try:
        until = time.monotonic() + READY_SECONDS
        while kafka.poll() is None and not answers(port) and time.monotonic() < until:
            time.sleep(0.2)
        if kafka.poll() is None and not answers(port):
            sys.stderr.write(f"ottla: Kafka does not answer after {READY_SECONDS} s\n")
            kafka.terminate()
        elif kafka.poll() is None:
            sys.stdout.write(f"ready bootstrap=127.0.0.1:{port}\n")
            sys.stdout.flush()
        return kafka.wait()
    except KeyboardInterrupt:
        kafka.terminate()
        kafka.wait()
        return 0


if __name__ == "__main__":
    sys.exit(main())
