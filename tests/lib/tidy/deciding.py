"""Rules for modules that decide: the same inputs must give the same decisions, byte for byte.

They import neither clock nor chance nor I/O, know no `async`, and never depend on the order of a
set, which follows the hash seed of the process. What counts as a set is found in four steps:
expressions that are sets by their form (displays, comprehensions, `set(...)`, set algebra), names
a function binds to such expressions or annotates as sets, attributes a class annotates as sets, and
calls of what the same module says returns one. A set that comes out of another module cannot be
seen, mypy's types are not asked: `tests/sim/chance/test_set_displays.py` looks for it in runs.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidy.imports import imported
from tidy.size import Function
from tidy.source import Source, Violation
from tidy.tables import (
    ASYNC_BY_NAME,
    BANNED_IN_DECIDING,
    DECIDING,
    EXCUSED,
    WAITS_ELSEWHERE,
    lies_in,
)

_SET_TYPES = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"})
_SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_ORDERED_BY = frozenset({"list", "tuple", "iter", "enumerate", "zip", "map", "filter", "dict"})
_ORDERED_BY_KEY = frozenset({"sorted", "min", "max"})
"""Members whose keys are equal stay in the order in which they came."""
_ORDERED_BY_METHOD = frozenset({"join", "extend", "fromkeys"})
_BANNED_CALLS = frozenset({"open", "input", "print", "id", "hash", "__import__", "exec", "eval"})
_BANNED_ATTRIBUTES = frozenset({"__hash__", "import_module"})
"""Ways round the above: hashes of addresses and strings, and modules by name."""


def decides(source: Source) -> bool:
    """Whether the file stands in the table of deciding modules."""
    return lies_in(source.path, DECIDING)


def no_world(source: Source) -> Iterator[Violation]:
    """Deciding code imports no clock, no chance, no I/O, and calls nothing that is one."""
    if not decides(source):
        return
    for node, name in imported(source):
        if name.split(".", 1)[0] in BANNED_IN_DECIDING and not _excused(source, node):
            yield source.at(node, f"deciding code imports {name}")
    for node in source.nodes:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in _BANNED_CALLS:
            yield source.at(called, f"deciding code calls {called.id}()")
        if isinstance(node, ast.Attribute) and node.attr in _BANNED_ATTRIBUTES:
            said = ast.unparse(node)
            if said not in EXCUSED.get(source.path, frozenset()):
                yield source.at(node, f"deciding code uses {said}")


def _excused(source: Source, node: ast.AST) -> bool:
    """Whether an import takes only names that this module may take."""
    assert isinstance(node, ast.Import | ast.ImportFrom), "an import"
    within = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    excused = EXCUSED.get(source.path, frozenset())
    return all(f"{within}{alias.name}" in excused for alias in node.names)


def no_waiting(source: Source) -> Iterator[Violation]:
    """Deciding code knows neither `async` nor `await`: a turn ends before anything waits. Who only
    looks like asyncio awaits nothing."""
    if not decides(source):
        return
    named = () if source.path in ASYNC_BY_NAME else (ast.AsyncFunctionDef,)
    waiting = (*named, ast.AsyncFor, ast.AsyncWith, ast.Await)
    excused = frozenset(_waits_elsewhere(source))
    for node in source.nodes:
        if node in excused:
            continue
        if isinstance(node, waiting) or (isinstance(node, ast.comprehension) and node.is_async):
            place = node.target if isinstance(node, ast.comprehension) else node
            yield source.at(place, "deciding code waits")


def _waits_elsewhere(source: Source) -> Iterator[ast.AST]:
    """The nodes of the function of this module in which a real node may wait, if there is one."""
    for node in source.nodes:
        if isinstance(node, Function) and node.name == WAITS_ELSEWHERE.get(source.path):
            yield from ast.walk(node)


def no_set_order(source: Source) -> Iterator[Violation]:
    """Deciding code never iterates over a set; `sorted` makes an order that can be named, unless it
    goes by a key, which members may have in common."""
    if decides(source):
        yield from _scan(source, source.tree, _Known(frozenset(), frozenset(), _makers(source)))


@dataclass(frozen=True)
class _Known:
    """What is known to be a set at some place: variables, attributes of `self`, and what some
    functions and methods of the module return."""

    names: frozenset[str]
    attributes: frozenset[str]
    makers: frozenset[str]


def _scan(source: Source, scope: ast.AST, known: _Known) -> Iterator[Violation]:
    """Look at one scope with what it binds, then at the scopes inside it with theirs."""
    if isinstance(scope, ast.ClassDef):
        known = replace(known, attributes=_set_attributes(scope))
    else:
        known = replace(known, names=_set_names(scope, known))
    for node in _own_nodes(scope):
        for iterated in _iterated(node):
            if _is_set(iterated, known):
                yield source.at(iterated, f"iterates over a set: {ast.unparse(iterated)}")
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            yield from _scan(source, node, known)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, inner functions and classes named but not entered."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose order a node makes visible."""
    if isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Starred | ast.YieldFrom):
        yield node.value
    elif isinstance(node, ast.Call):
        yield from _iterated_by_call(node)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
        yield node.value


