"""Rules on imports that hold per module, so that they need not wait for a module to exist.

The arrows between packages are import-linter's business (`pyproject.toml`).
"""

import ast
from collections.abc import Iterator

from tidy.source import PACKAGES, Source, Violation
from tidy.tables import CONFINED, lies_in


def imported(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Every imported module by its full name, also from inside functions and type checking."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node, node.module


def absolute(source: Source) -> Iterator[Violation]:
    """Imports are absolute: a package has one name, `ottla.<package>`."""
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield source.at(node, "relative import")


def confined(source: Source) -> Iterator[Violation]:
    """Some libraries have one home."""
    if source.is_test:
        return
    for node, name in imported(source):
        library = name.split(".", 1)[0]
        homes = CONFINED.get(library)
        if homes is not None and not lies_in(source.path, homes):
            yield source.at(node, f"{library} is imported only in {', '.join(homes)}")


def below_the_root(source: Source) -> Iterator[Violation]:
    """Packages know each other by `ottla.<package>`, never the facade or what stands above them."""
    if source.path.split("/", 1)[0] not in PACKAGES:
        return
    for node, name in imported(source):
        if name == "ottla":
            names = {alias.name for alias in getattr(node, "names", ())}
            if names != {"__version__"}:
                yield source.at(node, "imports the facade; write `from ottla.<package>... import`")
        elif name.startswith("ottla.") and name.split(".")[1] not in PACKAGES:
            yield source.at(node, f"imports {name}, which stands above the packages")
