"""References from documents to code: names, paths and links must exist.

Documents become wrong when a function is renamed and a sentence about it is forgotten. So every
text in backticks that looks like a name of this project is looked up in an index of the whole tree,
made by parsing, not by importing:

| in backticks | looks like ours when | must be |
|---|---|---|
| `broker/node/node.py`, `tests/x.py::test_y` | in a folder of ours, or .py, or .md | there |
| `Replica.turn`, `admission.take` | begins with a module, class or instance | defined |
| `ProduceTicket`, `EACH_TURN`, `on_beat` | written as code is | defined or foreign |
| `kill(node)` | it is a call | defined or foreign |

An *instance* is a class name in small letters: `cluster.kill` is `Cluster.kill`. Diagrams (fences
without a language that is run) are looked through for paths and `Class.member`. Plain words are
not looked at, but in the glossary, whose words are identifiers. `FOREIGN` is what others own.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tidy.source import PACKAGES, Source, Violation

FOLDERS = frozenset({*PACKAGES, "src", "tests", "docs", "ottla"})
RUN_FENCES = ("python", "console", "json", "toml", "bash")
GLOSSARY = "docs/glossary.md"
FOREIGN = frozenset(
    {
        # Kafka's, Raft's and other people's words for their own things
        "AppendEntries", "DelayedProduce", "DeleteRecords", "DescribeConfigs", "Docker",
        "InitProducerId", "ListOffsets", "CreateTopics", "DeleteTopics", "OffsetForLeaderEpoch",
        "ApiVersions", "SaslHandshake", "FindCoordinator", "JoinGroup", "OffsetCommit", "Produce",
        "Fetch", "Metadata", "InitializingError", "KafkaError", "KafkaException", "BufferError",
        "NotEnoughReplicasException", "CreateTime", "LogAppendTime",
        "log.segment.bytes", "log.dirs", "log.flush.interval.messages", "transactional.id",
        "group.id", "enable_idempotence", "bootstrap_servers",
        # of the standard library and of packages we use
        "run_in_executor", "call_soon", "call_later", "MDB_NOSYNC", "MDB_WRITEMAP", "NOSYNC",
        "ThreadPoolExecutor", "BufferedProtocol", "SortedDict", "SortedList", "OTTLA_REWRITE",
        "crc32c", "sys.modules", "DefaultRecordBatchBuilder",
    }
)  # fmt: skip

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^\s*(`{3,})\s*(\w*)")
_LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.*)$")
_PATH = re.compile(r"^\.?[\w-]+(?:[./][\w-]+)*/?$")
_DOTTED = re.compile(r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_CALL = re.compile(r"^([A-Za-z_][\w.]*)\(.*\)$")
_CAMEL = re.compile(r"^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")
_UPPER = re.compile(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_SNAKE = re.compile(r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$")
_WORD = re.compile(r"^[A-Za-z]\w*$")
_DRAWN_PATH = re.compile(r"(?<![\w/.])(?:[\w-]+/)+[\w-]+\.(?:py|md)\b")
_DRAWN_MEMBER = re.compile(r"(?<![\w.])([A-Z][A-Za-z]*[a-z]\.[a-z_]\w*)")
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass
class Tree:
    """Everything there is to refer to."""

    files: frozenset[str]
    names: set[str] = field(default_factory=lambda: set(dir(builtins)))
    """Every identifier that is defined somewhere, whatever it is."""
    dotted: set[str] = field(default_factory=set)
    """`module.name`, `Class.member`, `instance.member`, and all of them behind their packages."""
    heads: set[str] = field(default_factory=set)
    """First parts of `dotted`: what begins with one of these is ours."""

    def has_path(self, path: str) -> bool:
        """A file, a folder, or the bare name of a file."""
        path = path.removeprefix("./").rstrip("/")
        if path.startswith("ottla/"):
            path = f"src/{path}"
        if "/" not in path and path.endswith(".py"):
            return any(each.rsplit("/", 1)[-1] == path for each in self.files)
        return path in self.files or any(each.startswith(path + "/") for each in self.files)


def index(files: Iterable[str], sources: Iterable[Source]) -> Tree:
    """The tree of a checkout: its files, and what its python files define."""
    tree = Tree(frozenset(files))
    members: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for source in sources:
        module = source.path.removeprefix("src/ottla/").removesuffix(".py").replace("/", ".")
        module = module.removesuffix("__init__").rstrip(".") or "ottla"
        tree.names.add(module.rsplit(".", 1)[-1])
        for name in _top_level(source.tree):
            tree.names.add(name)
            _define(tree, module, name)
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(_members(node))
                bases.setdefault(node.name, set()).update(_base_names(node))
            elif isinstance(node, ast.arg):
                tree.names.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                tree.names.add(node.name)
    for name in members:
        for member in _inherited(name, members, bases):
            tree.names.add(member)
            for owner in (name, _instance(name)):
                tree.dotted.add(f"{owner}.{member}")
    tree.heads = {each.split(".", 1)[0] for each in tree.dotted}
    return tree


def _define(tree: Tree, module: str, name: str) -> None:
    """A module's name counts behind any of its packages, as people write it."""
    parts = ["ottla", *module.split(".")] if module != "ottla" else ["ottla"]
    for first in range(len(parts)):
        tree.dotted.add(".".join((*parts[first:], name)))
        if first < len(parts) - 1:
            tree.dotted.add(".".join(parts[first:]))
            tree.dotted.update(".".join(parts[first:last]) for last in range(first + 2, len(parts)))


