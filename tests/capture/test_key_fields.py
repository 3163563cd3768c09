"""The hash details captured of a process are those its compiles have, and the manifest gives torch's own key."""

import ast
import importlib
import json
import pickle
import sys
from base64 import b64encode
from pathlib import Path
from types import ModuleType

import pytest

import cachescope
from cachescope.capture.key_fields import OF_THE_GRAPH, aot_key_fields, functorch_config, key_fields
from cachescope.capture.torch_manifest import torch_manifest
from cachescope.terms import RUNTIME_FORMS
from tests.capture.preflights import environment
from tests.programs import ran

# A parameter has gradients, so that there is a backward graph as well.
PROGRAM = """
import json, sys
import cachescope
snapshot = cachescope.capture(torch_manifest=True)
json.dump(snapshot, open(sys.argv[1], "w"))
import torch
torch.compile(torch.nn.Linear(4, 4))(torch.randn(2, 4)).sum().backward()
"""
LOGGERS = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"


def recorded(folder: Path, **variables: str) -> tuple[dict[str, dict[str, str]], cachescope.Scope]:
    """The snapshot of a process and what its compiles recorded."""
    traced = {"TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": LOGGERS}
    command = [sys.executable, "-c", PROGRAM, folder / "snapshot.json"]
    ran(command, environment(folder / "cache", **traced, **variables))
    return json.loads((folder / "snapshot.json").read_text()), cachescope.read(folder)


@pytest.mark.torch
@pytest.mark.parametrize(
    "variables",
    [{}, {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}],
    ids=["as is", "set"],
)
def test_captured_fields_are_those_of_every_lookup(variables: dict[str, str], tmp_path: Path) -> None:
    snapshot, scope = recorded(tmp_path, **variables)
    process_wide = snapshot["key_fields"]
    assert snapshot["key_fields_problem"] is None
    assert "cpp_runtime_thread_count" in process_wide
    assert scope.lookups["cache"].tolist() == ["aotautograd", "fxgraph", "fxgraph"]
    for row in scope.lookups.itertuples():
        details = scope.hash_details(lookup=row.lookup).set_index("field")["detail_hash"].to_dict()
        own = process_wide | (snapshot["aot_key_fields"] if row.cache == "aotautograd" else {})
        assert {field: details.get(field) for field in own} == own
        # What is not captured follows from the graph, its inputs and the call.
        assert {field.partition("[")[0] for field in details.keys() - own.keys()} <= OF_THE_GRAPH


@pytest.mark.torch
def test_the_options_of_functorch_are_those_that_torch_pickles(caching_context: ModuleType) -> None:
    config = pytest.importorskip("torch._functorch.config")
    with config.patch(donated_buffer=False, activation_memory_budget=0.5, unlift_effect_tokens=True):
        pickled, told = pickle.loads(config.save_config()), functorch_config()
    assert {name: ast.literal_eval(text) for name, text in told.items()} == pickled


@pytest.mark.torch
def test_a_run_and_the_snapshot_of_its_process_agree(tmp_path: Path) -> None:
    _, scope = recorded(tmp_path)
    sources = (tmp_path / "trace", tmp_path / "snapshot.json")
    of_run, taken = (cachescope.read(source).all_contexts.rows[0] for source in sources)
    shown = [form for form in RUNTIME_FORMS if form not in of_run.missing_forms]
    assert shown == [*RUNTIME_FORMS]
    assert [getattr(of_run, form) for form in shown] == [getattr(taken, form) for form in shown]
    (both,) = scope.all_contexts.rows
    assert (both.run, both.missing_forms, both.torch_version_hash) == (0, (), taken.torch_version_hash)


def test_key_fields_follow_the_process(caching_context: ModuleType) -> None:
    torch = caching_context.torch
    before, _ = key_fields()
    before_aot, _ = aot_key_fields()
    with torch._inductor.config.patch(epilogue_fusion=False), torch.no_grad():
        after, _ = key_fields()
        after_aot, _ = aot_key_fields()
    assert before is not None and after is not None and before_aot is not None and after_aot is not None
    assert [one for one in before if before[one] != after[one]] == ["inductor_config[epilogue_fusion]"]
    assert [field for field in before_aot if before_aot[field] != after_aot[field]] == ["grad_enabled"]
    assert before.keys().isdisjoint(before_aot)


def test_a_process_whose_keys_torch_would_not_make_says_so(caching_context: ModuleType) -> None:
    config = caching_context.torch._inductor.config
    with config.patch(post_grad_custom_post_pass=lambda graph: None):
        fields, problem = aot_key_fields()
    assert fields is None
    assert problem


def test_another_torch_gives_no_fields(codecache: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # What imports it from there, torch's own, was loaded before.
    importlib.import_module("torch._functorch._aot_autograd.autograd_cache")
    monkeypatch.delattr(codecache, "FxGraphHashDetails")
    fields, problem = key_fields()
    assert fields is None
    assert "makes its keys differently" in str(problem)


def test_the_manifest_is_made_of_the_bytes_of_torchs_own_key(codecache: ModuleType) -> None:
    manifest = torch_manifest()
    assert manifest["is_complete"]
    assert manifest["torch_key"] == b64encode(codecache.torch_key()).decode()
    some = {"version.py", "_inductor/codecache.py", "_inductor/codegen/aoti_runtime/interface.cpp"}
    assert some <= set(manifest["files"])
    assert len(manifest["files"]) > 2000


def test_another_torch_has_no_whole_manifest(codecache: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecache, "torch_key", lambda: b"another key")
    assert not torch_manifest()["is_complete"]
