"""Broken checkers, to test the judge.

A checker that never fires makes a system look correct. Each mutant breaks the checkers in a way in
which real ones were broken. `tests/sim/` shows that the labelled histories detect every one. The
set is empty everywhere else.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias


class CheckerMutant(Enum):
    """One way to get a check wrong (SIM-CHECKERS)."""

    DROPPED_KEY = "sim-K1: the partition is no part of the key under which an offset is looked up"
    SWAPPED_COMPARATOR = "sim-K2: the canonical log is that of the node with the fewest records"
    IGNORED_INCARNATION = "sim-K3: the lives of a node are one"
    LESS_OR_EQUAL = "sim-K4: the first offset that is not committed counts as committed"
    SKIPPED_LAST = "sim-K5: the last row of a history is not looked at"
    INFO_IS_FAIL = "sim-K6: an unknown outcome counts as a failure"


CheckerMutants: TypeAlias = frozenset[CheckerMutant]
NO_CHECKER_MUTANTS: CheckerMutants = frozenset()
