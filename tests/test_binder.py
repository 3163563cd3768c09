"""Binder: the lock covers the dependencies, installs alone, postBuild runs, and the notebooks pass in what it made."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from fresh_venv import ROOT, FreshVenv, checkout, fresh_venv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.programs import ran

BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHON = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
HERE = ".".join(map(str, sys.version_info[:2]))

_WHY = f"binder/requirements.txt is for Python {PYTHON}, this is {HERE}"
needs_its_python = pytest.mark.skipif(HERE != PYTHON, reason=_WHY)


def locked() -> dict[str, str]:
    lines = [one for one in (BINDER / "requirements.txt").read_text().splitlines() if not one.startswith("#")]
    pairs = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert all(pairs), lines
    return {canonicalize_name(pair[1]): pair[2] for pair in pairs if pair}


def wanted(extra: str | None = None) -> list[Requirement]:
    """The direct dependencies of the package with an extra, extras of its own followed."""
    found = []
    for line in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        requirement = Requirement(line)
        own = requirement.name == PROJECT["name"]
        found += [one for name in requirement.extras for one in wanted(name)] if own else [requirement]
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    """What Binder makes: the lock in an empty environment, then postBuild in the checkout."""
    folder = tmp_path_factory.mktemp("binder")
    fresh = fresh_venv(folder / "venv", checkout(folder / "checkout"), with_pip=True)
    fresh.install("--requirement", "binder/requirements.txt")
    done = fresh.run("binder/postBuild")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("No broken requirements found.") == 2
    return fresh


def test_the_lock_covers_every_dependency_of_the_lab() -> None:
    lock = locked()
    for requirement in [*wanted(), *wanted("lab")]:
        version = lock[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} is locked at {version}"


def test_it_is_small_enough_and_names_no_index() -> None:
    assert not {"torch", "triton", "pytest", "cachescope"} & set(locked())
    text = (BINDER / "requirements.txt").read_text()
    assert "://" not in text and "--" not in text.replace("--exclude cachescope", "")


@pytest.mark.sweep
@needs_its_python
def test_what_is_installed_is_the_lock_and_the_package(built: FreshVenv) -> None:
    listed = json.loads(built.run("python", "-m", "pip", "list", "--format", "json").stdout)
    installed = {canonicalize_name(one["name"]): one["version"] for one in listed}
    assert locked().items() <= installed.items()
    assert set(installed) - set(locked()) <= {"cachescope", "pip", "setuptools", "wheel"}


@pytest.mark.sweep
@needs_its_python
def test_all_notebooks_but_the_live_one_pass_strictly_there(built: FreshVenv) -> None:
    kernel = built.folder / "share" / "jupyter" / "kernels" / "of-binder"
    kernel.mkdir(parents=True)
    command = [str(built.folder / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Binder", "language": "python"}
    kernel.joinpath("kernel.json").write_text(json.dumps(spec))
    notebooks = sorted((built.where / "notebooks").glob("*.ipynb"))
    quiet = [path for path in notebooks if path.stem != "08_watch_a_live_compile"]
    pytest_ = [
        sys.executable, "-m", "pytest", "--nbval", "--nbval-kernel-name=of-binder", "-q", "-p",
        "no:cacheprovider",
    ]  # fmt: skip
    environment = built.environment() | {"JUPYTER_PATH": str(kernel.parents[1])}
    done = ran([*pytest_, "--rootdir", built.where, *quiet], environment, cwd=built.where)
    code = sum(one["cell_type"] == "code" for path in quiet for one in json.loads(path.read_text())["cells"])
    assert f"{code} passed" in done.stdout


@pytest.mark.sweep
@needs_its_python
def test_repo2docker_takes_the_lock_and_postbuild(tmp_path: Path) -> None:
    """The tool behind Binder, which plans the image and needs no engine for that."""
    fresh = fresh_venv(tmp_path / "venv", checkout(tmp_path / "checkout"))
    try:
        fresh.install("jupyter-repo2docker==2026.4.0")
    except AssertionError as error:
        pytest.skip(f"jupyter-repo2docker cannot be installed: {str(error).strip().splitlines()[-1]}")
    done = fresh.run("jupyter-repo2docker", "--no-build", "--debug", ".")
    assert done.returncode == 0, done.stderr
    assert f"python={PYTHON}" in done.stderr
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in done.stdout
    assert "RUN ./binder/postBuild" in done.stdout
