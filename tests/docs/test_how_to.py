"""Every program in the how-to pages, and in other pages that have one, runs; every test passes."""

import pytest

import docs_programs
from docs_programs import ROOT, blocks

ELSEWHERE = {
    "add-a-study.md": "tests/docs/test_add_a_study.py",
    "audit-a-topic.md": "tests/docs/test_spark_pages.py",
    "compare-with-kafka.md": "tests/cli/test_compare.py",
    "extend-the-simulator.md": "tests/docs/test_tutorial_simulator.py",
    "read-with-spark.md": "tests/docs/test_spark_pages.py",
    "run-a-study-on-a-cluster.md": "tests/studies/test_clusters.py",
    "try-a-bug-of-your-own.md": "tests/docs/test_tutorial_simulator.py",
}
"""Pages of files and clusters, and what plays them."""
PAGES = sorted(
    f"how-to/{path.name}"
    for path in (ROOT / "docs" / "how-to").glob("*.md")
    if path.name not in ELSEWHERE
)
WITH_PROGRAMS = [*PAGES, "explanation/deterministic-asyncio.md"]


def test_pages_that_are_played_elsewhere_are_there_as_is_what_plays_them():
    for page, test in ELSEWHERE.items():
        assert (ROOT / "docs" / "how-to" / page).exists()
        assert (ROOT / test).exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PROGRAMS)
def test_programs_run(page, tmp_path):
    """One process for all of a page's programs: what they need is imported once."""
    programs = [each for each in blocks(page) if each.language == "python" and not each.name]
    assert programs
    for number, program in enumerate(programs):
        text = program.text.replace("port=19092", "port=0")  # another one may have it here
        (tmp_path / f"program_{number}.py").write_text(text, encoding="utf-8")
    runner = "import runpy, sys\nfor name in sys.argv[1:]: runpy.run_path(name, {}, '__main__')\n"
    (tmp_path / "run_all.py").write_text(runner, encoding="utf-8")
    names = " ".join(f"program_{number}.py" for number in range(len(programs)))
    ran = docs_programs.run(f"python run_all.py {names}", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_server_that_is_to_be_pasted_keeps_nobody_waiting():
    """In front of the client's command one held the shell; and a client that does not wait until
    the server answers is refused."""
    starts = ("deploy.master.Master", "deploy.worker.Worker", "SparkConnectServer")
    page = [each.text.splitlines() for each in blocks("how-to/run-a-study-on-a-cluster.md")]
    pasted = [lines for lines in page if any(name in line for line in lines for name in starts)]
    assert len(pasted) == 2
    for setting, *commands in pasted:
        assert setting.startswith("SPARK=")
        assert commands
        for line in commands:
            assert any(name in line for name in starts), line
            assert line.endswith(" &"), line


@pytest.mark.slow
def test_tests_pass(tmp_path):
    tests = [each for page in PAGES for each in blocks(page) if each.name]
    for each in tests:
        (tmp_path / each.name).write_text(each.text, encoding="utf-8")
    ran = docs_programs.run("pytest -q -p no:cacheprovider", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(tests)} passed" in ran.stdout
