"""Every difference of a machine from what made the keys is found, with what it costs, and none where there is none; by the variables that enter keys."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.catalogue.facts import field_facts, versions
from cachescope.keys.detail_hash import detail_hash
from cachescope.locking.facts import Fact, machine_facts
from cachescope.locking.lock import CacheLock, KeyField, LockedFile, Machine, Process
from cachescope.locking.machine import cpu_features, devices_here
from cachescope.locking.variables import variables_of_keys
from cachescope.locking.verifying import Verification
from tests.conftest import Recording

pytestmark = pytest.mark.slow

H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"


def fact(lock: CacheLock, here: Machine, name: str, **unknown: str) -> Fact:
    (found,) = [fact for fact in machine_facts(lock, here, unknown) if fact.name == name]
    return found


def made_by_hand(machine: Machine | None = None, *fields: dict[str, object], **more: object) -> CacheLock:
    """A lock of contexts with some plain values, hashed as torch hashes them; an entry of each."""
    hashed = ({name: KeyField(detail_hash(v), repr(v)) for name, v in one.items()} for one in fields)
    contexts = tuple(hashed)
    files = {
        f"fxgraph/{at}": LockedFile(
            f"fxgraph/{at}", "fxgraph", 1, "0" * 64, f"f{at}", at, time_taken_ns=10**9
        )
        for at in range(len(contexts))
    }
    return CacheLock(machine or Machine("3.12.4", "x86_64"), contexts=contexts, files=files, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def torch_key(recording: Recording) -> str:
    """What torch 2.13 itself said its key is."""
    snapshot = json.loads((recording("2.13.0", "isolation_context") / "contexts/base.json").read_text())
    context = snapshot.get("context", snapshot)
    key: str = context["compile_context"]["torch_version_hash"]
    return key


@pytest.mark.parametrize("scenario", ["training", "config_flip", "deterministic"])
def test_torch_of_the_keys_is_known_by_sources(scenario: str, recording: Recording, torch_key: str) -> None:
    lock = cachescope.lock(recording("2.13.0", scenario) / "cache")
    mine = Machine("3.11.7", "x86_64", torch_version="2.13.0+cpu", torch_key=torch_key)
    assert fact(lock, mine, "torch").state == "equal"
    # One byte of one file of torch is another, and so is the key.
    other = replace(mine, torch_key=f"A{torch_key[1:]}")
    found = fact(lock, other, "torch")
    assert (found.state, found.lost) == ("differs", frozenset(range(len(lock.contexts))))
    absent = Machine("3.11.7", "x86_64")
    why = "torch is not installed for this Python"
    found = fact(lock, absent, "torch", torch=why)
    assert (found.state, found.lost, found.reason) == ("unknown", None, why)


def test_a_cache_of_two_torches_serves_each(recording: Recording, torch_key: str) -> None:
    """2.13 made half of it, 2.15 with Triton the rest."""
    folder = recording("2.15.0", "upgrade")
    lock = cachescope.lock(folder / "cache")
    mine = Machine("3.11.7", "x86_64", torch_version="2.13.0+cpu", torch_key=torch_key)
    found = fact(lock, mine, "torch")
    assert found.state == "partly"
    scope = cachescope.read(folder)
    before = scope.lookups[scope.lookups["run"] == 0]
    kept = {file.key for file in lock.entries() if file.kind == "fxgraph" and file.context not in found.lost}  # type: ignore[operator]
    assert kept == set(before.loc[before["cache"] == "fxgraph", "cache_key"])


def test_the_triton_of_the_keys_is_known_by_its_sources(recording: Recording) -> None:
    """Torch 2.15 has it in every key, on machines without a GPU too: its text is in the entries."""
    lock = cachescope.lock(recording("2.15.0", "training") / "cache")
    (text,) = {context["system_info[version]"].text for context in lock.contexts}
    key = text.partition("'triton': '")[2].partition("'")[0]  # type: ignore[union-attr]
    assert key.startswith("3.9.0")
    mine = Machine("3.11.7", "x86_64", triton_version="3.9.0", triton_key=key)
    found = fact(lock, mine, "Triton")
    assert (found.state, found.locked) == ("equal", "3.9.0")
    every = frozenset(range(len(lock.contexts)))
    without = replace(mine, triton_version=None, triton_key=None)
    for other in (replace(mine, triton_key=f"{key[:-1]}x"), without):
        found = fact(lock, other, "Triton")
        assert (found.state, found.lost) == ("differs", every)
    unhashed = replace(mine, triton_key=None)
    found = fact(lock, unhashed, "Triton", triton="in a way that is not known here")
    assert (found.state, found.lost) == ("unknown", None)


def test_a_triton_that_no_key_holds_costs_nothing(recording: Recording) -> None:
    lock = cachescope.lock(recording("2.13.0", "training") / "cache")
    other = replace(lock.machine, triton_version="9.9.9")
    found = fact(lock, other, "Triton")
    assert (found.state, found.lost) == ("differs", frozenset())


@pytest.mark.parametrize(("here", "state"), [
    (Machine("3.12.9", "x86_64", cuda="12.8", devices=(H100, H100)), "equal"),
    (Machine("3.12.9", "x86_64", cuda="12.8", devices=(A100,)), "differs"),
    (Machine("3.12.9", "x86_64", cuda="12.8", devices=(H100, A100)), "unknown"),
    (Machine("3.12.9", "x86_64", cuda="12.8", devices=None), "unknown"),
    (Machine("3.12.9", "x86_64", hip="6.3", devices=(A100,)), "unknown"),
    (Machine("3.12.9", "x86_64", torch_version="2.13.0+cpu"), "differs"),
])  # fmt: skip
def test_the_device(here: Machine, state: str) -> None:
    lock = made_by_hand(None, {"system_info[device]": {"name": H100}})
    found = fact(lock, here, "device", device="no driver")
    assert (found.state, found.locked) == (state, H100)
    lost = {"equal": frozenset(), "differs": frozenset({0}), "unknown": None}.get(state)
    assert found.lost == lost or not found.lost


def test_keys_without_a_device_are_not_blamed_on_one() -> None:
    """Whether torch can use the GPU of this machine is not known: it may be built for another driver."""
    lock = made_by_hand(None, {"torch_version": 1})
    mine = Machine("3.12.9", "x86_64", torch_version="2.13.0+cu128", cuda="12.8", devices=(H100,))
    assert fact(lock, mine, "device").state == "unknown"


@pytest.mark.parametrize(("cuda", "state"), [("12.8", "equal"), ("13.0", "differs"), (None, "differs")])
def test_the_toolkit(cuda: str | None, state: str) -> None:
    lock = made_by_hand(None, {"system_info[version]": {"triton": None, "cuda": "12.8"}})
    mine = Machine("3.12.9", "x86_64", torch_version="2.13.0", cuda=cuda)
    assert fact(lock, mine, "toolkit").state == state


def test_a_text_that_is_not_what_was_hashed_is_not_believed() -> None:
    lock = made_by_hand(None, {"system_info[device]": {"name": H100}})
    field = replace(lock.contexts[0]["system_info[device]"], text=repr({"name": A100}))
    lying = replace(lock, contexts=({"system_info[device]": field},))
    mine = Machine("3.12.9", "x86_64", cuda="12.8", devices=(A100,))
    assert fact(lying, mine, "device").state == "unknown"


@pytest.mark.parametrize(("made", "here", "state", "costs_all"), [
    ("3.12.4", "3.12.9", "equal", False),
    ("3.12.4", "3.13.1", "differs", False),
    ("3.13.1", "3.14.0", "differs", True),
    ("3.14.1", "3.13.0", "differs", True),
    ("3.14.1", "3.15.0rc1", "differs", False),
])  # fmt: skip
def test_the_python(made: str, here: str, state: str, costs_all: bool) -> None:
    for lock in (
        made_by_hand(Machine(made, "x86_64"), {"a": 1}),
        made_by_hand(None, {"a": 1}, processes=(Process(python_version=made),)),
    ):
        found = fact(lock, Machine(here, "x86_64"), "Python")
        assert (found.state, bool(found.loses)) == (state, costs_all)


def test_a_cpu_that_lacks_instructions() -> None:
    made = Machine("3.12.4", "x86_64", cpu_features=("avx2", "avx512f", "fma"))
    lock = made_by_hand(made, {"a": 1})
    more = replace(made, cpu_features=("amx_tile", "avx2", "avx512f", "fma"))
    assert fact(lock, more, "CPU").state == "equal"
    less = fact(lock, replace(made, cpu_features=("avx2", "fma")), "CPU")
    assert less.state == "differs"
    assert "it lacks avx512f" in less.reason
    assert fact(lock, replace(made, architecture="aarch64"), "CPU").state == "differs"
    assert fact(lock, replace(made, cpu_features=None), "CPU").state == "unknown"


def test_the_driver_names_its_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of the driver's file is NVIDIA's; the boards are made by hand."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert devices_here(tmp_path / "none") == (None, "no NVIDIA driver is seen here")
    for bus in ("0000:19:00.0", "0000:3b:00.0"):
        board = tmp_path / "gpus" / bus
        board.mkdir(parents=True)
        (board / "information").write_text(f"Model: \t\t {H100}\nIRQ:   \t\t 18\nGPU UUID: \t GPU-1\n")
    assert devices_here(tmp_path) == ((H100, H100), None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert devices_here(tmp_path)[0] is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert devices_here(tmp_path)[0] == (H100, H100)
    (tmp_path / "capabilities" / "gpu0" / "mig" / "gi3").mkdir(parents=True)
    assert devices_here(tmp_path)[0] is None


def test_the_system_lists_the_instructions(tmp_path: Path) -> None:
    listed = tmp_path / "cpuinfo"
    listed.write_text("processor\t: 0\nflags\t\t: fpu sse2 avx avx2 fma rdrand\nbugs\t\t: none\n")
    assert cpu_features(listed) == ("avx", "avx2", "fma")
    assert cpu_features(tmp_path / "none") is None


def keys_by_step(folder: Path) -> dict[str, set[tuple[str, str]]]:
    """By step of a recording, the keys that its process looked up."""
    scope = cachescope.read(folder)
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    run_of_pid = dict(zip(scope.runs["pid"], scope.runs["run"], strict=True))
    found = {}
    for step in steps:
        lookups = scope.lookups[scope.lookups["run"] == run_of_pid[step["pid"]]]
        found[step["name"]] = set(zip(lookups["cache"], lookups["cache_key"], strict=True))
    return found


@pytest.mark.parametrize(("scenario", "variable", "values"), [
    ("config_env", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING", {"cold": None, "tuning": "1"}),
    ("cache_key_tag", "TORCH_COMPILE_CACHE_KEY_TAG", {"unset": None, "tag_a": "a", "tag_b": "b"}),
])  # fmt: skip
def test_a_variable_costs_the_keys_that_torch_then_did_not_look_up(
    scenario: str, variable: str, values: dict[str, str | None], recording: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = recording("2.13.0", scenario)
    looked_up = keys_by_step(folder)
    monkeypatch.delenv(variable, raising=False)
    # The shell in which the lock was made had none of the values: what the keys hold is what counts.
    lock = cachescope.lock(folder / "cache", expect=folder / "trace")
    every = {(file.kind, file.key) for file in lock.entries()}
    for step, value in values.items():
        if value is None:
            continue
        monkeypatch.setenv(variable, value)
        found = Verification.of(lock, folder / "cache")
        (one,) = [one for one in found.facts if one.name == variable]
        assert one.state in ("partly", "differs"), step
        # Only keys that are known to hold what the shell gave are called lost.
        lost = {(file.kind, file.key) for file in found.lost}
        assert lost & looked_up[step] == set()
        assert lost == looked_up[next(iter(values))] & every


def test_a_variable_that_makes_what_the_keys_hold_is_no_difference(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_SHAPE_PADDING", "0")
    lock = cachescope.lock(recording("2.13.0", "training") / "cache")
    monkeypatch.setenv("TORCHINDUCTOR_SHAPE_PADDING", "1")
    found = Verification.of(lock, recording("2.13.0", "training") / "cache")
    assert [one.state for one in found.facts if one.name == "TORCHINDUCTOR_SHAPE_PADDING"] == ["equal"]
    assert found.lost == ()


@pytest.mark.parametrize(
    "variable", ["TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_FORCE_DISABLE_CACHES"]
)
def test_caches_that_are_switched_off_cost_everything(
    variable: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenario `force_disabled` is what torch does then: it looks nothing up."""
    cache = recording("2.13.0", "training") / "cache"
    lock = cachescope.lock(cache)
    monkeypatch.setenv(variable, "1")
    found = Verification.of(lock, cache)
    assert len(found.lost) == found.entries > 0
    assert not found.passed


