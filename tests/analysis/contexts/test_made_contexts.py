"""Contexts, lookups and runs made by hand: the forms that hash details give, which differ and how that is shown, and which caches a process leaves out."""

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import pytest

from cachescope import terms
from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.analysis.contexts.keys import known_contexts
from cachescope.analysis.contexts.of_runs import all_contexts
from cachescope.analysis.contexts.process_fields import (
    keeps_graphs_inside,
    never_looked,
    switched_off,
    switched_off_remotely,
)
from cachescope.details import HashDetails
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.detail_hash import detail_hash
from cachescope.readers.snapshot import context_row
from tests.analysis.plain_rows import run_row
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
    "aot_key_fields", "functorch_config", "key_fields_problem",
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
    ({terms.FORCE_DISABLE: "True"}, BOTH, BOTH, None),
    ({terms.FORCE_DISABLE: "True", terms.FX_REMOTE_SWITCH: "True"}, BOTH, BOTH, None),
    ({terms.FORCE_DISABLE: "False"}, set(), set(), None),
    ({terms.FX_SWITCH: "False"}, BOTH, set(), None),
    ({terms.FX_SWITCH: "True"}, set(), set(), None),
    ({terms.AOT_SWITCH: "False"}, {"aotautograd"}, set(), None),
    ({terms.FX_SWITCH: "False", terms.AOT_SWITCH: "False"}, BOTH, set(), None),
    ({terms.FX_REMOTE_SWITCH: "None", terms.AOT_REMOTE_SWITCH: "True"}, set(), {"fxgraph"}, None),
    ({terms.FX_REMOTE_SWITCH: "True", terms.AOT_REMOTE_SWITCH: "False"}, set(), {"aotautograd"}, None),
    ({terms.BUNDLED_SWITCH: "True"}, {"fxgraph"}, {"fxgraph"}, True),
    ({terms.BUNDLED_SWITCH: "False"}, set(), set(), False),
    ({terms.PRECOMPILE_SWITCH: "True", terms.BUNDLED_SWITCH: "False"}, set(), set(), True),
    ({terms.PRECOMPILE_SWITCH: "False"}, set(), set(), False),
])  # fmt: skip
def test_what_settings_switch_off(
    settings: dict[str, str], off: set[str], off_remotely: set[str], inside: bool | None
) -> None:
    assert (set(switched_off(settings)), set(switched_off_remotely(settings))) == (off, off_remotely)
    assert keeps_graphs_inside(settings) is inside
    # The first switch that says so is the reason.
    both = switched_off({**settings, terms.FORCE_DISABLE: "True"})
    assert set(both.values()) == {f"the process has {terms.FORCE_DISABLE} = True"}


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


FORMS = (*terms.RUNTIME_FORMS, *terms.COMPILE_FORMS)
ANOTHER = "a" * 51
DETERMINISM = (
    "torch.are_deterministic_algorithms_enabled",
    "torch.is_deterministic_algorithms_warn_only_enabled",
    "torch.utils.deterministic.fill_uninitialized_memory",
)
MATMUL = "torch.backends.cuda.matmul."
REDUCED = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")


def line(field: str, value: object, text: str | None = None, protocol: int = 4) -> str:
    """A hash detail as torch prints it: the hash of the value, and its text."""
    return f"[{detail_hash(value, protocol)}] {field}: {value if text is None else text}"


def forms_of(row: ContextRow) -> dict[str, Any]:
    return {form: getattr(row, form) for form in FORMS if form not in row.missing_forms}


def of_runs(*runs: list[list[str]], snapshots: Sequence[ContextRow] = ()) -> list[ContextRow]:
    details = HashDetails()
    sets = [(number, one) for number, run in enumerate(runs) for one in run]
    looked_up = [LookupRow(run=number, detail_set=details.add(one)[0]) for number, one in sets]
    processes = (run_row(number, source="/a.log", pid=1000 + number) for number in range(len(runs)))
    found = all_contexts([*snapshots], processes, looked_up, details)
    assert found[: len(snapshots)] == [*snapshots]
    return found[len(snapshots) :]


def configs(**told: object) -> dict[str, str]:
    return {"inductor_configs": json.dumps(told, sort_keys=True)}


