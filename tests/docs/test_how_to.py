"""Every program in the how-to pages, and in other pages that have one, runs; every test passes."""

import pytest

import docs_programs
from docs_programs import ROOT, blocks

SPARK_PAGES = ("audit-a-topic.md", "read-with-spark.md")
"""They need a JVM: test_spark_pages.py runs them."""
PAGES = sorted(
    f"how-to/{path.name}"
    for path in (ROOT / "docs" / "how-to").glob("*.md")
    if path.name not in SPARK_PAGES
)
WITH_PROGRAMS = [*PAGES, "explanation/deterministic-asyncio.md"]


@pytest.mark.parametrize("page", WITH_PROGRAMS)
def test_programs_run(page, tmp_path):
    """One process for all of a page's programs: what they need is imported once."""
    programs = [each for each in blocks(page) if each.language == "python" and not each.name]
    assert programs
    for number, program in enumerate(programs):
        (tmp_path / f"program_{number}.py").write_text(program.text, encoding="utf-8")
    runner = "import runpy, sys\nfor name in sys.argv[1:]: runpy.run_path(name, {}, '__main__')\n"
    (tmp_path / "run_all.py").write_text(runner, encoding="utf-8")
    names = " ".join(f"program_{number}.py" for number in range(len(programs)))
    ran = docs_programs.run(f"python run_all.py {names}", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_tests_pass(tmp_path):
    tests = [each for page in PAGES for each in blocks(page) if each.name]
    for each in tests:
        (tmp_path / each.name).write_text(each.text, encoding="utf-8")
    ran = docs_programs.run("pytest -q -p no:cacheprovider", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(tests)} passed" in ran.stdout
