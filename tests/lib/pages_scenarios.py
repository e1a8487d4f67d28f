"""The scenarios as a page: `docs/reference/scenarios.md` is what this writes.

`tests/sim/scenarios/test_scenarios.py` compares page and files; with OTTLA_REWRITE=1 it writes the
page.
"""

from __future__ import annotations

from ottla.sim.scenarios.files import files, opening_of

_HEAD = """\
# Scenarios

This page is generated from the files in `sim/scenarios/`; `tests/sim/scenarios/test_scenarios.py`
plays each of them and compares the two.

A scenario is a transcript: commands to a simulated world of nodes, and what happened. Nothing in it
is random. The judge of a sweep judges its whole history, too ([invariants](invariants.md)). Where a
mutant is named, the scenario is played again with that safety mechanism switched off, and the judge
must notice that (`sim/mutants/catalogue.py`). `sim/scenarios/script.py` has the language.

| id | what happens | from | mutants caught |
|---|---|---|---|
"""


def scenarios_markdown() -> str:
    """The whole page, in Markdown, with a newline at the end."""
    parts = [_HEAD]
    for path in files():
        told = opening_of(path.read_text(encoding="utf-8"))
        link = f"[{told.id}](../../sim/scenarios/{path.name})"
        mutants = " ".join(told.mutants)
        parts.append(f"| {link} | {told.sentence} | {told.source} | {mutants} |\n")
    return "".join(parts)
