"""What runs on executors asks for little: pyarrow, msgpack, sortedcontainers, the CRC library."""

import subprocess
import sys

import pytest

from studies_tiny import TINY

REFUSED = [
    *("cramjam", "duckdb", "grpc", "kio", "lmdb", "numpy"),
    *("pandas", "pyspark", "rich", "typer", "uvloop"),
]
PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ImportError(name + " is refused")

sys.meta_path.insert(0, Refuse())
from ottla.sim.studies.bronze import Work, histories

batches = list(histories(Work({text!r}, 0, 1.0), range(8)))
kinds = [kind for each in batches for kind in each.column("kind").to_pylist()]
print(kinds.count("run"), kinds.count("breakdown"))
"""


@pytest.mark.slow
def test_the_batch_function_runs_where_nothing_else_is_installed():
    program = PROGRAM.format(refused=REFUSED, text=TINY)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("8 0\n", 0), done.stderr
