"""Contexts of runs: the hash details that a run printed in, the forms that follow from them out; made by hand."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from cachescope.analysis.contexts.of_runs import all_contexts
from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.detail_hash import detail_hash
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.analysis.contexts.test_made_contexts import contexts
from tests.analysis.plain_rows import run_row

FORMS = (*RUNTIME_FORMS, *COMPILE_FORMS)
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


def rows(*runs: list[list[str]], snapshots: Sequence[ContextRow] = ()) -> list[ContextRow]:
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
    found = rows(*([lines] for lines, _ in CASES))
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
    (row,) = rows(sets)
    assert forms_of(row).keys() == wanted


def test_runs_are_read_apart() -> None:
    first, second = rows([[ONE]], [[OTHER]])
    assert (first.inductor_configs, second.inductor_configs) == ('{"a": 1}', '{"a": 2}')
    assert [(one.context, one.run, one.pid) for one in (first, second)] == [(0, 0, 1000), (1, 1, 1001)]  # fmt: skip
    assert {one.known_from for one in (first, second)} == {"hash_details"}
    assert first.missing_forms == tuple(form for form in FORMS if form != "inductor_configs")
    assert (first.hashed_forms, first.torch_detail_hash) == ((), None)


def test_torchs_own_key_is_known_by_its_hash_or_from_a_snapshot() -> None:
    key = line("torch_version", b"\0\0\0", "b'...'")
    (row,) = rows([[key]])
    assert (row.hashed_forms, row.torch_detail_hash) == (("torch_version_hash",), key[1:52])
    assert set(row.missing_forms) == set(FORMS)
    # A snapshot of the same torch: its key in base64, whatever the protocol of the run's Python.
    same, another = {"torch_version_hash": "AAAA", "runtime": "CUDA"}, {"torch_version_hash": "AAAB"}
    for protocol in (4, 5):
        key = line("torch_version", b"\0\0\0", "b'...'", protocol)
        (row,) = rows([[key]], snapshots=contexts(dict(another), dict(same)))
        assert (row.context, row.torch_version_hash, row.runtime) == (2, "AAAA", "CUDA")
        assert (row.hashed_forms, row.torch_detail_hash) == ((), key[1:52])
        assert not {"torch_version_hash", "runtime", "runtime_version"} & set(row.missing_forms)
    (row,) = rows([[key]], snapshots=contexts(dict(another)))
    assert (row.torch_version_hash, row.hashed_forms) == (None, ("torch_version_hash",))
    # What the snapshot lacks, it does not give.
    (row,) = rows([[key]], snapshots=contexts({**same, "runtime": ..., "runtime_version": "12.8"}))
    assert (row.runtime, row.runtime_version) == (None, "12.8")
    assert "runtime" in row.missing_forms and "runtime_version" not in row.missing_forms


def test_without_runs_there_are_the_snapshots_alone() -> None:
    assert rows(snapshots=contexts({})) == []
