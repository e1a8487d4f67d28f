"""`ottla demo` where it cannot go on: without the clients it drives, and when it is interrupted.

A plain installation ended in 40 lines of traceback after 15 s; Ctrl-C in "Task was destroyed".
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from cli_groups import begun, end
from cli_process import WITHIN

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({names}))\nimport ottla.__main__ as command"
"""A None among the modules is what Python takes for a module that is not there."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["confluent_kafka"], "confluent-kafka is not installed"),
        (["aiokafka"], "aiokafka is not installed"),
        (["aiokafka", "confluent_kafka"], "confluent-kafka and aiokafka are not installed"),
    ],
    ids=["confluent-kafka", "aiokafka", "both"],
)
def test_a_missing_client_is_one_line_at_once(tmp_path, names, told):
    code = f"{WITHOUT.format(names=names)}; command.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"ottla: the demo drives real clients, of which {told}: pip install 'ottla[demo]'\n"
    )
    assert not (tmp_path / "out").exists()


def stopped(process, to_all):
    """Its status and what it said on standard error, once it was interrupted."""
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
@pytest.mark.parametrize("after", [0.0, 3.0], ids=["at once", "among faults"])
def test_an_interrupt_while_it_writes_ends_it_with_one_line(tmp_path, after, to_all):
    process = begun("demo", "--out", str(tmp_path))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ottla demo: three nodes")
        time.sleep(after)
        status, said = stopped(process, to_all)
    finally:
        end(process)
    assert (status, said) == (130, "ottla: interrupted; nothing is kept\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["demo"], ["sim", "sweep", "--seeds", "9"]], ids=" ".join)
def test_an_interrupt_while_it_is_imported_is_no_traceback(tmp_path, arguments):
    """It stands in the middle of an import when the signal comes, as often as the test runs."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
