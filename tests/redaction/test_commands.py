"""Planted secrets through every command, in every form, and through the report: none comes out."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cachescope.cli import main
from tests.conftest import Recording
from tests.redaction.planted import CORPUS, Planted, leaks
from tests.redaction.planting import planted_copy
from tests.report.test_page import without_drawing

pytestmark = pytest.mark.slow

# What cachescope says itself is no secret, though it is one where a password is.
SECRETS = [one for one in CORPUS if one.telling != ("max-autotune",) and "\n" not in one.text]
SCENARIOS = ("config_flip", "bypass_custom_pass", "failed_codegen", "rename_argument", "recompiles")
Shown = Callable[..., str]


@pytest.fixture
def shown(commands_read_once: None, capsys: pytest.CaptureFixture[str]) -> Shown:
    """All that a command says with ``--redact``."""

    def call(*arguments: object) -> str:
        capsys.readouterr()
        main([*map(str, arguments), "--redact"])
        said = capsys.readouterr()
        return said.out + said.err

    return call


def commands(place: Path, beside: Path, out: Path) -> list[tuple[object, ...]]:
    """Every command over a place, and beside another one."""
    trace, cache, snapshot = place / "trace", place / "cache", place / "snapshot.json"
    keys = [path.name for path in sorted((cache / "fxgraph").glob("??/f*")) if len(path.name) == 52]
    told: list[tuple[object, ...]] = [
        ("explain", place),
        *(("explain", place, "--lookup", number) for number in range(3)),
        ("explain", cache),
        ("what-if", place),
        ("what-if", place, "--without", "inductor_config[*]"),
        ("time", place),
        ("compiles", place),
        ("diff", "run:0", "run:1", place),
        ("diff", trace, beside),
        ("diff", cache, snapshot),
        ("entries", cache, "--locks"),
        *(("entries", key, cache) for key in keys[:1]),
        ("contexts", place),
        ("contexts", snapshot),
        ("devices", place, snapshot),
        ("explain", place / "absent", place),
        ("entries", "fnothing", cache),
        ("explain", place, "--key", place.name),
        ("what-if", place, "--without", place.name),
        ("contexts", place, "--schema", place / "absent.json"),
    ]
    forms = [form for arguments in told for form in (arguments, (*arguments, "--json"))]
    check = ("check", place, "--min-hit-rate", 1, "--against", beside, "--format")
    return [
        *forms,
        *((*check, form) for form in ("text", "json", "markdown", "github", "junit")),
        ("report", place, "-o", out),
        ("report", place, "-o", place),
        ("entries", cache, "--prune-list"),
    ]


def leaked(
    shown: Shown, folder: Path, recording: Recording, scenario: str, secrets: list[Planted]
) -> list[object]:
    source = recording("2.13.0", scenario)
    place = planted_copy(source, folder / "of zquill vanterra" / scenario, secrets)
    beside = recording("2.13.0", "three_changes") / "trace"
    everything = [*secrets, Planted("", ("zquill", "vanterra"))]
    found: list[object] = []
    for arguments in commands(place, beside, folder / "out.html"):
        said = shown(*arguments)
        assert said or "--key" in arguments, arguments
        if leaks_ := leaks(said, *everything):
            found.append((arguments[0], arguments[2:], leaks_))
    page = without_drawing((folder / "out.html").read_text())
    if leaks_ := leaks(page, *everything):
        found.append(("report", leaks_))
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.sweep
def test_none_of_all_comes_out(scenario: str, shown: Shown, recording: Recording, tmp_path: Path) -> None:
    assert leaked(shown, tmp_path, recording, scenario, SECRETS) == []


@pytest.mark.parametrize("number", range(3))
@pytest.mark.sweep
def test_none_of_a_few_comes_out(number: int, shown: Shown, recording: Recording, tmp_path: Path) -> None:
    few = SECRETS[number::24]
    assert leaked(shown, tmp_path, recording, SCENARIOS[number % len(SCENARIOS)], few) == []


def test_what_is_planted_comes_out_without_redaction(
    capsys: pytest.CaptureFixture[str], recording: Recording, tmp_path: Path
) -> None:
    secrets = SECRETS[::11]
    place = planted_copy(recording("2.13.0", "config_flip"), tmp_path / "place", secrets)
    said = ""
    for command in ("explain", "entries", "contexts"):
        main([command, str(place / "cache" if command == "entries" else place), "--json"])
        said += capsys.readouterr().out
    missed = [one.text for one in secrets if not leaks(said, one)]
    assert missed == []


def test_a_recording_with_secrets_in_its_command(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = (
        "record", "-o", tmp_path / "zquill", "--redact", "--", sys.executable, "-c", "pass",
        "--name=vanterra",
    )  # fmt: skip
    for form in ((), ("--json",)):
        main([*map(str, arguments[:4]), *form, *map(str, arguments[4:])])
        said = capfd.readouterr()
        assert leaks(said.out + said.err, Planted("", ("zquill", "vanterra"))) == []
        assert "its logs are in <path-" in said.err


def test_equal_texts_get_equal_stand_ins_in_all_that_one_command_says(
    shown: Shown, recording: Recording
) -> None:
    place = recording("2.13.0", "config_flip")
    said = shown("explain", place, place / "absent", "--json")
    printed, _, error = said.rpartition("}\n")
    problems = [row["source"] for row in json.loads(printed + "}")["problems"]]
    assert problems[0] in error and problems[0].startswith("<path-")
