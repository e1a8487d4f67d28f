"""What the tables of a study are called.

Silver tables go by their own name in SQL, gold tables by `gold_` and their name: both have a table
of requests. What is in each is said where it is made, in `sql/`.
"""

from __future__ import annotations

SILVER = (
    "runs",
    "requests",
    "failovers",
    "acked",
    "producers",
    "answers",
    "python_verdicts",
    "reached",
)
"""Made wave by wave."""
VERDICTS = "verdicts"
"""What the SQL statements find; made batch by batch, of judged runs."""
GOLD = (
    "verdicts",
    "losses",
    "failover",
    "requests",
    "kills",
    "coverage",
    "throughput",
    "differences",
    "partings",
)
VARIANTS = "variants"
STUDENT_T = "student_t"
"""Quantiles, the same in every study."""
KIND = "kind"
"""The column by which tables that have it are sorted."""
EVENTS = "ev"
"""Events of the runs under way, while silver tables and verdicts are made."""
GOLD_PREFIX = "gold_"
