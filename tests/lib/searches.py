"""How long hypothesis searches: in full, or a quarter of that in `make quick`.

`make quick` is run after every few lines, and each run tries other examples, so its searches are
short. `make test` and CI search in full.
"""

import os

SHORT = bool(os.environ.get("OTTLA_SHORT_SEARCHES"))
"""Whether this is `make quick`, which sets the variable."""
FULL = 100
"""Examples of a test that names no number: hypothesis' own default."""


def examples(full: int = FULL) -> int:
    """How many examples a test tries that tries `full` of them in `make test`."""
    return -(-full // 4) if SHORT else full
