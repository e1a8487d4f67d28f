"""The APIs as a page: `docs/reference/apis.md` is what this writes.

`tests/broker/wire/test_codec.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

from ottla.broker.wire.api.table import TABLE


def apis_markdown() -> str:
    """The table as `docs/reference/apis.md` shows it."""
    lines = [
        "# Kafka APIs that Ottla serves",
        "",
        "Generated from `broker/wire/api/table.py`; do not edit.",
        "",
        "| key | API | versions served | advertised | flexible from | module |",
        "|---|---|---|---|---|---|",
    ]
    for row in TABLE:
        served, advertised = ("-".join(map(str, pair)) for pair in (row.served, row.advertised))
        lines.append(
            f"| {row.key} | {row.name} | {served} | {advertised} | {row.flexible_from} "
            f"| `broker/wire/api/{row.module}.py` |"
        )
    return "\n".join(lines) + "\n"