def _top_level(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.If):  # what is imported for type checkers only
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom):
                    yield from (alias.name for alias in inner.names)
        else:
            yield from _assigned(node)


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Methods, fields, slots, and what methods assign to self."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
        else:
            yield from _assigned(statement)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and _is_own(inner):
            yield inner.attr


def _is_own(node: ast.Attribute) -> bool:
    """Whether something is assigned to it, as a field of self."""
    owner = node.value
    return isinstance(node.ctx, ast.Store) and isinstance(owner, ast.Name) and owner.id == "self"


def _base_names(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name):
            yield inner.id


def _inherited(name: str, members: dict[str, set[str]], bases: dict[str, set[str]]) -> set[str]:
    found, waiting, seen = set(members[name]), [name], {name}
    while waiting:
        for base in bases.get(waiting.pop(), ()):
            if base not in seen:
                seen.add(base)
                waiting.append(base)
                found |= members.get(base, set())
    return found


def _instance(name: str) -> str:
    return _BEFORE_CAPITAL.sub("_", name).lower()


# ---- documents


def lost_references(path: str, text: str, tree: Tree) -> Iterator[Violation]:
    """Backticked names and paths, and those in diagrams, that are not in the tree."""
    for number, line, fence in _lines(text):
        if fence is None:
            for span in _SPAN.findall(line):
                if _lost(span.strip(), tree, words=path == GLOSSARY):
                    yield Violation(path, number, f"there is no {span!r}")
        elif fence not in RUN_FENCES:
            for drawn in _DRAWN_PATH.findall(line):
                if not tree.has_path(drawn):
                    yield Violation(path, number, f"there is no {drawn!r}")
            for drawn in _DRAWN_MEMBER.findall(line):
                if drawn.split(".")[0] in tree.heads and drawn not in tree.dotted:
                    yield Violation(path, number, f"there is no {drawn!r}")


def _lines(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Numbered lines, each with the language of the fence it lies in (None: in none)."""
    fence: tuple[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if found is None:
            yield number, line, None if fence is None else fence[1]
        elif fence is None:
            fence = (found[1], found[2])
        elif found[1] == fence[0]:
            fence = None


def _lost(span: str, tree: Tree, *, words: bool) -> bool:
    call = _CALL.match(span)
    name = span if call is None else call[1]
    if name in FOREIGN:
        return False
    path, *tests = name.split("::")
    if tests:
        return not tree.has_path(path) or tests[-1].split("[")[0] not in tree.names
    if _is_path(name):
        return not tree.has_path(name)
    if _DOTTED.match(name):
        return name.split(".")[0] in tree.heads and name not in tree.dotted
    as_code = _CAMEL.match(name) or _UPPER.match(name) or _SNAKE.match(name)
    if as_code or (_WORD.match(name) and (words or call is not None)):
        return name not in tree.names
    return False


def _is_path(span: str) -> bool:
    if not _PATH.match(span):
        return False
    folder, slash, _ = span.partition("/")
    return span.endswith((".py", ".md")) or (slash == "/" and folder in FOLDERS)


def broken_links(root: Path, path: str, text: str) -> Iterator[Violation]:
    """Links to files that are not there, or to headings that their file does not have."""
    for number, line, fence in _lines(text):
        for target in () if fence is not None else _LINK.findall(_SPAN.sub("", line)):
            if "://" in target or target.startswith("mailto:"):
                continue
            place, _, anchor = target.partition("#")
            file = (root / path).parent / place if place else root / path
            if not file.exists():
                yield Violation(path, number, f"links to {target!r}, which is not there")
            elif anchor and anchor not in _anchors(file.read_text(encoding="utf-8")):
                yield Violation(path, number, f"links to {target!r}, which has no such heading")


def _anchors(text: str) -> list[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = (_HEADING.match(line) for _, line, fence in _lines(text) if fence is None)
    plain = (re.sub(r"[^\w\- ]", "", found[1].lower()) for found in headings if found)
    return [each.strip().replace(" ", "-") for each in plain]


def unlisted(path: str, text: str, documents: Iterable[str]) -> Iterator[Violation]:
    """Documents that the index at `path` does not link to."""
    folder = path.rpartition("/")[0] + "/"
    linked = {target.partition("#")[0] for target in _LINK.findall(text)}
    for document in documents:
        if document != path and document.removeprefix(folder) not in linked:
            yield Violation(path, 1, f"does not link to {document}")
