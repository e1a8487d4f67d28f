"""Table `variants`: a row for each variant of a study."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.studies.study import NO_FAILURE, Cell, Variant


def variants_columns(variants: Sequence[Variant]) -> dict[str, list[Cell]]:
    """By name: number, label, line (the label of its line in the file), failure ("none": no
    failure), and a column for everything else that varies. All values of a column have one type."""
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
