"""Table `variants`: what is run, a row for each variant of a study."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.studies.study import NO_FAILURE, Cell, Variant


def variants_columns(variants: Sequence[Variant]) -> dict[str, list[Cell]]:
    """By name: number, label, line (the label of its line in the file), failure ("none" where there
    is none), and a column for whatever else varies. The values of one are all of one type."""
    columns: dict[str, list[Cell]] = {
        "variant": [each.number for each in variants],
        "label": [each.label for each in variants],
        "line": [each.line for each in variants],
        "failure": [each.failure or NO_FAILURE for each in variants],
    }
    for name in variants[0].cells:
        if name not in columns:
            columns[name] = [each.cells[name] for each in variants]
    return columns
