"""In programs that gevent or eventlet have patched, a cluster runs, and other green threads too.

It hung without a word: its event loop ran in a green thread, and blocked the one thread there was.
"""

import importlib.util
import os
import subprocess
import sys

import pytest

PATCHES = {
    "gevent": "from gevent import monkey, spawn, sleep; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch(); from eventlet import spawn, sleep",
}
PROGRAM = """
import socket
from ottla import Cluster

ticks = []

def tick():
    while True:
        ticks.append(1)
        sleep(0.002)

spawn(tick)
with Cluster(nodes=3, data_dir={folder!r}) as cluster:
    cluster.create_topic("t")
    old = cluster.leader("t")
    cluster.kill(old)
    before = len(ticks)
    assert cluster.leader("t") != old
    assert len(ticks) - before > 20, "the others waited for the election"
    cluster.restart(old)
    with socket.create_connection(cluster.addresses[old]) as client:
        client.sendall(bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]))
        assert len(client.recv(4)) == 4
print("served")
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", PATCHES)
@pytest.mark.parametrize("stored", ["memory", "lmdb"])
def test_a_patched_program_is_served_and_goes_on(package, stored, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    folder = str(tmp_path) if stored == "lmdb" else None
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PATCHES[package] + PROGRAM.format(folder=folder)],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.stdout, done.returncode) == ("served\n", 0), done.stderr
