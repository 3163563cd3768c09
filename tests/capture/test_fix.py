"""What `cachescope fix` proposes is applied as it is printed, and the program really run: torch's counters say whether it hits."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cachescope.cli import main
from tests.programs import ran

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
PROGRAM = Path(__file__).with_name("fix_program.py")
# What is chosen for the run that stored the entries.
BAKED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "2"}


SET = "torch._inductor.config.aot_inductor.metadata = {'ops': {'mul', 'relu', 'sum', 'add', 'tanh', 'sub', 'div', 'exp'}}"
OBJECT = "torch._inductor.config.aot_inductor.metadata = {'seen': str(object())}"


Variables = dict[str, str | None]


class Case(NamedTuple):
    """What is changed (None: not set), the settings that are wanted, and what was chosen for the run that stored the entries."""

    changed: Variables
    wanted: list[str]
    baked: dict[str, str] | None = None
    advice: str | None = None


def rank(number: int) -> str:
    return f"torch._inductor.config.aot_inductor.metadata = {{'rank': '{number}'}}"


CASES = {
    "config": Case(
        {"CHANGE": "torch._inductor.config.epilogue_fusion = False"},
        ["torch._inductor.config.epilogue_fusion = True"]),
    "option": Case(
        {"OPTIONS": '{"epilogue_fusion": false}'}, ['torch.compile(…, options={"epilogue_fusion": True})']),
    "variable": Case(
        {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}, ["unset TORCHINDUCTOR_COORDINATE_DESCENT_TUNING"]),
    "threads": Case({"OMP_NUM_THREADS": "1"}, ["export OMP_NUM_THREADS=2"]),
    "set_num_threads": Case({"CHANGE": "torch.set_num_threads(1)"}, ["torch.set_num_threads(2)"]),
    "deterministic": Case(
        {"CHANGE": "torch.use_deterministic_algorithms(True)"}, ["torch.use_deterministic_algorithms(False)"]),
    "dtype": Case(
        {"CHANGE": "torch.set_default_dtype(torch.float64)"}, ["torch.set_default_dtype(torch.float32)"]),
    "matmul_precision": Case(
        {"CHANGE": "torch.set_float32_matmul_precision('high')"},
        ["torch.backends.cuda.matmul.fp32_precision = 'none'"]),
    "tag": Case({"TORCH_COMPILE_CACHE_KEY_TAG": "other"}, ["unset TORCH_COMPILE_CACHE_KEY_TAG"]),
    "rank": Case({"CHANGE": rank(1)}, ["torch._inductor.config.aot_inductor.metadata = {}"]),
    # It is of the ranks that are recorded: what is stored for one is found by another, if it says that it is that one.
    "another rank": Case(
        {"CHANGE": rank(1)}, [rank(0)], {"CHANGE": rank(0)},
        "apparently holds the rank of the process: keep it out of the key"),
    "variable that is missing": Case(
        {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": None},
        ["torch._inductor.config.coordinate_descent_tuning = True"],
        {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}),
    # It fails where the variable is unset, which is tried first.
    "variable that is needed": Case(
        {"CHANGE": "os.environ['TORCHINDUCTOR_COORDINATE_DESCENT_TUNING']", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"},
        ["torch._inductor.config.coordinate_descent_tuning = False"]),
    "tag of the program": Case(
        {"CHANGE": "torch.compiler.config.cache_key_tag = 'other'"},
        ["torch.compiler.config.cache_key_tag = ''"]),
    "memory that is filled": Case(
        {"CHANGE": "torch.use_deterministic_algorithms(True, warn_only=True); "
                   "torch.utils.deterministic.fill_uninitialized_memory = False"},
        ["torch.use_deterministic_algorithms(False)", "torch.utils.deterministic.fill_uninitialized_memory = True"]),
    "order of a set": Case(
        {"CHANGE": SET, "PYTHONHASHSEED": None}, ["export PYTHONHASHSEED=0"],
        {"CHANGE": SET, "PYTHONHASHSEED": "0"}),
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
    "directory": Case({"TORCHINDUCTOR_CACHE_DIR": "/nowhere/else"}, []),
    # Where no directory is named, it is one of the temporary folder.
    "temporary folder": Case({"TORCHINDUCTOR_CACHE_DIR": None, "TMPDIR": "OTHER"}, []),
}  # fmt: skip
QUICK = ("several",)
Bakes = Callable[[dict[str, str]], Path]


@pytest.fixture(scope="module")
def bakes(tmp_path_factory: pytest.TempPathFactory) -> Bakes:
    """The cache directory of a run for which some variables were chosen."""
    made: dict[str, Path] = {}

    def bake(chosen: dict[str, str]) -> Path:
        name = json.dumps(chosen, sort_keys=True)
        if name not in made:
            folder = tmp_path_factory.mktemp("baked")
            assert really_run(folder, folder / "cache", dict(chosen)) == (0, 3)
            made[name] = folder / "cache"
        return made[name]

    return bake


def really_run(folder: Path, cache: Path | None, changed: Variables) -> tuple[int, int]:
    """Hits and misses of both caches, as torch counts them; without a directory it uses the one that is set."""
    own = {} if cache is None else {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment = {**os.environ, **BAKED, **own, **changed}
    counted = folder / "counted.json"
    ran([sys.executable, PROGRAM, counted], {name: to for name, to in environment.items() if to is not None})
    told = json.loads(counted.read_text())
    inductor, aot = told["inductor"], told["aot_autograd"]
    return tuple(
        inductor.get(f"fxgraph_cache_{end}", 0) + aot.get(f"autograd_cache_{end}", 0)
        for end in ("hit", "miss")
    )


def applied(settings: list[dict[str, Any]]) -> Variables:
    """The settings as they are printed, as variables of the program."""
    found: Variables = {}
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


Fixed = Callable[..., dict[str, Any]]


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Fixed:
    """What `cachescope fix` says of a program on a cache, with some variables; it is to end with a status."""

    def fix(
        cache: Path,
        changed: Variables,
        status: int,
        *options: str,
        program: Sequence[str | Path] = (PROGRAM,),
    ) -> dict[str, Any]:
        set_variables(monkeypatch, {"TORCHINDUCTOR_CACHE_DIR": str(cache), **changed})
        assert (
            main(["fix", "--json", *options, str(cache), "--", sys.executable, *map(str, program)]) == status
        )
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        return found

    return fix


def set_variables(monkeypatch: pytest.MonkeyPatch, changed: Variables) -> None:
    for variable, value in {**BAKED, **changed}.items():
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.models) for name in CASES]
)
def test_what_is_proposed_brings_all_hits_back(name: str, bakes: Bakes, tmp_path: Path, fixed: Fixed) -> None:
    case = CASES[name]
    cache = Path(shutil.copytree(bakes(case.baked or {}), tmp_path / "cache"))
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    other = tmp_path / "other"
    other.mkdir()
    changed = {"TORCHINDUCTOR_CACHE_DIR": str(cache), **case.changed}
    changed = {variable: str(other) if value == "OTHER" else value for variable, value in changed.items()}
    written = tmp_path / "cache.env"
    found = fixed(cache, changed, 0, "--write", str(written))
    assert (found["after"]["would_hit"], found["after"]["lookups"]) == (3, 3)
    directory = [] if case.wanted else [f"export TORCHINDUCTOR_CACHE_DIR={cache}"]
    assert sorted(one["code"] for one in found["settings"]) == sorted(case.wanted + directory)
    assert [case.advice in sentence for sentence in found["advice"]] == ([True] if case.advice else [])
    failed = [setting["code"] for way in found["failed_with"] for setting in way]
    needed = ["unset TORCHINDUCTOR_COORDINATE_DESCENT_TUNING"]
    assert failed == (needed if name == "variable that is needed" else [])
    assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == before
    variables = [one["name"] for one in found["settings"] if one["kind"] == "variable"]
    assert all(variable in written.read_text() for variable in variables)
    # Without it torch finds nothing, and with it all.
    if case.wanted:
        copied = Path(shutil.copytree(cache, tmp_path / "unfixed"))
        assert really_run(tmp_path, copied, dict(case.changed))[0] == 0
    elif name == "temporary folder":
        assert really_run(tmp_path, None, changed)[0] == 0
        assert list(other.iterdir())
    assert really_run(tmp_path, None, {**changed, **applied(found["settings"])}) == (3, 0)


@pytest.mark.models
def test_what_ranks_that_start_at_once_miss_is_fixed_too(bakes: Bakes, tmp_path: Path, fixed: Fixed) -> None:
    """Which of them compiles first is not known; that none finds what it misses is."""
    cache = Path(shutil.copytree(bakes({}), tmp_path / "cache"))
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    found = fixed(cache, {"OMP_NUM_THREADS": "1"}, 0, program=[*ranks, str(PROGRAM)])
    (setting,) = found["settings"]
    assert setting["code"] == "export OMP_NUM_THREADS=2"
    assert (found["before"]["would_hit"], found["after"]["would_hit"], found["after"]["lookups"]) == (0, 6, 6)


CHANGED_LATER = """
import os
import torch
from torch._dynamo.utils import counters

