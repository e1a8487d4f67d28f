"""A top-level package is named in five places; here they are compared.

The links in `src/ottla` serve editable installs and type checkers, the hatch tables the wheel, the
list in coverage the reports. One left out shows late and elsewhere, hence this test.
"""

import subprocess
import tomllib

import pytest

from tidy.source import PACKAGES, repository

ROOT = repository()
OVERLAY = ROOT / "src" / "ottla"

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout has links")


@pytest.fixture(scope="module")
def tool():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def test_every_package_has_a_relative_link():
    links = {
        path.name: path.readlink().as_posix() for path in OVERLAY.iterdir() if path.is_symlink()
    }
    assert links == {package: f"../../{package}" for package in PACKAGES}


def test_every_folder_with_code_is_a_package():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == set(PACKAGES)


def test_the_wheel_takes_and_maps_every_package(tool):
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    mapped = {package: f"ottla/{package}" for package in PACKAGES}
    assert wheel["sources"] == {"src/ottla": "ottla", **mapped}
    assert wheel["only-include"] == list(wheel["sources"])


def test_builds_leave_out_the_links_and_nothing_else(tool):
    build = tool["hatch"]["build"]
    assert build["exclude"] == [f"/src/ottla/{package}" for package in PACKAGES]
    assert build["skip-excluded-dirs"] is True


def test_the_contract_about_mutants_names_everybody_else(tool):
    named = "mutants only in sim"
    (contract,) = (each for each in tool["importlinter"]["contracts"] if each["name"] == named)
    modules = {
        path.stem for path in (ROOT / "src" / "ottla").glob("[!_]*") if path.suffix != ".typed"
    }
    others = modules - {"sim"} | {"__main__"}
    assert contract["source_modules"] == sorted(f"ottla.{each}" for each in others)


def test_coverage_and_limits_see_every_package(tool):
    assert tool["coverage"]["run"]["source"] == ["src/ottla", *PACKAGES]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_refuses_its_bare_name(package):
    code = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    with pytest.raises(ImportError, match=f"import me as ottla.{package}"):
        exec(compile(code, package, "exec"), {"__name__": package})


@pytest.mark.parametrize("package", PACKAGES)
def test_git_ignores_no_package(package):
    """A plain `log/` line in .gitignore, common in templates, would drop the package."""
    command = ["git", "check-ignore", "--no-index", "-q", f"{package}/module.py"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 1
