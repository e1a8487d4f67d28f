"""An audit that is stopped by a signal says so, and what it has come to; a process of its own each.

The group of a process is what a terminal, or `timeout`, sends signals to: its JVM is part of it.
"""

import os
import signal
import socket

import pytest

from awaiting import await_that
from cli_groups import await_nobody, begun, end
from studies_spark import need_spark
from studies_topics import ANOMALIES, SUMMARY, anomalous, batch, write

SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)


@pytest.fixture(autouse=True)
def needed():
    need_spark()


@pytest.mark.slow
@SIGNALS
def test_who_is_stopped_before_anything_was_read_says_so(number, status):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = begun("study", "audit", "--bootstrap", address, "--topic", "t", "--once")
        try:
            silent.settimeout(60)
            peer, _ = silent.accept()
            with peer:
                process.send_signal(number)
                out, err = process.communicate(timeout=30)
        finally:
            end(process)
    assert (process.returncode, err) == (status, "")
    assert out == f"t: stopped by {number.name} before anything was read\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "found"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, True)],
    ids=["INT-clean", "TERM-anomalies"],
)
def test_who_is_stopped_at_work_tells_the_numbers_so_far(tmp_path, number, status, found):
    with anomalous() as cluster:
        write(cluster, "t", ANOMALIES if found else [batch(0, 1, 0, 5)])
        where = ["--bootstrap", cluster.bootstrap_servers, "--checkpoint", str(tmp_path)]
        process = begun("study", "audit", *where, "--topic", "t", "--master", "local[2]")
        try:
            commits = tmp_path / "stream" / "commits"
            await_that(lambda: any(commits.glob("[0-9]*")), 300, "nothing is read")
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=60)
            await_nobody(process)
        finally:
            end(process)
    clean = "5 records of 1 producer in 1 partition: 0 missing, 0 duplicated, 0 out of order"
    so_far = SUMMARY.removeprefix("t: ") if found else clean
    assert out.splitlines()[-1] == f"t: stopped by {number.name}; so far {so_far}"
    assert process.returncode == (1 if found else status)
    assert not any(word in err for word in ("Traceback", "Exception", "\tat ")), err
