"""`broker/driver/`: one owner for each field, callbacks one way. Both are read from the source.

A field is written by methods of its own class only: who wants it to change calls one. So whoever
looks for the reason of a value finds all of it in one file. What the parts of a driver remember of
each replica stands in one record, `HostedReplica`; there each field has one class that writes it.
The rule is by names: no statement of the driver assigns to an attribute of another object if any
class of the driver, or of the rooms whose objects it keeps, has an attribute of that name. What is
left are values on their way, which a driver fills in or empties: effects and messages.

Objects hold each other one way: the runner its parts, and a part no method of the runner, unless
the event loop or a disk calls that part, and nobody is there to take what it returns
(docs/decisions/0041).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from docs_rooms import ROOT

DRIVER = "broker/driver"
KEPT = (DRIVER, "broker/heartbeats", "broker/event_loop", "broker/turn/looks.py")
"""Where the classes of objects are that a driver keeps."""
RECORD = "hosted"
CALLED_BY_THE_LOOP = {"Alarm", "Syncer", "Reading", "LookDriver"}
"""The only ones that may hold a method of the runner."""


def trees(*places: str) -> Iterator[tuple[str, ast.Module]]:
    for place in places:
        found = ROOT / place
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def targets(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes that are assigned, added to, or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node


def of_self(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"


def fields(*places: str) -> set[str]:
    """Attributes that classes there give themselves."""
    return {
        each.attr
        for _, tree in trees(*places)
        for made in ast.walk(tree)
        if isinstance(made, ast.ClassDef)
        for each in targets(made)
        if of_self(each)
    }


def strangers(tree: ast.AST, owned: set[str]) -> list[str]:
    """Assignments to what another object owns."""
    others = (each for each in targets(tree) if not of_self(each) and not of_record(each))
    found = [each for each in others if each.attr in owned]
    return [f"{each.lineno}: {ast.unparse(each)}" for each in found]


def of_record(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == RECORD


def test_a_field_of_the_driver_is_written_by_its_own_class_only():
    owned = fields(*KEPT)
    assert {"dirty", "look_at", "trusting", "syncs", "changed", "plan"} <= owned
    found = {path: strangers(tree, owned) for path, tree in trees(DRIVER)}
    assert {path: each for path, each in found.items() if each} == {}


def test_a_field_of_a_hosted_replica_has_one_writer():
    found = writers(*(tree for _, tree in trees(DRIVER)))
    assert {"dirty", "applied", "look_at"} <= set(found)
    assert {field: names for field, names in found.items() if len(names) != 1} == {}
    assert {name for names in found.values() for name in names} == {
        "Runner",
        "Notices",
        "DeadlineWatch",
    }


def test_whoever_takes_a_hosted_replica_calls_it_so():
    """The rules know it by this name."""
    for path, tree in trees(DRIVER):
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.annotation is not None:
                kind = ast.unparse(node.annotation)
                assert (kind == "HostedReplica") == (node.arg == RECORD), f"{path}:{node.lineno}"


def writers(*found: ast.AST) -> dict[str, set[str]]:
    """By field of a hosted replica: the classes that write it after it is made."""
    named: dict[str, set[str]] = {}
    for tree in found:
        inside = {id(each): made.name for made in classes(tree) for each in targets(made)}
        for each in targets(tree):
            if of_record(each):
                named.setdefault(each.attr, set()).add(inside.get(id(each), "a function"))
    return named


def test_nobody_else_in_the_broker_writes_to_a_driver():
    """Elsewhere an object of the driver is known by its name."""
    names, owned = {"runner", "hosted", "syncer", "deadlines", "looks"}, fields(*KEPT)
    found = []
    for path, tree in trees("broker", "sim"):
        for each in targets(tree) if not path.startswith(DRIVER) else ():
            owner = each.value
            name = owner.attr if isinstance(owner, ast.Attribute) else ast.unparse(owner)
            if name.strip("_") in names and each.attr in owned:
                found.append(f"{path}:{each.lineno}: {ast.unparse(each)}")
    assert found == []


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef))


def parts_with_a_way_back(tree: ast.AST) -> dict[str, list[str]]:
    """Which of its own methods the runner hands to which of its parts."""
    (runner,) = [each for each in classes(tree) if each.name == "Runner"]
    methods = {each.name for each in runner.body if isinstance(each, ast.FunctionDef)}
    found: dict[str, list[str]] = {}
    for call in ast.walk(runner):
        if not isinstance(call, ast.Call):
            continue
        for given in [*call.args, *(each.value for each in call.keywords)]:
            if isinstance(given, ast.Attribute) and of_self(given) and given.attr in methods:
                found.setdefault(ast.unparse(call.func), []).append(given.attr)
    return found


def test_only_whom_the_loop_calls_calls_the_runner():
    ((_, tree),) = trees(f"{DRIVER}/runner.py")
    ways = parts_with_a_way_back(tree)
    assert {"Alarm", "Syncer"} <= set(ways), "they are found at all"
    assert {part: ways[part] for part in ways if part not in CALLED_BY_THE_LOOP} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class A:\n def f(self, other): other.dirty = True", ["2: other.dirty"]),
        ("class A:\n def f(self): self._syncer.syncs += 1", ["2: self._syncer.syncs"]),
        ("class A:\n def f(self, b): a, b.changed = b.changed, {}", ["2: b.changed"]),
        ("class A:\n def f(self): self.dirty = True", []),
        ("def f(effects): effects.answers = ()", []),
    ],
)
def test_the_rule_finds_it(source, found):
    assert strangers(ast.parse(source), fields(*KEPT)) == found


def test_a_second_writer_is_found():
    source = (
        "class A:\n def f(self, hosted): hosted.gone = True\ndef f(hosted): hosted.gone = False"
    )
    assert writers(ast.parse(source)) == {"gone": {"A", "a function"}}


def test_the_way_back_is_found():
    source = "class Runner:\n def __init__(self): Part(1, wake=self.wake)\n def wake(self): ..."
    assert parts_with_a_way_back(ast.parse(source)) == {"Part": ["wake"]}
