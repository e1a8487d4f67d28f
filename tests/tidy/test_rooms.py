"""`broker/` and `sim/` have rooms with walls: few modules outside of them, and tests to match."""

import pytest

from docs_rooms import LONGEST_INIT, MOST_FLAT, ROOT, flat, layers, rooms, said_by

ROOMS = [(package, room) for package in MOST_FLAT for room in rooms(package)]
TESTED_ELSEWHERE = {("sim", "studies")}
"""In `tests/studies`, which needs Spark."""


@pytest.mark.parametrize("package", MOST_FLAT)
def test_few_modules_lie_in_no_room(package):
    assert 0 < len(flat(package)) <= MOST_FLAT[package]


@pytest.mark.parametrize("package", MOST_FLAT)
def test_the_import_contract_names_every_room_and_flat_module(package):
    named = [name for layer in layers(package) for name in layer]
    assert sorted(named) == sorted([*rooms(package), *flat(package)])


@pytest.mark.parametrize(("package", "room"), ROOMS)
def test_a_room_says_in_few_lines_what_it_is_and_what_it_is_not(package, room):
    said = said_by(package, room)
    assert len(said.splitlines()) <= LONGEST_INIT
    assert "\n\nNot: " in said


@pytest.mark.parametrize(
    ("package", "room"), [each for each in ROOMS if each not in TESTED_ELSEWHERE]
)
def test_tests_lie_where_their_room_does(package, room):
    assert list((ROOT / "tests" / package / room).rglob("test_*.py"))


@pytest.mark.parametrize("package", MOST_FLAT)
def test_other_tests_are_those_of_flat_modules(package):
    outside = {path.stem for path in (ROOT / "tests" / package).glob("test_*.py")}
    assert outside <= {f"test_{name}" for name in flat(package)}


def test_one_place_of_the_broker_appends_to_the_store():
    """`Runner.write`: what a test or a fault wants to see written goes through there."""
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "broker").rglob("*.py"))
        if "store.append" in path.read_text(encoding="utf-8")
    ]
    assert found == ["broker/driver/runner.py"]
