"""A program that runs seeds in which no set of deciding code can be iterated, however it was made.

`python -m sim_set_displays FIRST COUNT SETTINGS` imports the deciding modules from changed sources.
There, each set written as `{a, b}` or as a comprehension becomes one that refuses iteration, like
those that `ordered` puts in the place of `set(...)` (`ottla.sim.chance.outside`). So do sets that
modules make on import. The program runs seeds, and prints as JSON how many such places there are,
and the result of each run. So it also finds a set that is made in one module and iterated in
another; the linter sees only one module at a time.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from ottla.sim.chance.outside import DECIDING, FrozenMembersOnly, MembersOnly

_NAME = "__members_only__"
_NAMES = {"set": MembersOnly, "frozenset": FrozenMembersOnly}


class Rewriting(ast.NodeTransformer):
    """Makes each set that a source writes down one that lists no members."""

    def __init__(self) -> None:
        self.sets = 0

    def visit_Set(self, node: ast.Set) -> ast.AST:
        """`{a, b}`."""
        self.generic_visit(node)
        return self._made(node, ast.List(node.elts, ast.Load()))

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        """`{a for a in b}`."""
        self.generic_visit(node)
        return self._made(node, ast.ListComp(node.elt, node.generators))

    def _made(self, node: ast.expr, members: ast.expr) -> ast.AST:
        self.sets += 1
        return ast.copy_location(ast.Call(ast.Name(_NAME, ast.Load()), [members], []), node)

    def compiled(self, source: str | bytes, path: str) -> CodeType:
        """A module, rewritten."""
        tree = self.visit(ast.parse(source))
        code: CodeType = compile(ast.fix_missing_locations(tree), path, "exec")
        return code


class Loader(SourceFileLoader):
    """Loads a module rewritten, and keeps no byte code of it."""

    rewriting = Rewriting()

    def get_code(self, fullname: str) -> CodeType:
        """As `SourceFileLoader.get_code`."""
        return self.rewriting.compiled(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """As `SourceFileLoader.exec_module`; what the module makes of sets as it is imported lists
        no members either, as what it makes while a run goes on."""
        vars(module).update(_NAMES)
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds the modules that decide."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As `MetaPathFinder.find_spec`."""
        spec = PathFinder.find_spec(fullname, path) if fullname.startswith(DECIDING) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def planted(source: str) -> dict[str, Any]:
    """The names of a module of this source, rewritten."""
    names: dict[str, Any] = {_NAME: MembersOnly, **_NAMES}
    exec(Rewriting().compiled(source, "planted.py"), names)
    return names


def main(arguments: list[str]) -> None:
    """See the module's text."""
    first, count, settings = arguments
    early = [each for each in sys.modules if each.startswith(DECIDING)]
    assert not early, f"{early} are there already"
    setattr(builtins, _NAME, MembersOnly)
    sys.meta_path.insert(0, Finder())
    from ottla.sim.run import run
    from ottla.sim.settings.settings_file import from_toml

    config = from_toml(settings)
    ran = [run(seed, config) for seed in range(int(first), int(first) + int(count))]
    came = [[each.verdict.value, each.reason, each.digest] for each in ran]
    json.dump({"sets": Loader.rewriting.sets, "came": came}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
