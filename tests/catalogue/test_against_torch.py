"""The catalogues of torch 2.13 against its sources, and against what torch itself says and does when it runs."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cachescope.catalogue import facts
from cachescope.catalogue.bypasses import bypasses, cacheable_since
from cachescope.catalogue.facts import fields
from tests.data.bypass_sources.known import KNOWN, NO_REASON, Known

pytestmark = pytest.mark.torch

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


def test_made_anew_from_sources_it_is_the_same(from_sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(from_sources.read_text())["versions"] == [VERSION]
    shipped = fields(VERSION).drop(columns=ACROSS_VERSIONS)
    facts.document.cache_clear()
    facts._history.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(facts, "_FILE", from_sources)
            made = fields(VERSION).drop(columns=ACROSS_VERSIONS)
    finally:
        facts.document.cache_clear()
        facts._history.cache_clear()
    assert shipped.equals(made)


def told_by_torch(environment: Mapping[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", TELL], env={**os.environ, **environment}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout)
    return told


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


DATA = Path(__file__).parent.parent / "data"
# Of a file made from one version alone, these tell of that version.
OF_ONE_VERSION = ["message", "caches", "meaning", "advice", "basis"]
TRIED = {
    known.program: (message, known)
    for message, known in [*KNOWN.items(), *NO_REASON.items()]
    if known.program and VERSION in known.versions
}
# The other things that its advice names.
TRIED["own_function_as_an_operator"] = TRIED["custom_autograd"] = TRIED["own_function"]
ALWAYS = ("freezing",)


@pytest.fixture(scope="module")
def site_packages() -> Path:
    """Where the torch is that is installed."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent.parent


def test_bypasses_made_anew_from_installed_sources_are_the_same(site_packages: Path, tmp_path: Path) -> None:
    output = tmp_path / "bypasses.json"
    script = DATA / "make_bypasses.py"
    subprocess.run([sys.executable, script, site_packages, "--output", output], check=True)
    made: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    assert made["versions"] == [VERSION]

    shipped = bypasses(VERSION)
    of_shipped = {row.message: [getattr(row, one) for one in OF_ONE_VERSION] for row in shipped.itertuples()}
    of_made = {
        row["message"]: [row["message"], tuple(row["caches"]), row["meaning"], row["advice"], row["basis"]]
        for row in made["reasons"]
    }
    assert of_made == of_shipped
    places = shipped.set_index("message")["raised_in"]
    assert all(set(row["raised_in"]) <= set(places[row["message"]]) for row in made["reasons"])
    assert all(cacheable_since(name) for name in made["operators"])


def test_every_line_that_bypasses_is_read(site_packages: Path) -> None:
    """Found with a plain search: each such line begins a message that the catalogue has, or passes one on."""
    known = [message for message in bypasses(VERSION)["message"] if message]
    begins = re.compile(
        r"(?:raise Bypass(?:FxGraph|AOTAutograd)Cache\(|\b(?:self|CacheabilityValidator)\.bypass\()\s*(?P<rest>\S.*)"
    )
    read = 0
    for path in sorted((site_packages / "torch").rglob("*.py")):
        if "testing" in path.parts:
            continue
        for found in begins.finditer(path.read_text(encoding="utf-8")):
            rest = found["rest"]
            quoted = re.match(r"""f?(["'])(?P<fixed>.*?)(?:\{|\1)""", rest)
            if quoted is None:
                assert rest.startswith(("reason)", "str(e)")), f"{path}: {rest}"
                continue
            read += 1
            fixed = quoted["fixed"].split("\\n")[0]
            assert any(message.startswith(fixed) for message in known), f"{path}: {rest}"
    assert read > 25


def compiled(program: str, way: str, folder: Path) -> tuple[dict[str, int], str]:
    """Torch's counters of its caches, and their log."""
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / way),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
        "TORCH_LOGS": "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache",
    }
    command = [sys.executable, str(DATA / "bypass_programs.py"), program, way]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counters: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counters, done.stderr


def bypassed(counters: dict[str, int], known: Known) -> int:
    """How many lookups were bypassed, of the caches that the advice is about."""
    names = ["fxgraph_cache_bypass"]
    names += [] if known.of_fx_alone else ["autograd_cache_bypass"]
    return sum(counters.get(name, 0) for name in names)


@pytest.mark.parametrize("program", [
    # Each compiles twice with a new cache: the others are followed with `make models`.
    pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.models)
    for name in sorted(TRIED)
])  # fmt: skip
def test_the_advice_lifts_it(program: str, tmp_path: Path) -> None:
    message, known = TRIED[program]
    before, log = compiled(program, "bypassed", tmp_path)
    after, _ = compiled(program, "lifted", tmp_path)
    assert bypassed(before, known) and re.sub(r"…(.|\n)*", "", message) in log
    assert not bypassed(after, known)
    assert after.get("fxgraph_cache_miss")
    assert known.of_fx_alone or after.get("autograd_cache_saved")
