"""Which commit the code is of: a checkout's own, never that of somebody else's repository."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.sim.machine import code_hash

WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")


def git(folder, *arguments):
    done = subprocess.run(
        ["git", "-C", folder, *WHO, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_commit_is_that_of_who_keeps_this_code(tmp_path, monkeypatch):
    """Installed below a project of the user's own, the code lies in a repository that does not
    have it."""
    package = tmp_path / "site-packages" / "ottla" / "sim"
    package.mkdir(parents=True)
    shutil.copy(code_hash.__file__, package)
    (tmp_path / "README.md").write_text("somebody's own project\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "README.md")
    git(tmp_path, "commit", "-q", "-m", "mine")
    monkeypatch.setattr(code_hash, "files", lambda _: package)
    assert code_hash.commit() is None
    git(tmp_path, "add", "-f", str(package))
    git(tmp_path, "commit", "-q", "-m", "theirs")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert code_hash.commit() == head
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("what a run has written is no change\n")
    assert code_hash.commit() == head
    (package / "code_hash.py").write_text("CHANGED = True\n")
    assert code_hash.commit() == f"{head}+changes"


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("sim/world/world.py", True),
        ("sim/studies/sql/gold.sql", True),
        ("sim/studies/catalogue/acks.toml", False),
        ("sim/studies/audit/job.py", False),
        ("broker/driver/fast_append.py", True),
    ],
)
def test_what_has_no_part_in_a_run_or_its_tables_is_no_other_code(monkeypatch, name, decides):
    """A word that was put right in a study that ships threw its runs away."""
    was = code_hash.code()
    whole = dict(code_hash.sources())
    assert name in whole
    changed = {**whole, name: whole[name] + b"\n"}
    monkeypatch.setattr(code_hash, "sources", lambda: iter(changed.items()))
    code_hash.code.cache_clear()
    assert (code_hash.code() != was) == decides
    code_hash.code.cache_clear()


def test_code_that_lies_in_no_folder_has_no_commit(tmp_path, monkeypatch):
    """It may lie in a zip."""
    monkeypatch.setattr(code_hash, "files", lambda _: Path(tmp_path / "ottla.zip" / "sim"))
    assert code_hash.commit() is None