def _iterated_by_call(call: ast.Call) -> Iterator[ast.expr]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "pop" and not call.args:
        yield function.value
    plain = isinstance(function, ast.Name) and function.id in _ORDERED_BY
    method = isinstance(function, ast.Attribute) and function.attr in _ORDERED_BY_METHOD
    by_key = (
        isinstance(function, ast.Name)
        and function.id in _ORDERED_BY_KEY
        and any(each.arg == "key" for each in call.keywords)
    )
    if plain or method or by_key:
        yield from call.args


def _is_set(node: ast.expr, known: _Known) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in known.names
    if isinstance(node, ast.Attribute):
        return _is_self(node.value) and node.attr in known.attributes
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SET_OPERATORS):
        return any(_is_set(side, known) or _is_keys(side) for side in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return _is_set(node.body, known) or _is_set(node.orelse, known)
    return isinstance(node, ast.Call) and _makes_set(node.func, known)


def _makes_set(function: ast.expr, known: _Known) -> bool:
    if isinstance(function, ast.Name):
        return function.id in {"set", "frozenset"} or function.id in known.makers
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in _SET_METHODS or (
        _is_self(function.value) and function.attr in known.makers
    ):
        return True
    return function.attr == "copy" and _is_set(function.value, known)


def _makers(source: Source) -> frozenset[str]:
    """The functions and methods of a module that are annotated as returning sets."""
    return frozenset(
        node.name
        for node in source.nodes
        if isinstance(node, Function) and _is_set_type(node.returns)
    )


def _is_keys(node: ast.expr) -> bool:
    """Whether this is `x.keys()`: ordered by itself, but set algebra on it is not."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"keys", "items"}
    )


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _is_set_type(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.BinOp):
        return _is_set_type(annotation.left) or _is_set_type(annotation.right)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr in _SET_TYPES
    return isinstance(annotation, ast.Name) and annotation.id in _SET_TYPES


def _set_names(scope: ast.AST, known: _Known) -> frozenset[str]:
    """The variables of a scope that hold sets; a name bound to anything else as well does not."""
    sets = set(known.names)
    others: set[str] = set()
    if isinstance(scope, Function):
        arguments = scope.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            (sets.add if _is_set_type(argument.annotation) else others.add)(argument.arg)
    for node in _own_nodes(scope):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            (sets.add if _is_set_type(node.annotation) else others.add)(node.target.id)
        elif isinstance(node, ast.Assign):
            found = _is_set(node.value, known)
            for target in node.targets:
                if isinstance(target, ast.Name):
                    (sets.add if found else others.add)(target.id)
    return frozenset(sets - others)


def _set_attributes(scope: ast.ClassDef) -> frozenset[str]:
    """The attributes a class annotates as sets, in its body or through `self` in a method."""
    found = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.AnnAssign) and _is_set_type(node.annotation):
            if isinstance(node.target, ast.Attribute) and _is_self(node.target.value):
                found.add(node.target.attr)
            elif isinstance(node.target, ast.Name) and node in scope.body:
                found.add(node.target.id)
    return frozenset(found)