def compiled(function):
    return torch.compile(function, options={"epilogue_fusion": True} if "OPTION" in os.environ else None)

compiled(lambda x: x.sin() + 1)(torch.ones(5))
torch._inductor.config.epilogue_fusion = "LATER" not in os.environ
compiled(lambda x: x.cos() * 2)(torch.ones(5))
print(counters["inductor"]["fxgraph_cache_hit"], counters["aot_autograd"]["autograd_cache_hit"])
"""


@pytest.mark.models
def test_what_changes_after_the_first_compile_is_not_set_before_it(tmp_path: Path, fixed: Fixed) -> None:
    program, cache = tmp_path / "program.py", tmp_path / "cache"
    program.write_text(CHANGED_LATER)

    def hits(folder: Path, **changed: str) -> str:
        variables = {**os.environ, **BAKED, "TORCHINDUCTOR_CACHE_DIR": str(folder), **changed}
        return ran([sys.executable, program], variables).stdout.strip()

    assert hits(cache) == "0 0"
    found = fixed(cache, {"LATER": "1"}, 0, program=[program])
    assert (found["before"]["would_hit"], found["after"]["would_hit"]) == (2, 4)
    assert [i["code"] for i in found["settings"]] == ['torch.compile(…, options={"epilogue_fusion": True})']
    assert hits(Path(shutil.copytree(cache, tmp_path / "unfixed"))) == "1 1"
    assert hits(cache, OPTION="1") == "2 2"


NAMED_PASS = """
from torch._inductor.custom_graph_pass import CustomGraphPass
class Named(CustomGraphPass):
    def __call__(self, graph): pass
    def uuid(self): return "named 1"
