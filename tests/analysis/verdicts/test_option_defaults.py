"""The default of an option, as the catalogue has it, hashes as it does in a process of torch that set nothing."""

import json
import os
import subprocess
import sys

import pytest

from cachescope.analysis.verdicts.option_defaults import default_hashes
from cachescope.keys.detail_hash import detail_hash

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
