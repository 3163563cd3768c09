"""The wheel installs alone, in an environment that has nothing else, and runs."""

import sys
import zipfile
from pathlib import Path

import pytest
from fresh_venv import ROOT, FreshVenv, checkout, fresh_venv

import cachescope
from tests.programs import ran

pytestmark = pytest.mark.sweep  # a wheel and an environment are made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    ran([*build, checkout(folder / "checkout")])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshVenv:
    folder = tmp_path_factory.mktemp("alone")
    fresh = fresh_venv(folder / "venv", folder)
    fresh.install(wheel)
    return fresh


def test_it_holds_the_package_with_its_types_and_samples_and_nothing_else(wheel: Path) -> None:
    files = {path.relative_to(ROOT) for path in (ROOT / "cachescope").rglob("*") if path.is_file()}
    wanted = {path.as_posix() for path in files if "__pycache__" not in path.parts}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert {"cachescope/py.typed", "cachescope/samples/tour/provenance.json"} <= held
    assert wheel.stat().st_size < 3_000_000


def test_the_command_and_the_module_run(installed: FreshVenv) -> None:
    for command in (["cachescope"], ["python", "-m", "cachescope"]):
        done = installed.run(*command, "--version")
        assert (done.returncode, done.stdout) == (0, f"cachescope {cachescope.__version__}\n")


@pytest.mark.parametrize(("sample", "said"), [
    ("tour", "48 lookups in 6 runs: 22 hit, 26 missed"),
    ("whole_directory", "4 entries were made although the graph had been stored before"),
])  # fmt: skip
def test_the_demo_runs(installed: FreshVenv, sample: str, said: str) -> None:
    done = installed.run("cachescope", "demo", sample)
    assert (done.returncode, done.stderr) == (0, "") and said in done.stdout


def test_alone_without_its_dependencies_it_records(wheel: Path, tmp_path: Path) -> None:
    recorder = fresh_venv(tmp_path / "venv", tmp_path)
    recorder.install("--no-deps", wheel)
    done = recorder.run("cachescope", "record", "--", "python", "-c", "print('recorded')")
    assert (done.returncode, done.stdout) == (0, "recorded\n"), done.stderr
    assert len(list(tmp_path.glob("cachescope-runs/*/run.json"))) == 1
    done = recorder.run("cachescope", "demo")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(" is not installed: pip install cachescope\n")


def test_it_is_the_installed_one_without_torch_and_notebooks(installed: FreshVenv) -> None:
    code = """
import cachescope, importlib.util, pathlib, sys
assert pathlib.Path(cachescope.__file__).is_relative_to(sys.prefix), cachescope.__file__
assert not [name for name in ("torch", "plotly", "ipywidgets", "pytest") if importlib.util.find_spec(name)]
scope = cachescope.read(cachescope.sample("config_flip"))
scope._repr_html_()
scope.report("out.html")
try:
    scope.explore()
except cachescope.CachescopeError as error:
    print(error)
"""
    done = installed.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert "pip install 'cachescope[views]'" in done.stdout
