"""A program that ends while something of it still holds a running cluster: it ends all the same.

What is behind a generator's `yield` runs when the interpreter has frozen the cluster's thread. To
stop the cluster there waited for that thread, forever.
"""

import subprocess
import sys

import pytest

FOREGROUND = "a thread that is not in the background"
HELD_BY = {
    "nothing": """
cluster = Cluster(nodes=1).start()
""",
    "a generator": """
def clusters():
    with Cluster(nodes=1) as cluster:
        yield cluster
held = clusters()
next(held)
""",
    "a context manager": """
from contextlib import contextmanager
@contextmanager
def broker():
    with Cluster(nodes=1) as cluster:
        yield cluster
held = broker()
held.__enter__()
""",
    "a generator, in files": """
import tempfile
def clusters():
    with tempfile.TemporaryDirectory() as folder, Cluster(nodes=1, data_dir=folder) as cluster:
        cluster.create_topic("t")
        yield cluster
held = clusters()
next(held)
""",
    "__del__": """
class Held:
    def __init__(self):
        self.cluster = Cluster(nodes=1).start()
    def __del__(self):
        self.cluster.stop()
held = Held()
""",
    "a reference to itself": """
class Held:
    def __init__(self):
        self.me, self.cluster = self, Cluster(nodes=1).start()
    def __del__(self):
        self.cluster.stop()
held = Held()
""",
    "weakref.finalize": """
import weakref
class Held:
    def __init__(self):
        self.cluster = Cluster(nodes=1).start()
        weakref.finalize(self, self.cluster.stop)
held = Held()
""",
    "atexit": """
import atexit
cluster = Cluster(nodes=1).start()
atexit.register(cluster.stop)
""",
    FOREGROUND: """
import threading
def live():
    with Cluster(nodes=1) as cluster:
        ended.wait(0.2)
ended = threading.Event()
threading.Thread(target=live).start()
""",
}


def run(program):
    return subprocess.run(
        [sys.executable, "-c", f"from ottla import Cluster, OttlaError\n{program}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("program", HELD_BY.values(), ids=HELD_BY)
def test_a_program_ends_whatever_still_holds_its_cluster(program):
    if program == HELD_BY[FOREGROUND] and sys.version_info[:2] == (3, 12):
        pytest.skip("CPython 3.12 starts no thread once the main one has ended")
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LATE = """
class Held:
    def __init__(self, work, cluster):
        self.work, self.cluster, self.error, self.say = work, cluster, OttlaError, print
    def __del__(self):
        try:
            self.work(self.cluster)
        except self.error as error:
            self.say(error)
held = Held({work}, {cluster})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "cluster"),
    [
        ("lambda cluster: cluster.kill(1)", "Cluster(nodes=1).start()"),
        ("lambda cluster: cluster.describe()", "Cluster(nodes=1).start()"),
        ("lambda cluster: cluster.start()", "Cluster(nodes=1)"),
    ],
    ids=["kill", "describe", "start"],
)
def test_what_is_asked_of_a_cluster_then_is_refused(work, cluster):
    done = run(LATE.format(work=work, cluster=cluster))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the interpreter is ending, and the cluster's thread has stopped")
