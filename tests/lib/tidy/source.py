"""What the rules look at: the python files of this repository, each parsed once.

`sources` asks git which files there are, so that ignored folders cost nothing. A `Source` keeps
its tree and the flat list of its nodes, because a dozen rules walk them all.
"""

import ast
import functools
import io
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("broker", "raft", "idempotency", "log", "sim")
ROOTS = (*PACKAGES, "src", "tests")
_NO_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)


@dataclass(frozen=True)
class Violation:
    """One place where a rule does not hold."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Source:
    """One file: where it lies (relative to the repository, with slashes) and what it says."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return ast.parse(self.text, self.path)

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree; cached, since most rules walk all of them."""
        return tuple(ast.walk(self.tree))

    @property
    def lines(self) -> list[str]:
        """The file's lines, without their ends."""
        return self.text.splitlines()

    @functools.cached_property
    def code(self) -> frozenset[int]:
        """Numbers of the lines that hold code: no docstring, no words after a field, no comment, no
        blank line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        held = (each for each in tokens if each.type not in _NO_CODE)
        lines = {number for each in held for number in range(each.start[0], each.end[0] + 1)}
        for node in self.nodes:
            match node:
                case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                    lines.difference_update(range(first, last + 1))
        return frozenset(lines)

    @property
    def is_test(self) -> bool:
        """Whether the file is part of the tests, helpers included."""
        return self.path.startswith("tests/")

    @property
    def is_api(self) -> bool:
        """Whether others read the file's public names: packages and the helpers of the tests."""
        return not self.is_test or self.path.startswith("tests/lib/")

    def comments(self) -> Iterator[tuple[int, str]]:
        """Line number and text of every comment."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string

    def at(self, node: ast.AST, text: str) -> Violation:
        """A violation at the place of a node."""
        return Violation(self.path, getattr(node, "lineno", 1), text)


def repository() -> Path:
    """The root of the checkout these tests lie in."""
    return Path(__file__).resolve().parents[3]


def checkout_files(root: Path) -> list[str]:
    """Every file of the checkout that git knows or would add, links as themselves, sorted.

    New files count before they are added: a check that is green before a commit and red after it
    helps nobody. Without git (an unpacked sdist) it is what lies in the folders.
    """
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True)
        names = {name for name in listed.stdout.split("\0") if name}
    else:
        found = (path for top in ROOTS for path in (root / top).rglob("*"))
        names = {
            path.relative_to(root).as_posix()
            for path in found
            if path.is_file() and "__pycache__" not in path.parts
        }
    return sorted(name for name in names if (root / name).is_symlink() or (root / name).is_file())


def sources(root: Path) -> list[Source]:
    """The python files the limits hold for."""
    return [
        Source(name, (root / name).read_text(encoding="utf-8"))
        for name in checkout_files(root)
        if name.endswith(".py") and name.split("/", 1)[0] in ROOTS
    ]
