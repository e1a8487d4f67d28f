"""The names of a study's tables, and of the package that an engine lacks.

In SQL silver tables have their own name, gold tables `gold_` and their name, because both have a
table of requests. `sql/` says what is in each.
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
"""The results of the SQL statements; made batch by batch, of judged runs."""
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
"""The column by which tables are sorted, if they have it."""
EVENTS = "ev"
"""Events of the runs in work, while silver tables and verdicts are made."""
GOLD_PREFIX = "gold_"
DUCKDB_LACKS = "engine duckdb: DuckDB is missing: pip install 'ottla[sim]'"
