"""Patches as people write them: with git, without, moved, beside the package, and none at all."""

import pytest

from ottla.sim.machine import trees
from ottla.sim.machine.patches import PatchError, patched

MAJORITY = """\
--- a/raft/quorum.py
+++ b/raft/quorum.py
@@ -20,7 +20,7 @@

 def majority(voters: int) -> int:
     \"\"\"How many of `voters` make a majority: any two majorities share a member.\"\"\"
-    return voters // 2 + 1
+    return voters // 2


 def reached(values: Sequence[int]) -> int:
"""
NEW = """\
--- /dev/null
+++ b/{}
@@ -0,0 +1 @@
+NAME = 1
"""


@pytest.fixture
def patch(tmp_path):
    """Writes a patch, and gives what it makes of Ottla."""

    def made(text):
        path = tmp_path / "mine.patch"
        path.write_text(text, encoding="utf-8")
        return patched(path)

    return made


def test_what_the_file_holds_behind_it(patch):
    changes, left_out = patch(MAJORITY)
    before = trees.content("raft/quorum.py")
    assert before is not None
    assert changes == {"raft/quorum.py": before.replace(b"voters // 2 + 1", b"voters // 2")}
    assert not left_out


def test_names_without_a_and_b_and_lines_that_moved(patch):
    plain = MAJORITY.replace("a/raft", "raft").replace("b/raft", "raft")
    assert (
        patch(plain) == patch(MAJORITY) == patch(MAJORITY.replace("@@ -20,7 +20,7", "@@ -9,7 +9,7"))
    )


def test_a_module_beside_the_packages_and_a_new_one(patch):
    assert patch(NEW.format("src/ottla/fresh.py")).changes == {"fresh.py": b"NAME = 1\n"}
    assert patch(NEW.format("log/deep/fresh.py")).changes == {"log/deep/fresh.py": b"NAME = 1\n"}


def test_a_file_that_goes(patch):
    name = "sim/scenarios/__init__.py"
    lines = (trees.content(name) or b"").decode().splitlines()
    gone = "".join(f"-{line}\n" for line in lines)
    told = f"--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{gone}"
    assert patch(told).changes == {name: None}


def test_what_is_beside_the_package_is_left_out(patch):
    changes, left_out = patch(MAJORITY + NEW.format("tests/raft/test_fresh.py"))
    assert list(changes) == ["raft/quorum.py"]
    assert left_out == ("tests/raft/test_fresh.py",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no patch\n", "is not a patch"),
        (NEW.format("docs/fresh.md"), "it changes docs/fresh.md, and nothing of the package"),
        (MAJORITY.replace("// 2 + 1", "// 3 + 1"), "patch failed: raft/quorum.py:20"),
        (MAJORITY.replace("quorum", "nowhere"), "raft/nowhere.py: No such file or directory"),
    ],
)
def test_one_line_says_why_it_does_not_fit(patch, text, told):
    with pytest.raises(PatchError) as raised:
        patch(text)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_git_it_says_what_to_do(patch, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PatchError, match="use --tree DIR"):
        patch(MAJORITY)
