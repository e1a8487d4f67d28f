"""The tables of a study as a page: `docs/reference/study-tables.md` is what this writes.

`tests/studies/test_tables.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

from ottla.sim.studies.names import GOLD_PREFIX
from ottla.sim.studies.sheets import GOLD, JUDGING, QUANTILES, SILVER, Sheet, sheets
from tidy.pages import wrapped

_PAGE_HEAD = """\
# Tables of a study

Written from `sim/studies/sql/` by `tests/studies/test_tables.py`; do not edit. A study's own SQL
may query all of these tables; the same text runs on DuckDB and on Spark. Times are microseconds of
the simulator's clock; a column that ends in _us is a time or a duration.

The table variants has a row per variant: variant is its number, label its name, failure the plan of
what goes wrong ('none' if there is none, as always with swarm). There is a column for each setting
that varies in the study.

The tables are made from bronze. The metadata of its Parquet files names their version
(`bronze-version`; [studies](studies.md) has the columns, and the changes of each version). Older
files are read, a newer one is refused.
"""
_GOLD_SAYS = (
    "A few rows per variant; gold_partings has one per seed. Intervals are Wilson's 95 % intervals "
    "of shares. If none was hit, or all were, they are one-sided, by Clopper and Pearson, as in "
    "sentences. Percentiles are nearest ranks: the smallest value that so many percent do not "
    "exceed."
)
_QUANTILES_SAY = (
    "The same in every study. A mean over few seeds is less certain than 1.96 standard errors say: "
    "with three seeds, such an interval holds the true mean 81 times in 100, not 95."
)
_LAYERS = (
    (SILVER, "Silver", "What happened, run by run. Every table has run_id and variant.", ""),
    (JUDGING, "Verdicts", "What the SQL of the invariants finds in the runs that are judged.", ""),
    (GOLD, "Gold", _GOLD_SAYS, GOLD_PREFIX),
    (QUANTILES, "Quantiles", _QUANTILES_SAY, ""),
)


def page() -> str:
    """`docs/reference/study-tables.md`."""
    parts = [_PAGE_HEAD]
    for layer, title, says, prefix in _LAYERS:
        parts.append(f"\n## {title}\n\n{wrapped(says)}\n")
        parts += [_told(each, prefix) for each in sheets(layer) if not each.shared]
    return "".join(parts)


def _told(table: Sheet, prefix: str) -> str:
    rows = "".join(f"| {name} | {type_} | {says} |\n" for name, type_, says in table.columns)
    says = f"{table.says[0].upper()}{table.says[1:]}."
    head = "| column | type | meaning |\n|---|---|---|\n"
    return f"\n### {prefix}{table.name}\n\n{wrapped(says)}\n\n{head}{rows}"
