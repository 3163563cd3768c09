"""What `cachescope fix` proposes is applied as it is printed, and the program really run: torch's counters say whether it hits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cachescope.cli import main

pytestmark = [pytest.mark.torch, pytest.mark.slow]
PROGRAM = Path(__file__).with_name("fix_program.py")
# What is chosen for the run that stored the entries.
BAKED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "2"}


class Case(NamedTuple):
    """What is changed, and the settings that are wanted."""

    changed: dict[str, str]
    wanted: list[str]


CASES = {
    "config": Case(
        {"CHANGE": "torch._inductor.config.epilogue_fusion = False"},
        ["torch._inductor.config.epilogue_fusion = True"],
    ),
    "option": Case(
        {"OPTIONS": '{"epilogue_fusion": false}'}, ['torch.compile(…, options={"epilogue_fusion": True})']
    ),
    "variable": Case(
        {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}, ["unset TORCHINDUCTOR_COORDINATE_DESCENT_TUNING"]
    ),
    "threads": Case({"OMP_NUM_THREADS": "1"}, ["export OMP_NUM_THREADS=2"]),
    "set_num_threads": Case({"CHANGE": "torch.set_num_threads(1)"}, ["torch.set_num_threads(2)"]),
    "deterministic": Case(
        {"CHANGE": "torch.use_deterministic_algorithms(True)"}, ["torch.use_deterministic_algorithms(False)"]
    ),
    "dtype": Case(
        {"CHANGE": "torch.set_default_dtype(torch.float64)"}, ["torch.set_default_dtype(torch.float32)"]
    ),
    "matmul_precision": Case(
        {"CHANGE": "torch.set_float32_matmul_precision('high')"},
        ["torch.backends.cuda.matmul.fp32_precision = 'none'"],
    ),
    "tag": Case({"TORCH_COMPILE_CACHE_KEY_TAG": "other"}, ["unset TORCH_COMPILE_CACHE_KEY_TAG"]),
    "rank": Case(
        {"CHANGE": "torch._inductor.config.aot_inductor.metadata = {'rank': '1'}"},
        ["torch._inductor.config.aot_inductor.metadata = {}"],
    ),
    "several": Case(
        {
            "CHANGE": "torch._inductor.config.epilogue_fusion = False; torch.use_deterministic_algorithms(True)",
            "TORCH_COMPILE_CACHE_KEY_TAG": "other",
        },
        [
            "torch._inductor.config.epilogue_fusion = True",
            "torch.use_deterministic_algorithms(False)",
            "unset TORCH_COMPILE_CACHE_KEY_TAG",
        ],
    ),
    # The directory of the run is another one.
    "temporary folder": Case({"TORCHINDUCTOR_CACHE_DIR": "/nowhere/else"}, []),
}
QUICK = ("several",)


@pytest.fixture(scope="module")
def baked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache directory of a run without changes."""
    folder = tmp_path_factory.mktemp("baked")
    hits, misses = really_run(folder, folder / "cache", {})
    assert (hits, misses) == (0, 3)
    return folder / "cache"


def really_run(folder: Path, cache: Path | None, changed: dict[str, str | None]) -> tuple[int, int]:
    """Hits and misses of both caches, as torch counts them; without a directory it uses the one that is set."""
    own = {} if cache is None else {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment = {**os.environ, **BAKED, **own, **changed}
    counted = folder / "counted.json"
    subprocess.run(
        [sys.executable, str(PROGRAM), str(counted)],
        env={name: value for name, value in environment.items() if value is not None},
        check=True,
        timeout=300,
    )
    told = json.loads(counted.read_text())
    inductor, aot = told["inductor"], told["aot_autograd"]
    return tuple(
        inductor.get(f"fxgraph_cache_{end}", 0) + aot.get(f"autograd_cache_{end}", 0)
        for end in ("hit", "miss")
    )


def applied(settings: list[dict[str, Any]]) -> dict[str, str | None]:
    """The settings as they are printed, as variables of the program."""
    found: dict[str, str | None] = {}
    lines = []
    for setting in settings:
        if setting["kind"] == "variable":
            found[setting["name"]] = setting["value"]
        elif setting["kind"] == "option":
            _, _, rest = setting["code"].partition("options=")
            found["OPTIONS"] = json.dumps(eval(rest[:-1]))
        else:
            lines.append(setting["code"])
    return {**found, "APPLY": "\n".join(lines)}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.models) for name in CASES]
)
def test_what_is_proposed_brings_all_hits_back(
    name: str, baked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    cache = Path(shutil.copytree(baked, tmp_path / "cache"))
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    changed = {"TORCHINDUCTOR_CACHE_DIR": str(cache), **case.changed}
    for variable, value in {**BAKED, **changed}.items():
        monkeypatch.setenv(variable, value)
    written = tmp_path / "cache.env"
    status = main(["fix", "--json", "--write", str(written), str(cache), "--", sys.executable, str(PROGRAM)])
    found = json.loads(capfd.readouterr().out)
    assert status == 0
    assert (found["after"]["would_hit"], found["after"]["lookups"]) == (3, 3)
    directory = [f"export TORCHINDUCTOR_CACHE_DIR={cache}"] if name == "temporary folder" else []
    assert sorted(one["code"] for one in found["settings"]) == sorted(case.wanted + directory)
    assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == before
    variables = [one["name"] for one in found["settings"] if one["kind"] == "variable"]
    assert all(variable in written.read_text() for variable in variables)
    # Without it torch finds nothing, and with it all.
    if case.wanted:
        copied = Path(shutil.copytree(cache, tmp_path / "unfixed"))
        assert really_run(tmp_path, copied, dict(case.changed))[0] == 0
    assert really_run(tmp_path, None, {**changed, **applied(found["settings"])}) == (3, 0)


@pytest.mark.models
def test_what_cannot_be_set_is_not_claimed(
    baked: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A set of a config whose order is another, a pass without uuid, and another graph."""
    for variable, value in {**BAKED, "TORCHINDUCTOR_CACHE_DIR": str(baked)}.items():
        monkeypatch.setenv(variable, value)
    for change in (
        "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None",
        "scaled = lambda x, w: (x @ w).tanh().sum()",
        "torch._inductor.config.aot_inductor.metadata = {'seen': str(object())}; "
        "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None",
    ):
        monkeypatch.setenv("CHANGE", change)
        assert main(["fix", "--json", str(baked), "--", sys.executable, str(PROGRAM)]) == 3
        found = json.loads(capfd.readouterr().out)
        assert found["settings"] == []
        assert found["after"]["would_hit"] == 0
        assert found["after"] == found["before"]
