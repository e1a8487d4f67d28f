"""Every promise has a checker that notices when it is broken, and a mutant that shows it.

OTTLA_REWRITE=1 writes the page anew. The slow tests break the code, mutant by mutant, and run the
ordinary test that must notice.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import docs_promises
from docs_promises import PAGE, ROOT, SMALL, Pair, Promise, planted, promises, squeezed
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.machine import trees
from ottla.sim.mutants.planted import Planted, read
from tidy.docs import refusals, unproven

ROWS = promises()
PAIRS = sorted({each for row in ROWS for each in row.pairs})
BY_TEST = [each for each in PAIRS if each.is_test]
MUTANTS = ROOT / "docs" / "reference" / "mutants.md"
KEY = re.compile(r"^\| (promise-\w+) \| (.*) \|$", re.MULTILINE)
CAUGHT = re.compile(r"^> mutant (\w+) -> (.+)$", re.MULTILINE)


def test_the_page_says_what_the_table_says():
    written = docs_promises.page(ROWS)
    if os.environ.get("OTTLA_REWRITE"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written


@pytest.mark.parametrize("path", sorted({row.page for row in ROWS}))
def test_the_words_stand_on_the_page_that_is_named(path):
    there = squeezed((ROOT / path).read_text(encoding="utf-8"))
    assert [row.words for row in ROWS if row.page == path and row.words not in there] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words[:40])
def test_every_cell_is_filled_with_what_there_is(row: Promise):
    assert row.pairs
    table = planted()
    for pair in row.pairs:
        assert docs_promises.breaks_of(pair.mutant, table)
        assert pair.is_test or docs_promises.checks_of(pair.checker)


def test_the_tests_are_there():
    table = "\n".join(f"| {each.mutant} | it | {each.checker} |" for each in BY_TEST)
    assert list(unproven(ROOT, f"| what | why | test |\n|---|---|---|\n{table}")) == []
    assert len(refusals(f"| what | why | test |\n|---|---|---|\n{table}")) == len(BY_TEST)


def test_what_ottla_owes_its_users_is_all_there():
    """Each key of the page of sources has a row that quotes it."""
    sources = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    owed = dict(KEY.findall(sources))
    assert len(owed) > 15
    said = [row.words for row in ROWS if row.page == "docs/sources.md"]
    assert [key for key, text in owed.items() if not any(each in text for each in said)] == []


def noticed() -> set[Pair]:
    """What the page of mutants and the scenarios say that was noticed, by whom."""
    found = set()
    for line in MUTANTS.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| sim-M\d+ \|.*seeds|\| sim-M\d+ .*sim-I", line):
            cells = [each.strip() for each in line.strip("|").split("|")]
            found |= {Pair(each, cells[0]) for each in re.findall(r"sim-I\d+", cells[-1])}
    for path in sorted((ROOT / "sim" / "scenarios").glob("*.txt")):
        for mutant, who in CAUGHT.findall(path.read_text(encoding="utf-8")):
            found |= {Pair(each, f"sim-{mutant}") for each in who.split()}
    return found


def test_an_invariant_has_noticed_the_mutant_beside_it():
    assert [each for each in PAIRS if not each.is_test and each not in noticed()] == []


def test_an_invariant_that_judges_keeps_a_promise_or_is_one_of_these():
    """Those break planted mutants alone, or end no run first: labelled histories try them."""
    used = {each.checker for each in PAIRS}
    without = [each.id for each in INVARIANTS if each.judge and each.id not in used]
    assert without == WITHOUT


WITHOUT = ["sim-I15", "sim-I17", "sim-I18", "sim-I21", "sim-I32"]


@pytest.mark.parametrize("small", read(SMALL.read_text(encoding="utf-8")), ids=lambda each: each.id)
def test_what_was_made_for_a_test_stands_once_in_the_code_and_is_used(small: Planted):
    there = trees.content(small.file)
    assert there is not None, f"{small.id}: {small.file} is gone"
    assert small.put_into(there.decode()) != there.decode()
    assert small.id in {each.mutant for each in PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", BY_TEST, ids=lambda pair: f"{pair.mutant}-{Path(pair.checker).stem}"
)
def test_the_test_fails_where_the_promise_is_broken(pair: Pair, tmp_path):
    mutant = planted()[pair.mutant]
    there = trees.content(mutant.file)
    assert there is not None
    tree = trees.copied(tmp_path, {mutant.file: mutant.put_into(there.decode()).encode()})
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, pair.checker],
        cwd=ROOT,
        env=trees.surroundings(tree),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout[-2_000:]
    assert re.search(r"^\d+ failed|\d+ failed", done.stdout), done.stdout[-2_000:]
