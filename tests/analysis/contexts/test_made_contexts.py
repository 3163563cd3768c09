"""Contexts and lookups made by hand: which forms differ and how that is shown, and which caches a process leaves out."""

import json
from dataclasses import astuple
from typing import Any

import pytest

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.analysis.contexts.keys import known_contexts
from cachescope.analysis.contexts.process_fields import (
    keeps_graphs_inside,
    never_looked,
    switched_off,
    switched_off_remotely,
)
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.snapshot import context_row
from cachescope.terms import (
    AOT_REMOTE_SWITCH,
    AOT_SWITCH,
    BUNDLED_SWITCH,
    FORCE_DISABLE,
    FX_REMOTE_SWITCH,
    FX_SWITCH,
    PRECOMPILE_SWITCH,
)
from tests.made import Made, aot, fx, run, scope_of

RUNTIME = {
    "inductor_configs": {"a": 1, "b": 2},
    "torch_determinism_configs": {"d": False},
    "cuda_matmul_precision_configs": {"m": "ieee"},
}
COMPILE = {
    "torch_version_hash": "AAAA", "triton_version_hash": None, "runtime": None, "runtime_version": None,
    "accelerator_properties": None,
}  # fmt: skip
H100 = "_CudaDeviceProperties(name='H100', major=9, minor=0, total_memory=80GB, uuid=1)"


NOT_TOLD = (
    "context_source", "torch_version", "python_version", "platform", "host", "pid", "time", "key_fields",
    "aot_key_fields", "key_fields_problem",
)  # fmt: skip


def contexts(*changed: dict[str, Any]) -> list[ContextRow]:
    """Contexts, each with what is said of it; a form that is Ellipsis is missing."""
    rows = []
    for number, told in enumerate(changed):
        manifest = told.pop("manifest", None)
        forms = {form: value for form, value in {**RUNTIME, **COMPILE, **told}.items() if value is not ...}
        snapshot: Any = {
            **dict.fromkeys(NOT_TOLD), "environment": {}, "settings": {}, "device_properties": [], "not_json": [],
            "torch_manifest": None if manifest is None else {"files": manifest},
            "context": {
                "runtime_context": {form: value for form, value in forms.items() if form in RUNTIME},
                "compile_context": {form: value for form, value in forms.items() if form not in RUNTIME},
            },
        }  # fmt: skip
        rows.append(context_row(number, f"/{number}.json", snapshot))
    return rows


OPAQUE_TORCH = "one hash of all of torch's sources: capture both with --torch-manifest to see the files"


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ({}, {}, []),
    ({}, {"inductor_configs": {"a": 9, "b": 2}}, [("inductor_configs", "a", "changed", "1", "9", None)]),
    ({}, {"inductor_configs": {"a": 1}}, [("inductor_configs", "b", "removed", "2", None, None)]),
    ({}, {"inductor_configs": {"a": 1, "b": 2, "c": 3}}, [("inductor_configs", "c", "added", None, "3", None)]),
    ({}, {"inductor_configs": {"a": "ü", "b": 2}}, [("inductor_configs", "a", "changed", "1", '"ü"', None)]),
    ({"inductor_configs": [1]}, {"inductor_configs": [2]}, [("inductor_configs", None, "changed", "[1]", "[2]", None)]),
    ({}, {"torch_version_hash": "BBBB"}, [("torch_version_hash", None, "changed", "AAAA", "BBBB", OPAQUE_TORCH)]),
    ({"manifest": {"a.py": "1", "b.py": "2"}},
     {"torch_version_hash": "BBBB", "manifest": {"a.py": "9", "b.py": "2"}},
     [("torch_version_hash", None, "changed", "AAAA", "BBBB", None), ("torch_version_hash", "a.py", "changed", "1", "9", None)]),
    ({"manifest": {"a.py": "1"}}, {"torch_version_hash": "BBBB"},
     [("torch_version_hash", None, "changed", "AAAA", "BBBB", OPAQUE_TORCH)]),
    ({}, {"triton_version_hash": "x"}, [("triton_version_hash", None, "changed", None, "x", "Triton's version and the hashes of its sources")]),
    ({}, {"runtime": "CUDA"}, [("runtime", None, "changed", None, "CUDA", None)]),
    # Of two devices the parts that differ; of one and none the whole.
    ({}, {"accelerator_properties": H100}, [("accelerator_properties", None, "changed", None, "_CudaDeviceProperties", None)]),
    ({"accelerator_properties": H100}, {}, [("accelerator_properties", None, "changed", "_CudaDeviceProperties", None, None)]),
    ({"accelerator_properties": H100}, {"accelerator_properties": "cpu"}, [("accelerator_properties", None, "changed", "_CudaDeviceProperties", "cpu", None)]),
    ({"accelerator_properties": H100}, {"accelerator_properties": H100.replace("uuid=1", "uuid=2")},
     [("accelerator_properties", "uuid", "changed", "1", "2", "it identifies the board")]),
    ({"accelerator_properties": H100}, {"accelerator_properties": H100.replace("80GB", "40GB")},
     [("accelerator_properties", "total_memory", "changed", "80GB", "40GB", None)]),
    # What is missing on one side is not known.
    ({}, {"runtime": ...}, [("runtime", None, "unknown", None, None, "not known of context 1")]),
    ({"runtime": ...}, {"runtime": ...}, [("runtime", None, "unknown", None, None, "not known of context 0 and 1")]),
    ({"runtime": ...}, {"runtime": "CUDA"}, [("runtime", None, "unknown", None, "CUDA", "not known of context 0")]),
])  # fmt: skip
def test_what_differs_between_two_contexts(
    before: dict[str, Any], after: dict[str, Any], wanted: list[tuple[Any, ...]]
) -> None:
    found = [astuple(row) for row in context_difference(contexts(dict(before), dict(after)), 0, 1)]
    for row, other in zip(found, wanted, strict=True):
        pairs = zip(row, other, strict=True)
        assert all(value == text or (text and str(value).startswith(text)) for value, text in pairs)


