"""Whatever is cited is in `docs/sources.md`, and what is there is cited.

The planted citations say what a citation is; the last tests look at every file of this repository
but two: this one and `tidy.citations`, which plant what is not there.
"""

import pytest

from tidy import citations
from tidy.source import Violation, checkout_files, repository

ROOT = repository()
PACKED = (".parquet", ".png", ".svg", ".lock", ".sum")
"""Files that are no text, or that a program drew or listed."""

PAGE = """\
# Sources

| name | value |
|---|---|
| KIP-1 | no key: another table |

| key | what is so |
|---|---|
| K-ACKS | waits |
| promise-R1 | first |

| key | from |
|---|---|
| thesis 3.10 | transfer |
"""


def test_keys_are_the_first_cells_of_tables_of_keys():
    assert citations.keys(PAGE) == {"K-ACKS": 9, "promise-R1": 10, "thesis 3.10": 14}


def test_no_key_stands_on_the_page_twice():
    with pytest.raises(ValueError, match=r"sources\.md:15: thesis 3\.10 stands there twice"):
        citations.keys(PAGE + "| thesis 3.10 | once more |\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as in KIP-98, KAFKA-15591", ["KIP-98", "KAFKA-15591"]),
        ("(K-ACKS; SIM-SET-ORDER; RP-GAP).", ["K-ACKS", "SIM-SET-ORDER", "RP-GAP"]),
        ("K-RULES 7; K-NO-EPOCH", ["K-RULES", "K-NO-EPOCH", "K-RULES 7"]),
        ("K-CHECKS 1 and 5, or 13\nto 17", ["K-CHECKS", "K-CHECKS 1", "K-CHECKS 5"]),
        ("# K-CHECKS 13\n# to 17", ["K-CHECKS", "K-CHECKS 13", "K-CHECKS 17"]),
        ("promise-R1 to R5, K3", ["promise-R1", "promise-R5", "promise-K3"]),
        ("Redpanda's pull request 5157", ["redpanda #5157"]),
        ("redpanda issue\n# 3039, redpanda 5355", ["redpanda #3039", "redpanda #5355"]),
        ("librdkafka#4953 (IBM/sarama#2094)", ["librdkafka #4953", "sarama #2094"]),
        ("[this](https://host/x/librdkafka/pull/5593).", ["librdkafka #5593"]),
        ("redpanda issue 5054, fixed by pull\nrequest 5157.", ["redpanda #5054", "#5157"]),
        ("hashicorp/raft 695: late", ["hashicorp/raft #695"]),
        ("Raft thesis, chapters 3 and 10.2.1", ["thesis 3", "thesis 10.2.1"]),
        ("goes on (thesis\n3.5).", ["thesis 3.5"]),
        ("Raft paper, sections 5.2 and 5.3", ["paper 5.2", "paper 5.3"]),
        ("Figures 2 and 13", ["figure 2", "figure 13"]),
        ("Raft paper, figure 7 and 5.3", ["figure 7"]),
        ("librdkafka 2.10, redpanda-22.1.3, K-9, SIGTERM-S", []),
    ],
)
def test_a_citation_is_found_however_it_is_written(text, found):
    assert [key for _, key in citations.cited(text)] == found


def test_a_citation_of_nothing_is_found_with_its_line():
    known = citations.keys(PAGE)
    text = "K-ACKS, promise-R1.\n\nThe successor (thesis\n3.10), and K-ACK.\n"
    (violation,) = citations.unresolved("docs/x.md", citations.cited(text), known)
    assert (violation.line, violation.text) == (4, "docs/sources.md has no 'K-ACK'")


# What nobody has is put together here, so that this file does not cite it.
@pytest.mark.parametrize(
    "text",
    [
        "fac" + "ts/kafka.md 2.1",
        "(fac" + "ts 1.7)",
        "des" + "ign.md, section 3",
        "`hou" + "se.md`",
        "miss" + "ion-R2",
        "R1 of miss" + "ion.md",
        "iss" + "ue 4, item 9",
    ],
)
def test_files_that_nobody_has_are_found(text):
    (violation,) = citations.unreachable("raft/core.py", f"So it says\n({text}).")
    assert violation.line == 2


@pytest.mark.parametrize("text", ["facts of a run", "by design", "permission-R", "the mission"])
def test_words_are_no_files(text):
    assert list(citations.unreachable("raft/core.py", text)) == []


# ---- the real tree


def accept(violations: list[Violation]) -> None:
    if violations:
        pytest.fail("\n".join(map(str, violations)), pytrace=False)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Every file that is written by hand, or from what is; this one plants citations of nothing."""
    paths = [path for path in checkout_files(ROOT) if not path.endswith(PACKED)]
    files = [path for path in paths if not (ROOT / path).is_symlink()]
    return {path: (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in files}


@pytest.fixture(scope="module")
def cited(texts) -> dict[str, list[tuple[int, str]]]:
    """Line and key of all that is cited, by file; but for the two files that plant citations."""
    planted = {"tests/tidy/test_citations.py", "tests/lib/tidy/citations.py"}
    return {path: [*citations.cited(texts[path])] for path in texts if path not in planted}


@pytest.fixture(scope="module")
def known() -> dict[str, int]:
    return citations.page_keys()


def test_nothing_is_cited_that_no_reader_has(texts):
    assert len(texts) > 1000
    accept([each for path, text in texts.items() for each in citations.unreachable(path, text)])


def test_every_citation_resolves(cited, known):
    accept([each for path in cited for each in citations.unresolved(path, cited[path], known)])


def test_every_key_is_cited(texts, cited, known):
    """Itself, or the table whose row it is: who cites K-RULES cites all of them."""
    page = citations.PAGE
    used = {key for path in cited if path != page for _, key in cited[path]}
    whole = "\n".join(texts[path] for path in cited if path != page)
    accept(
        [
            Violation(page, line, f"nobody cites {key}")
            for key, line in known.items()
            if not {key, key.rpartition(" ")[0]} & used and key not in whole
        ]
    )
