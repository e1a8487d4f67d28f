"""`make bench`: measure Ottla against its targets; `make bench ARGS="produce --quick"`: a part."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
    sys.exit(import_module("bench.suite").main())
