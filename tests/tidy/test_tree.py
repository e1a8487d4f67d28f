"""The limits of the house hold for every python file of the checkout.

Rules are about one file each; the other tests are about what all files are together: who imports
whom, and what a simulated run reaches. Beside each stands one that plants what must be found.
"""

import pytest

from ottla.sim.chance import outside
from tidy import docs
from tidy.reached import (
    import_cycle,
    imported_by_runs,
    left_out,
)
from tidy.rules import RULES
from tidy.source import ROOTS, Source, Violation, repository, sources
from tidy.tables import APART, DECIDING
from tidy.types import MOST_ANY, any_lines

ROOT = repository()


@pytest.fixture(scope="module")
def files():
    return sources(ROOT)


@pytest.fixture(scope="module")
def not_implemented() -> str:
    return (ROOT / docs.NOT_IMPLEMENTED).read_text(encoding="utf-8")


def accept(violations: list[Violation]) -> None:
    if violations:
        pytest.fail("\n".join(map(str, violations)), pytrace=False)


def test_the_rules_see_the_tree(files):
    """Guards against a listing that comes back empty and makes everything green."""
    assert {file.path.split("/", 1)[0] for file in files} == set(ROOTS)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rule_holds_everywhere(rule, files):
    accept([violation for file in files for violation in rule(file)])


def test_few_lines_of_the_core_name_any(files):
    assert 0 < sum(map(any_lines, files)) < MOST_ANY


def test_no_modules_import_each_other(files):
    assert import_cycle(files) == []


def test_modules_that_import_each_other_are_found():
    """Also where the import is hidden in a function, or from all but type checkers."""
    one = Source("log/one.py", "from ottla.log.two import Two")
    lazy = "def make():\n    from ottla.log.one import One"
    typed = "if TYPE_CHECKING:\n    from ottla.log.one import One"
    for two in (lazy, typed):
        files = [one, Source("log/two.py", two)]
        assert set(import_cycle(files)) == {"log/one.py", "log/two.py"}
    assert import_cycle([one, Source("log/two.py", "")]) == []


def test_all_that_a_simulated_run_imports_decides_or_is_named(files):
    reached = imported_by_runs(files)
    assert left_out(reached) == []
    assert APART.keys() <= reached


def test_a_module_that_a_run_imports_and_nobody_named_is_found():
    """Through a module of the table, inside a function; for type checking it would not count."""
    planted = [
        Source("sim/run.py", "from ottla.broker.node import node"),
        Source("broker/node/node.py", "def f():\n    from ottla.broker.planted import x"),
        Source(
            "broker/planted.py", "if TYPE_CHECKING:\n    import ottla.broker.wire.server\nx = 1"
        ),
        Source("broker/wire/server.py", "x = 1"),
    ]
    reached = imported_by_runs(planted)
    assert reached == {"sim/run.py", "broker/node/node.py", "broker/planted.py"}
    assert left_out(reached) == ["broker/planted.py"]
    assert left_out(reached, {"broker/planted.py": "why"}) == []


def test_every_deciding_module_is_there(files):
    paths = {file.path for file in files}
    assert [p for p in DECIDING if not any(path.startswith(p) for path in paths)] == []


def test_sets_have_no_order_in_whatever_a_run_imports(files):
    """The net of the run time, but for the judges."""
    reached = imported_by_runs(files) - APART.keys()
    names = {path: f"ottla.{path.removesuffix('.py').replace('/', '.')}" for path in reached}
    missed = {path for path, name in names.items() if not name.startswith(outside.DECIDING)}
    judges = ("sim/invariants/", "sim/specification/")
    assert {path for path in missed if not path.startswith(judges)} == set()


def test_deferred_work_is_listed(files, not_implemented):
    known = frozenset(refusal.what for refusal in docs.refusals(not_implemented))
    accept([violation for file in files for violation in docs.deferred(file, known)])


def test_every_refusal_is_proven(not_implemented):
    accept(list(docs.unproven(ROOT, not_implemented)))