CASES: list[tuple[list[str], dict[str, str | None]]] = [
    ([], {}),
    (["not a detail"], {}),
    # A printed value counts if its hash is the one beside it, of either pickle protocol.
    ([line("inductor_config[b]", 2), line("inductor_config[a]", True)], configs(a=True, b=2)),
    ([line("inductor_config[a]", 2.5, protocol=5)], configs(a=2.5)),
    ([line("inductor_config[a]", "2")], configs(a="2")),
    ([line("inductor_config[a]", "it's")], configs(a="it's")),
    ([line("inductor_config[a]", None)], configs(a=None)),
    ([line("inductor_config[a]", [1, "x"])], configs(a=[1, "x"])),
    ([line("inductor_config[a]", (None, "g++"))], configs(a=(None, "g++"))),
    ([f"[{ANOTHER}] inductor_config[a]: 2"], {}),
    ([line("inductor_config[a]", 1), f"[{ANOTHER}] inductor_config[b]: 2"], {}),
    ([line("inductor_config[a]", "x" * 100_000)], configs(a="x" * 100_000)),
    ([line("inductor_config[a]", "x" * 100_001)], {}),
    # What JSON cannot hold is in no context.
    ([line("inductor_config[a]", b"x")], {}),
    ([line("inductor_config_comms[a]", 1)], {}),
    ([line("deterministic_algorithms_settings", (True, False, True))],
     {"torch_determinism_configs": json.dumps(dict(zip(DETERMINISM, (True, False, True), strict=True)), sort_keys=True)}),
    ([line("deterministic_algorithms_settings", (True, False))], {}),
    ([line("deterministic_algorithms_settings", [True, False, True])], {}),
    # Through 2.8 the first is another setting.
    (
        [line("cuda_matmul_settings", (True, False, True))],
        {"cuda_matmul_precision_configs": json.dumps({MATMUL + n: v for n, v in zip(("allow_tf32", *REDUCED), (True, False, True), strict=True)}, sort_keys=True)},
    ),
    (
        [line("cuda_matmul_settings", ("ieee", False, True))],
        {"cuda_matmul_precision_configs": json.dumps({MATMUL + n: v for n, v in zip(("fp32_precision", *REDUCED), ("ieee", False, True), strict=True)}, sort_keys=True)},
    ),
    ([line("cuda_matmul_settings", (True,))], {}),
    ([line("cuda_matmul_settings", [True, False, True])], {}),
    # The system, as far as it names what it is.
    ([line("system_info[version]", {"triton": "3.4-abc", "cuda": "12.8"})],
     {"triton_version_hash": "3.4-abc", "runtime": "CUDA", "runtime_version": "12.8"}),
    ([line("system_info[version]", {"hip": "6.4"})], {"runtime": "HIP", "runtime_version": "6.4"}),
    ([line("system_info[version]", {"triton": None})], {"triton_version_hash": None}),
    ([line("system_info[version]", {"triton": 3})], {}),
    ([line("system_info[version]", {"cuda": None})], {}),
    ([line("system_info[version]", {"cuda": 12})], {}),
    ([line("system_info[version]", {})], {}),
    ([line("system_info[version]", ["cuda"])], {}),
    ([line("system_info[device]", {"name": "NVIDIA L4"})], {}),
    ([line("gm", 1), line("system_info[hash]", "x")], {}),
]  # fmt: skip


def test_the_forms_that_details_give() -> None:
    """All at once, as if each case were a run: a frame takes longer than all of them."""
    found = of_runs(*([lines] for lines, _ in CASES))
    for (lines, wanted), row in zip(CASES, found, strict=True):
        assert forms_of(row) == wanted, lines


ONE, OTHER = line("inductor_config[a]", 1), line("inductor_config[a]", 2)
STRICT = line("deterministic_algorithms_settings", (True, False, False))


@pytest.mark.parametrize(("sets", "wanted"), [
    ([[ONE], [ONE, "[" + ANOTHER + "] gm: g"]], {"inductor_configs"}),
    ([[ONE], [OTHER]], set()),
    ([[ONE], []], {"inductor_configs"}),
    ([[ONE], ["[" + ANOTHER + "] gm: g"]], set()),
    ([[ONE, STRICT], [OTHER, STRICT]], {"torch_determinism_configs"}),
    ([[ONE], [ONE, line("inductor_config[b]", 1)]], set()),
    # Equal hashes are equal values, however they are printed.
    ([[ONE], [line("inductor_config[a]", 1, "01")]], {"inductor_configs"}),
])  # fmt: skip
def test_all_lookups_of_a_run_have_to_agree(sets: list[list[str]], wanted: set[str]) -> None:
    (row,) = of_runs(sets)
    assert forms_of(row).keys() == wanted


def test_runs_are_read_apart() -> None:
    first, second = of_runs([[ONE]], [[OTHER]])
    assert (first.inductor_configs, second.inductor_configs) == ('{"a": 1}', '{"a": 2}')
    assert [(one.context, one.run, one.pid) for one in (first, second)] == [(0, 0, 1000), (1, 1, 1001)]  # fmt: skip
    assert {one.known_from for one in (first, second)} == {"hash_details"}
    assert first.missing_forms == tuple(form for form in FORMS if form != "inductor_configs")
    assert (first.hashed_forms, first.torch_detail_hash) == ((), None)


def test_torchs_own_key_is_known_by_its_hash_or_from_a_snapshot() -> None:
    key = line("torch_version", b"\0\0\0", "b'...'")
    (row,) = of_runs([[key]])
    assert (row.hashed_forms, row.torch_detail_hash) == (("torch_version_hash",), key[1:52])
    assert set(row.missing_forms) == set(FORMS)
    # A snapshot of the same torch: its key in base64, whatever the protocol of the run's Python.
    same, another = {"torch_version_hash": "AAAA", "runtime": "CUDA"}, {"torch_version_hash": "AAAB"}
    for protocol in (4, 5):
        key = line("torch_version", b"\0\0\0", "b'...'", protocol)
        (row,) = of_runs([[key]], snapshots=contexts(dict(another), dict(same)))
        assert (row.context, row.torch_version_hash, row.runtime) == (2, "AAAA", "CUDA")
        assert (row.hashed_forms, row.torch_detail_hash) == ((), key[1:52])
        assert not {"torch_version_hash", "runtime", "runtime_version"} & set(row.missing_forms)
    (row,) = of_runs([[key]], snapshots=contexts(dict(another)))
    assert (row.torch_version_hash, row.hashed_forms) == (None, ("torch_version_hash",))
    # What the snapshot lacks, it does not give.
    (row,) = of_runs([[key]], snapshots=contexts({**same, "runtime": ..., "runtime_version": "12.8"}))
    assert (row.runtime, row.runtime_version) == (None, "12.8")
    assert "runtime" in row.missing_forms and "runtime_version" not in row.missing_forms


def test_without_runs_there_are_the_snapshots_alone() -> None:
    assert of_runs(snapshots=contexts({})) == []
