"""Pre-flights without weights, held against what torch then really does; and programs that need values."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture import preflights

pytestmark = [pytest.mark.torch, pytest.mark.slow]
QUICK = ("training",)
MORE = (
    "converted", "channels_last", "graph_break", "automatic_dynamic", "checkpointed", "optimizer",
    "attention", "twice",
)  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.models) for name in MORE)])
def test_what_is_predicted_without_weights_comes_true(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "cache"
    traces = preflights.preflown(preflights.program(name), cache, tmp_path / "preflight", options=["--fake"])
    cold = preflights.really(preflights.program(name), cache, tmp_path / "cold")
    preflights.assert_came_true(preflights.predicted(traces, tmp_path / "empty"), cold)
    assert {outcome for *_, outcome in preflights.predicted(traces, cache)} == {"hit"}


def flown_fake(
    folder: Path, text: str, *more: str, status: int | None = None
) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(text)
    words = ["preflight", "--fake", *more, "--", sys.executable, script]
    return preflights.told_by(words, preflights.environment(folder / "cache"), status)


LARGE = """
import torch
with torch.no_grad():
    torch.compile(torch.nn.Linear(2**18, 2**18).to(torch.bfloat16))(torch.randn(1, 2**18, dtype=torch.bfloat16))
"""


def test_no_weights_are_allocated(tmp_path: Path) -> None:
    done = flown_fake(tmp_path, LARGE, status=0)
    assert "a real run would make 2 lookups: 0 would hit, 2 would miss" in done.stdout
    # In kilobytes, or in bytes on macOS: the weights would take 256 GB.
    unit = 1 if sys.platform == "darwin" else 1024
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit < 16e9


NEEDY = {
    "item": ("print(x.sum().item())", "DataDependentOutputException: aten._local_scalar_dense.default"),
    "numpy": ("print(x.numpy())", "numpy"),
    "condition": ("if x.sum() > 0: print(1)", "DataDependentOutputException"),
    "caught": ("try: x.tolist()\nexcept Exception: pass", "DataDependentOutputException"),
    "freezing": (
        "torch._inductor.config.freezing = True\n"
        "with torch.no_grad(): torch.compile(torch.nn.Linear(8, 8).eval())(x)",
        "UnsupportedOperatorException",
    ),
}


@pytest.mark.parametrize("what", [
    "item",
    "freezing",
    *(pytest.param(name, marks=pytest.mark.models) for name in ("numpy", "condition", "caught")),
])  # fmt: skip
def test_a_program_that_needs_values_is_told_so_in_one_line(tmp_path: Path, what: str) -> None:
    text, why = NEEDY[what]
    done = flown_fake(tmp_path, f"import torch\nx = torch.randn(4, 8)\n{text}\nprint('went on')\n", status=2)
    *_, line = done.stderr.splitlines()
    assert line.startswith("cachescope: the program cannot be run without weights: ")
    assert why in line and "script.py:" in line
    assert "Traceback (most recent call last)" not in done.stderr


def test_an_error_of_the_program_itself_is_no_lack_of_values(tmp_path: Path) -> None:
    done = flown_fake(tmp_path, "import torch\nx = torch.randn(3)\n1 / 0\n")
    assert done.returncode == 1 and "ZeroDivisionError: division by zero" in done.stderr
    assert "without weights" not in done.stderr


def test_it_is_asked_for_by_the_option_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint('sum', torch.ones(3).sum().item())\n")
    asked = {"CACHESCOPE_PREFLIGHT_FAKE": os.fspath(tmp_path / "why")}
    words = ["preflight", "--", sys.executable, script]
    done = preflights.told_by(words, preflights.environment(tmp_path / "cache") | asked, status=None)
    assert "sum 3.0" in done.stdout
    assert not (tmp_path / "why").exists()
