"""Fire hostile frames at a broker: `.venv/bin/python tests/fuzz/run.py --frames 1000000 --seed 1`.

Prints what became of them; a broker that ended, grew or served others wrong is an AssertionError.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    fuzz = import_module("fuzz_broker")
    sys.stdout.write(f"{fuzz.under_fire(fuzz.hostile_frames(asked.seed, asked.frames))}\n")