def test_what_may_be_overridden_is_not_blamed(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys hold neither what it gives nor what it gave: an option, or another shell."""
    cache = recording("2.13.0", "training") / "cache"
    lock = cachescope.lock(cache)
    monkeypatch.setenv("OMP_NUM_THREADS", "61")
    found = Verification.of(lock, cache)
    (one,) = [one for one in found.facts if one.name == "OMP_NUM_THREADS"]
    assert (one.state, one.entries, found.lost) == ("differs", None, ())


def test_what_points_to_a_lost_graph_is_lost() -> None:
    sides = ({"system_info[device]": {"name": board}} for board in (H100, A100))
    lock = made_by_hand(None, *sides)
    files = dict(lock.files)
    for at in (0, 1):
        told = {"needs": (f"f{at}",), "time_taken_ns": 3 * 10**9}
        files[f"aot/{at}"] = LockedFile(f"aot/{at}", "aotautograd", 1, "0" * 64, f"a{at}", **told)
    found = replace(lock, files=files)
    mine = Machine("3.12.4", "x86_64", cuda="12.8", devices=(H100,))
    device = fact(found, mine, "device")
    assert (device.state, device.lost) == ("partly", frozenset({1}))


def test_a_lock_of_entries_that_say_nothing_is_compared_with_its_machine(recording: Recording) -> None:
    """Torch 2.6 keeps no hash details in its entries."""
    lock = cachescope.lock(recording("2.6.0", "training") / "cache")
    assert lock.contexts == ()
    assert [file.context for file in lock.entries()] == [None] * len(list(lock.entries()))
    made = replace(lock, machine=replace(lock.machine, torch_version="2.6.0", torch_key="AAAA"))
    same = fact(made, made.machine, "torch")
    other = fact(made, replace(made.machine, torch_key="BBBB"), "torch")
    assert (same.state, other.state, other.lost) == ("equal", "differs", None)
    # Their recordings do.
    made = recording("2.6.0", "training")
    lock = cachescope.lock(made / "cache", expect=made / "trace")
    assert lock.contexts


COMMON = "TORCHINDUCTOR_SHAPE_PADDING"
# torch/_inductor/config.py has `autotune_fallback_to_aten` through 2.7.
GONE = "TORCHINDUCTOR_AUTOTUNE_FALLBACK_TO_ATEN"


@pytest.mark.parametrize("version", ["2.6.0", versions()[-1]])
def test_the_variables_are_those_of_the_torch_that_was_asked_for(version: str) -> None:
    found = variables_of_keys(version)
    assert COMMON in found
    assert (GONE in found) is (version == "2.6.0")
    for name, fields in found.items():
        for field in fields:
            facts = field_facts(field, version)
            assert facts is not None and name in facts.environment and facts.in_key


def test_without_a_version_it_is_the_newest() -> None:
    assert variables_of_keys() == variables_of_keys(versions()[-1]) != variables_of_keys(versions()[0])
