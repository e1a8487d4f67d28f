"""Who ends a study early is left with no process of it, and goes on with it later."""

import os
import signal
import time

import pytest

from cli_groups import await_nobody, begun, end
from studies_tiny import TINY


@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_ends_all_quietly(tmp_path, to_all):
    file = tmp_path / "long.toml"
    file.write_text(TINY)
    out = tmp_path / "out"
    options = ["--seeds", "100000", "--engine", "duckdb", "--jobs", "2", "--out", str(out)]
    process = begun("study", "run", str(file), *options)
    try:
        until = time.monotonic() + 60
        while len(list(out.glob("bronze/_running-*/*"))) < 2:  # both are at work
            assert time.monotonic() < until, "nobody works"
            time.sleep(0.1)
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (130, "")
        await_nobody(process)
    finally:
        end(process)