def test_a_board_of_another_model_says_what_that_means() -> None:
    other = H100.replace("H100", "A100").replace("major=9", "major=8")
    boards = contexts({"accelerator_properties": H100}, {"accelerator_properties": other})
    rows = context_difference(boards, 0, 1)
    assert {row.field for row in rows} == {"name", "major"}
    assert all(row.note is not None for row in rows)


def test_a_context_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match="no context 2; there are 0, 1"):
        context_difference(contexts({}, {}), 0, 2)
    with pytest.raises(NotFoundError, match="no context 0; there are none"):
        context_difference(contexts(), 0, 0)


def test_pairs_of_contexts() -> None:
    three = contexts({}, {"runtime": "CUDA"}, {}, {"runtime": "HIP", "torch_version_hash": "BBBB"})
    pairs = context_pairs(known_contexts(three))
    assert [(pair.before, pair.after, pair.differing, pair.undecided) for pair in pairs] == [
        (0, 1, ("runtime",), ()),
        (0, 3, ("torch_version_hash", "runtime"), ()),
        (1, 3, ("torch_version_hash", "runtime"), ()),
    ]
    assert all(pair.isolation_key is not None for pair in pairs)
    # Of which one is not wholly known, the key is that of the other.
    one_unknown = contexts({"triton_version_hash": ...}, {"runtime": "CUDA"})
    (pair,) = context_pairs(known_contexts(one_unknown))
    assert (pair.differing, pair.undecided) == (("runtime",), ("triton_version_hash",))
    assert pair.isolation_key is not None
    assert context_pairs(known_contexts(contexts({}))) == []


BOTH = {"aotautograd", "fxgraph"}


@pytest.mark.parametrize(("settings", "off", "off_remotely", "inside"), [
    ({}, set(), set(), None),
    ({FORCE_DISABLE: "True"}, BOTH, BOTH, None),
    ({FORCE_DISABLE: "True", FX_REMOTE_SWITCH: "True"}, BOTH, BOTH, None),
    ({FORCE_DISABLE: "False"}, set(), set(), None),
    ({FX_SWITCH: "False"}, BOTH, set(), None),
    ({FX_SWITCH: "True"}, set(), set(), None),
    ({AOT_SWITCH: "False"}, {"aotautograd"}, set(), None),
    ({FX_SWITCH: "False", AOT_SWITCH: "False"}, BOTH, set(), None),
    ({FX_REMOTE_SWITCH: "None", AOT_REMOTE_SWITCH: "True"}, set(), {"fxgraph"}, None),
    ({FX_REMOTE_SWITCH: "True", AOT_REMOTE_SWITCH: "False"}, set(), {"aotautograd"}, None),
    ({BUNDLED_SWITCH: "True"}, {"fxgraph"}, {"fxgraph"}, True),
    ({BUNDLED_SWITCH: "False"}, set(), set(), False),
    ({PRECOMPILE_SWITCH: "True", BUNDLED_SWITCH: "False"}, set(), set(), True),
    ({PRECOMPILE_SWITCH: "False"}, set(), set(), False),
])  # fmt: skip
def test_what_settings_switch_off(
    settings: dict[str, str], off: set[str], off_remotely: set[str], inside: bool | None
) -> None:
    assert (set(switched_off(settings)), set(switched_off_remotely(settings))) == (off, off_remotely)
    assert keeps_graphs_inside(settings) is inside
    # The first switch that says so is the reason.
    both = switched_off({**settings, FORCE_DISABLE: "True"})
    assert set(both.values()) == {f"the process has {FORCE_DISABLE} = True"}


def rows(*lookups: Made) -> list[LookupRow]:
    return list(scope_of(run(*lookups)).history.lookups)


@pytest.mark.parametrize(("lookups", "off"), [
    ([], set()),
    ([fx("f1")], set()),
    ([fx(None, "disabled")], {"fxgraph", "aotautograd"}),
    ([fx(None, "disabled"), fx("f1", "hit")], set()),
    # What AOTAutograd looked up has its graphs inside.
    ([aot("a1"), fx(None, "disabled")], {"fxgraph"}),
    ([aot("a1"), aot(None, "bypass"), fx(None, "disabled")], {"fxgraph"}),
    ([aot(None, "bypass"), fx(None, "disabled")], {"fxgraph", "aotautograd"}),
    ([aot(None, "disabled"), fx("f1")], {"aotautograd"}),
])  # fmt: skip
def test_caches_that_no_lookup_looked_into(lookups: list[Made], off: set[str]) -> None:
    assert set(never_looked(rows(*lookups))) == off


def test_the_forms_are_json_of_what_was_told() -> None:
    (row,) = contexts({"inductor_configs": {"b": 1, "a": 2}})
    assert json.loads(row.inductor_configs or "") == {"a": 2, "b": 1}
