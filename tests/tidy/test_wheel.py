"""What is built is what lies in the tree, and it installs in each of the ways users install.

The builder can lose a package without a word (docs/decisions/0001-layout.md), so wheel and sdist
are compared file by file with the checkout. The builds run on a copy, so nobody's edits get
between, and the copy exists once with its links and once without, as some checkouts arrive.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tidy.source import PACKAGES, checkout_files, repository

ROOT = repository()
LINKS = {f"src/ottla/{package}" for package in PACKAGES}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with what git lists"),
]


def run(*command: str | Path, cwd: Path | str = "/") -> str:
    """The output of a command that has to succeed, run outside of the checkout."""
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tree() -> list[str]:
    return checkout_files(ROOT)


@pytest.fixture(scope="module")
def copies(tree, tmp_path_factory) -> dict[str, Path]:
    """Two copies of the checkout, `linked` and `unlinked`."""
    base = tmp_path_factory.mktemp("copies")
    for name in tree:
        for copy in ("linked", "unlinked"):
            target = base / copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_symlink() and copy == "unlinked":
                # What git writes where links are not supported: a file that holds the path.
                target.write_text((ROOT / name).readlink().as_posix(), encoding="utf-8")
            else:
                shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return {"linked": base / "linked", "unlinked": base / "unlinked"}


@pytest.fixture(scope="module", params=["linked", "unlinked"])
def built(request, copies, tmp_path_factory) -> Path:
    """A folder with an sdist and the wheel made from that sdist."""
    out: Path = tmp_path_factory.mktemp(f"dist-{request.param}")
    build = (sys.executable, "-m", "build", "--no-isolation")
    run(*build, "--outdir", out, copies[request.param])
    return out


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a fresh, empty environment."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    return tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python: Path, *what: str | Path) -> None:
    """Install without dependencies: the packages have to import without them."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "-q", "--no-deps", *what)


def in_wheel(name: str) -> str | None:
    """Where a file of the tree lies in the wheel, if it belongs there."""
    if name in LINKS:
        return None
    if name.startswith("src/ottla/"):
        return name.removeprefix("src/")
    return f"ottla/{name}" if name.split("/", 1)[0] in PACKAGES else None


def imports(tree: list[str]) -> str:
    """A program that imports all that must work without any dependency."""
    light = [f"ottla.{package}" for package in PACKAGES]
    light += [f"ottla.{package}.types" for package in PACKAGES if f"{package}/types.py" in tree]
    report = "print(ottla.__version__, ottla.__file__, ottla.log.__file__)"
    return f"import ottla, {', '.join(light)}; {report}"


def test_the_wheel_holds_the_tree(built, tree):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    held = sorted(name for name in names if ".dist-info/" not in name)
    assert held == sorted(filter(None, map(in_wheel, tree)))


def test_the_sdist_holds_the_tree(built, tree):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {member.name.split("/", 1)[1] for member in archive.getmembers()}
    assert held == {*tree, "PKG-INFO"} - LINKS


def test_the_wheel_is_pure_and_has_its_entry_points(built):
    (wheel,) = built.glob("*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        said = archive.read(entry_points).decode()
    assert "ottla = ottla.__main__:main" in said
    assert "ottla = ottla.pytest_plugin" in said


def test_the_wheel_installs(built, python, tree):
    install(python, *built.glob("*.whl"))
    assert str(python.parents[1]) in run(python, "-c", imports(tree))


def test_the_checkout_installs(copies, python, tree):
    install(python, copies["linked"])
    assert str(python.parents[1]) in run(python, "-c", imports(tree))


@pytest.mark.parametrize("copy", ["linked", "unlinked"])
def test_the_checkout_installs_editable(copies, python, tree, copy):
    install(python, "-e", copies[copy])
    assert str(copies[copy]) in run(python, "-c", imports(tree))
    added = copies[copy] / "log" / f"added_to_{copy}.py"
    added.write_text("seen = 'at once'\n", encoding="utf-8")
    program = f"from ottla.log.{added.stem} import seen; print(seen)"
    assert run(python, "-c", program) == "at once\n"
    added.unlink()