torch._inductor.config.post_grad_custom_post_pass = Named()
"""
SORTED_LIST = SET.replace("{'mul'", "sorted({'mul'").replace("'exp'}", "'exp'})")


class Place(NamedTuple):
    """What is changed in the code, what is advised, the program that follows it, and whether that finds what had been stored."""

    changed: Variables
    advice: str
    followed: Variables
    finds_stored: bool
    baked: dict[str, str] | None = None


PLACES = {
    "pass without uuid": Place(
        {"CHANGE": "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None"},
        "whose uuid() returns something", {"CHANGE": NAMED_PASS}, False),
    "dtype of the data": Place({"DTYPE": "float64"}, "cast it to one dtype before the compiled call",
        {"DTYPE": "float64", "CAST": "float32"}, True),
    "order of a set, sorted": Place({"CHANGE": SET}, "hold a sorted list instead", {"CHANGE": SORTED_LIST},
        False, {"CHANGE": SET}),
    "order of a set, set alike": Place({"CHANGE": SET}, "Set PYTHONHASHSEED to one value in every process",
        {"CHANGE": SET, "PYTHONHASHSEED": "7"}, False, {"CHANGE": SET}),
    # It takes the inputs of a stored one: the directory does not tell that the function was edited.
    "another graph": Place({"CHANGE": "scaled = lambda x, w: (x @ w).tanh().sum()"},
        "first lookups, or changed graphs", {}, True),
}  # fmt: skip


@pytest.mark.models
@pytest.mark.parametrize("name", PLACES)
def test_what_is_to_be_changed_in_the_code_is_advised_and_claimed_as_no_fix(
    name: str, bakes: Bakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: Fixed
) -> None:
    place = PLACES[name]
    cache = Path(shutil.copytree(bakes(place.baked or {}), tmp_path / "cache"))
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    found = fixed(cache, place.changed, 3)
    assert found["settings"] == [] and found["after"] == found["before"]
    assert any(place.advice in f"{one['summary']} {one['advice']}" for one in found["not_fixed"])
    # The advice followed: torch finds what was stored before, or what the program itself stored.
    cleared = dict.fromkeys(place.changed)
    if not place.finds_stored:
        assert really_run(tmp_path, cache, {**cleared, **place.followed}) == (0, 3)
    assert really_run(tmp_path, cache, {**cleared, **place.followed}) == (3, 0)


@pytest.mark.models
def test_an_object_in_a_config_is_advised_on(bakes: Bakes, tmp_path: Path, fixed: Fixed) -> None:
    """The text that was stored can be set, and that is no way to go on."""
    cache = Path(shutil.copytree(bakes({"CHANGE": OBJECT}), tmp_path / "cache"))
    found = fixed(cache, {"CHANGE": OBJECT}, 0)
    (setting,) = found["settings"]
    config = "torch._inductor.config.aot_inductor.metadata"
    assert setting["code"].startswith(f"{config} = {{'seen': '<object object at 0x")
    (advice,) = found["advice"]
    assert "holds the address of an object: keep it out of the key" in advice
    changed = {"CHANGE": OBJECT}
    assert really_run(tmp_path, cache, {**changed, **applied(found["settings"])}) == (3, 0)
    followed = {"CHANGE": OBJECT.replace("str(object())", "'object'")}
    assert really_run(tmp_path, cache, dict(followed)) == (0, 3)
    assert really_run(tmp_path, cache, dict(followed)) == (3, 0)


@pytest.mark.models
def test_what_cannot_be_set_is_not_claimed(bakes: Bakes, fixed: Fixed) -> None:
    """A field that could be set, beside a pass without uuid."""
    no_pass = "torch._inductor.config.post_grad_custom_post_pass = lambda graph: None"
    found = fixed(bakes({}), {"CHANGE": f"{OBJECT}; {no_pass}"}, 3)
    assert found["settings"] == [] and found["after"]["would_hit"] == 0
    assert found["after"] == found["before"]
