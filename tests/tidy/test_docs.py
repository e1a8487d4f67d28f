"""What documents say of the code is there: names, paths, links; with planted lies.

The planted cases run on a tree of two files, so that they say what the rule is and not what this
repository happens to contain; the last tests hold the rules against the real documents.
"""

import pytest

from ottla import Cluster
from tidy import references
from tidy.source import Source, Violation, checkout_files, repository, sources

ROOT = repository()
INDEX = "docs/README.md"

NODE = '''
LIMIT_BYTES = 4
class Base:
    def stop(self): ...
class DiskNode(Base):
    """Doc."""
    state: int = 0
    __slots__ = ("taken",)
    def __init__(self, port): self.address = port.others = port
    def start_up(self): ...
def open_node(path): ...
'''


@pytest.fixture(scope="module")
def tree():
    files = ["broker/node/node.py", "broker/wire/api/fetch.py", "src/ottla/cli.py", "docs/a.md"]
    code = [
        Source("broker/node/node.py", NODE),
        Source("broker/wire/api/fetch.py", "def handle(): ..."),
        Source("src/ottla/cli.py", "def main(): ..."),
        Source("tests/x/test_x.py", "def test_it(): ..."),
    ]
    return references.index([*files, "tests/x/test_x.py"], code)


@pytest.mark.parametrize(
    "span",
    [
        "broker/node/node.py",
        "broker/wire/api/",
        "node.py",
        "ottla/cli.py",
        "tests/x/test_x.py::test_it[case]",
        "DiskNode",
        "DiskNode.start_up",
        "DiskNode.stop",
        "DiskNode.address",
        "DiskNode.state",
        "disk_node.start_up(port)",
        "node.open_node",
        "ottla.broker.node.node.open_node",
        "broker.wire.api.fetch",
        "api.fetch.handle",
        "cli.main",
        "ottla.cli.main",
        "open_node(path)",
        "LIMIT_BYTES",
        "port",
        "AppendEntries",
        "log.segment.bytes",
        "asyncio.Future",
        "min.insync.replicas",
        "acks=all",
        "pip install ottla",
        "plain",
        "node-1",
        "/tmp/data",
    ],
)
def test_what_is_there_or_not_ours_passes(tree, span):
    assert list(references.lost_references("docs/x.md", f"See `{span}`.", tree)) == []


@pytest.mark.parametrize(
    "span",
    [
        "broker/nodes.py",
        "broker/gone/",
        "gone.py",
        "docs/gone.md",
        "tests/x/test_x.py::test_gone",
        "tests/x/test_y.py::test_it",
        "DiskNod",
        "DiskNode.start",
        "DiskNode.others",
        "disk_node.start(port)",
        "node.open_nodes",
        "ottla.broker.nodes",
        "ottla.broker.node.node.close_node",
        "broker.wire.api.fetch.handled",
        "close_node(path)",
        "close(path)",
        "close_node",
        "LIMIT_RECORDS",
    ],
)
def test_what_is_gone_is_found(tree, span):
    (violation,) = references.lost_references("docs/x.md", f"First.\n\nSee `{span}`.", tree)
    assert violation.line == 3
    assert span in violation.text


def test_a_renamed_function_is_found_wherever_it_was_named():
    text = "`DiskNode.start_up` calls `start_up()`."
    before = references.index([], [Source("broker/node/node.py", NODE)])
    after = references.index([], [Source("broker/node/node.py", NODE.replace("start_up", "begin"))])
    assert list(references.lost_references("docs/x.md", text, before)) == []
    assert len(list(references.lost_references("docs/x.md", text, after))) == 2


def test_words_of_the_glossary_are_identifiers(tree):
    found = list(references.lost_references("docs/glossary.md", "`state` and `seat`", tree))
    assert [violation.text for violation in found] == ["there is no 'seat'"]


@pytest.mark.parametrize(
    ("fence", "count"), [("text", 2), ("mermaid", 2), ("", 2), ("python", 0), ("console", 0)]
)
def test_diagrams_are_looked_through_and_programs_are_not(tree, fence, count):
    text = f"```{fence}\nbroker/gone.py -> DiskNode.gone -> DiskNode.start_up\n```\n"
    assert len(list(references.lost_references("docs/x.md", text, tree))) == count


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ("[a](a.md)", 0),
        ("[a](a.md#the-first-part-of-2)", 0),
        ("[x](#here)", 0),
        ("[web](https://example.org/none)", 0),
        ("`[code](gone.md)`", 0),
        ("[gone](gone.md)", 1),
        ("[gone](a.md#no-such-part)", 1),
        ("[gone](../a.md)", 1),
    ],
)
def test_links_lead_somewhere(tmp_path, link, count):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# The *first* part, of 2\n", encoding="utf-8")
    text = f"# Here\n\n{link}\n"
    (tmp_path / "docs" / "x.md").write_text(text, encoding="utf-8")
    assert len(list(references.broken_links(tmp_path, "docs/x.md", text))) == count


def test_the_index_links_to_every_document():
    text = "[a](a.md) and [b](deep/b.md#part)"
    documents = ["docs/README.md", "docs/a.md", "docs/deep/b.md", "docs/c.md"]
    found = list(references.unlisted("docs/README.md", text, documents))
    assert [violation.text for violation in found] == ["does not link to docs/c.md"]


# ---- the real documents


def accept(violations: list[Violation]) -> None:
    if violations:
        pytest.fail("\n".join(map(str, violations)), pytrace=False)


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    found = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    paths = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def checkout(documents):
    """Documents are named beside what git lists: an unpacked sdist has no git to ask."""
    return references.index([*checkout_files(ROOT), *documents], sources(ROOT))


def test_documents_name_what_there_is(documents, checkout):
    assert len(documents) > 10
    accept(
        [
            violation
            for path, text in documents.items()
            for violation in references.lost_references(path, text, checkout)
        ]
    )


def test_links_of_documents_resolve(documents):
    accept(
        [
            violation
            for path, text in documents.items()
            for violation in references.broken_links(ROOT, path, text)
        ]
    )


def test_every_public_member_of_a_cluster_has_an_example():
    """`make test` runs them as doctests; `start` and `stop` are what `with` does."""
    public = [name for name in vars(Cluster) if not name.startswith("_")]
    assert len(public) > 15
    without = [name for name in public if ">>> " not in (getattr(Cluster, name).__doc__ or "")]
    assert sorted(without) == ["start", "stop"]


def test_the_index_is_complete(documents):
    of_docs = [path for path in documents if path.startswith("docs/")]
    accept(list(references.unlisted(INDEX, documents[INDEX], of_docs)))
