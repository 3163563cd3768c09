"""Where fields of hash details come from, what sets them, and their defaults."""

import json
import os
import subprocess
import sys

import pytest

from cachescope.analysis.verdicts.change_advice import field_advice
from cachescope.analysis.verdicts.misses import is_from_the_graph
from cachescope.keys.detail_hash import default_hashes, detail_hash
from cachescope.keys.key_fields import is_input


@pytest.mark.parametrize(("field", "is_so"), [
    ("example_inputs[0]", True), ("inputs_to_check[1]", True), ("fx_kwargs[static_input_idxs]", True),
    ("fx_kwargs[cudagraphs]", False), ("example_inputs", False), ("my_example_inputs[0]", False),
    ("gm", False),
])  # fmt: skip
def test_a_field_that_describes_the_inputs(field: str, is_so: bool) -> None:
    assert is_input(field) is is_so


@pytest.mark.parametrize(("field", "is_so"), [
    ("gm", True), ("example_inputs[0]", True), ("triton_kernel_source_codes[0]", True),
    ("cpp_runtime_thread_count", True), ("default_cuda_device_index", True),
    ("inductor_config[epilogue_fusion]", False), ("torch_version", False),
])  # fmt: skip
def test_a_field_that_follows_from_the_program(field: str, is_so: bool) -> None:
    assert is_from_the_graph(field) is is_so


@pytest.mark.parametrize(("field", "advice"), [
    ("default_dtype", "Set by torch.set_default_dtype(…)."),
    ("disable_amp", "Set by torch.autocast(…) around the call."),
    # Torch 2.12 with TORCH_CACHING_PRECOMPILE=1 prints False.
    ("precompile_enabled", "Set by torch._functorch.config.bundled_autograd_cache."),
    # What torch has of an option, and what the name of one shows that it does not have.
    ("inductor_config[epilogue_fusion]", "Set by options={\"epilogue_fusion\": …} of torch.compile or by torch._inductor.config.epilogue_fusion; keep it equal in every process."),
    ("inductor_config[of_a_later_torch]", "Set by options={\"of_a_later_torch\": …} of torch.compile, by torch._inductor.config.of_a_later_torch, or by a TORCHINDUCTOR_… variable; keep it equal in every process."),
    ("inductor_config[coordinate_descent_tuning]", None),
    ("inductor_config_comms[reorder_sink_verbose_logging]", "Set by torch._inductor.config_comms.reorder_sink_verbose_logging; keep it equal in every process."),
    ("fx_kwargs[of_a_later_torch]", "An argument that torch.compile hands to Inductor (of_a_later_torch)."),
    ("fx_kwargs[is_backward]", None),
])  # fmt: skip
def test_what_sets_a_field(field: str, advice: str | None) -> None:
    found = field_advice(field) or ""
    assert found == (found if advice is None else advice)
    assert found.endswith(".")


def test_each_way_to_set_an_option_is_named() -> None:
    tuning = field_advice("inductor_config[coordinate_descent_tuning]") or ""
    ways = (
        "by options=",
        "by torch._inductor.config.coordinate_descent_tuning, or by TORCHINDUCTOR_COORDINATE_DESCENT_TUNING",
    )
    assert all(way in tuning for way in ways), tuning
    assert "An argument that torch.compile hands to Inductor (is_backward)" not in (
        field_advice("fx_kwargs[is_backward]") or ""
    )


@pytest.mark.parametrize("field", ["gm", "a_field_of_no_torch", "example_inputs[0]"])
def test_where_nothing_is_certain_nothing_is_said(field: str) -> None:
    assert field_advice(field) is None


PROGRAM = "import cachescope, json; print(json.dumps(cachescope.capture()))"


@pytest.mark.torch
def test_known_defaults_are_those_of_a_process_that_set_nothing() -> None:
    unset = {name: value for name, value in os.environ.items() if "INDUCTOR" not in name}
    printed = subprocess.run([sys.executable, "-c", PROGRAM], env=unset, check=True, capture_output=True)
    snapshot = json.loads(printed.stdout)
    options = {name: hash_ for name, hash_ in snapshot["key_fields"].items() if name.startswith("inductor_")}
    known = {name: default_hashes(name, snapshot["torch_version"]) for name in options}
    assert sum(map(bool, known.values())) > 0.7 * len(options)
    assert [name for name, hashes in known.items() if hashes and options[name] not in hashes] == []


@pytest.mark.parametrize("field", ["inductor_config[cpp.cxx]", "inductor_config[nosuch]", "gm"])
def test_of_what_no_default_is_known_nothing_is_said(field: str) -> None:
    assert default_hashes(field, "2.13.0") == frozenset()


def test_a_default_is_that_of_the_version() -> None:
    field = "inductor_config[triton.cudagraphs]"
    assert detail_hash(False) in default_hashes(field, "2.13.0")
    assert detail_hash(True) not in default_hashes(field, "2.13.0")
