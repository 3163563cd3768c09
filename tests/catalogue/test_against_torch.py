"""The catalogue of torch 2.13 against its sources, and against what torch itself says when it runs."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cachescope.catalogue import facts
from cachescope.catalogue.facts import fields

SCRIPT = Path(__file__).parent.parent / "data" / "make_fields.py"
VERSION = "2.13.0"
# Of a file made from one version alone, these tell of that version.
ACROSS_VERSIONS = ["first_version", "last_version", "key_versions"]
TELL = """
import json, sys, torch._inductor.config as config
from torch._inductor import config_comms
def told(module):
    return {name: [repr(entry.default), entry.alias] for name, entry in module._config.items()}
def value(entry):
    unset = {repr(entry.env_value_force), repr(entry.env_value_default)}
    return f"{entry.default!r} {sorted(u for u in unset if 'object object' not in u)}"
json.dump({
    "options": told(config), "comms": told(config_comms),
    "key": sorted(config.save_config_portable(ignore_private_configs=False)),
    "values": {name: value(entry) for name, entry in config._config.items()},
}, sys.stdout)
"""


@pytest.fixture
def from_sources(tmp_path: Path) -> Path:
    """Make the catalogue anew from the sources of the torch that is installed."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    output = tmp_path / "fields.json"
    place = Path(spec.origin).parent.parent
    subprocess.run([sys.executable, SCRIPT, place, "--output", output], check=True)
    return output


@pytest.mark.torch
def test_made_anew_from_the_installed_sources_it_is_the_same(
    from_sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(from_sources.read_text())["versions"] == [VERSION]
    shipped = fields(VERSION).drop(columns=ACROSS_VERSIONS)
    facts._document.cache_clear()
    facts._history.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(facts, "_FILE", from_sources)
            made = fields(VERSION).drop(columns=ACROSS_VERSIONS)
    finally:
        facts._document.cache_clear()
        facts._history.cache_clear()
    assert shipped.equals(made)


def told_by_torch(environment: Mapping[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", TELL],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.torch
def test_options_defaults_and_variables_are_those_of_torch() -> None:
    pytest.importorskip("torch")
    frame = fields(VERSION)
    options = frame[frame["field"].str.startswith("inductor_config[")].copy()
    options.index = options["field"].str.removeprefix("inductor_config[").str.removesuffix("]")
    # torch refuses to start with any but a few words for this one.
    variables = set(options["environment"].explode().dropna()) - {"TORCHINDUCTOR_WORKER_START"}
    plain = told_by_torch({})
    on, off = (told_by_torch(dict.fromkeys(variables, value)) for value in ("1", "0"))

    assert set(options.index) == set(plain["options"])
    assert set(options.index[options["in_key"]]) == set(plain["key"])
    comms = frame["field"][frame["field"].str.startswith("inductor_config_comms[")]
    assert set(comms.str.removeprefix("inductor_config_comms[").str.removesuffix("]")) == set(plain["comms"])

    compared = 0
    for name, written in options["default"].dropna().items():
        try:
            value = ast.literal_eval(written)
        except (ValueError, SyntaxError):
            continue
        compared += 1
        assert repr(value) == plain["options"][name][0], name
    assert compared > 300

    # Only an option that is said to read a variable may change with one, and all but a few that want a word do.
    own = [name for name, (_, alias) in plain["options"].items() if alias is None]
    changed = {name for name in own if any(t["values"][name] != plain["values"][name] for t in (on, off))}
    said = set(options.index[options["environment"].str.len() > 0])
    assert changed <= said
    assert len(said - changed) < 5 and len(said) > 200
