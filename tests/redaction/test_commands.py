"""Planted secrets through every command, in every form, and through the report: none comes out. What is hidden by where it stands: every text column of every frame, and no list of columns has to be complete.

A redacted answer is still one: the same verdicts, causes, fields and counts, and torch's own words in it.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cachescope.catalogue.defects import all_defects, sentence
from cachescope.cli import main
from cachescope.frames.described import FRAMES
from cachescope.report.redact import Redaction
from cachescope.report.redaction.vocabulary import KEYS, NUMBERS_HIDDEN, WHOLE, vocabulary
from cachescope.rows import columns_of
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


@pytest.mark.parametrize(("scenario", "which"), [
    *((scenario, slice(None)) for scenario in SCENARIOS),
    # Of a few, each stands in many places.
    *((SCENARIOS[number], slice(number, None, 24)) for number in range(3)),
], ids=str)  # fmt: skip
@pytest.mark.sweep
def test_none_comes_out(
    scenario: str, which: slice, shown: Shown, recording: Recording, tmp_path: Path
) -> None:
    assert leaked(shown, tmp_path, recording, scenario, SECRETS[which]) == []


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


def test_equal_texts_get_equal_stand_ins_in_all_one_command_says(shown: Shown, recording: Recording) -> None:
    place = recording("2.13.0", "config_flip")
    said = shown("explain", place, place / "absent", "--json")
    printed, _, error = said.rpartition("}\n")
    problems = [row["source"] for row in json.loads(printed + "}")["problems"]]
    assert problems[0] in error and problems[0].startswith("<path-")


_COLUMNS = [column for kind in FRAMES.values() for column in columns_of(kind)]
TEXTS = sorted({column.name for column in _COLUMNS if column.dtype in ("str", "object")})


@pytest.mark.parametrize("column", [*TEXTS, "a_column_of_later"])
def test_no_column_shows_a_secret(column: str) -> None:
    redaction = Redaction()
    for planted in CORPUS[::3]:
        if planted.telling != ("max-autotune",) or "=" in planted.text or ":" in planted.text:
            shown = redaction({column: planted.text, "of": [{column: (planted.text,)}], planted.text: 1})
            assert leaks(json.dumps(shown), planted) == [], planted


def test_values_that_are_wholes_are_hidden_as_wholes() -> None:
    for column, kind in WHOLE.items():
        assert Redaction()({column: "data and max"}) == {column: f"<{kind}-1>"}, column
    for column in NUMBERS_HIDDEN:
        assert Redaction()({column: 59, "rank": 59}) == {column: "<bus-1>", "rank": 59}


def test_only_keys_as_torch_makes_them_stay() -> None:
    torchs = "f" + "abc" * 17
    for column in KEYS:
        assert Redaction()({column: torchs}) == {column: torchs}
        for other in ("7f3c" * 10, "7f3c" * 16, "zquill", "data/max"):
            assert Redaction()({column: other}) == {column: "<key-1>"}


def test_the_columns_that_are_named_are_there() -> None:
    of_json = {"paths", "report", "folder", "hostname", "node", "user", "owner", "mail", "email"}
    named = {*WHOLE, *KEYS} - of_json
    assert named - NUMBERS_HIDDEN <= set(TEXTS)


def test_columns_and_words_of_torch_are_known_and_names_of_people_are_not() -> None:
    known = vocabulary()
    assert all(column.name in known.words for kind in FRAMES.values() for column in columns_of(kind))
    people = (
        "ann annabel alice bob carol dave eve mallory john jane smith acme globex hunter2 gpu-box example.com"
    )
    assert [name for name in people.split() if name in known.words or name.capitalize() in known.words] == []
    assert {"epilogue_fusion", "float32", "relu", "inductor_config", "add"} <= known.words
    assert "torch/_inductor/codecache.py" in known.files


def test_what_a_cause_says_of_a_known_defect_is_shown_and_who_reported_one_is_not() -> None:
    for one in all_defects():
        if one.sign is not None:
            assert Redaction()({"advice": sentence(one)}) == {"advice": sentence(one)}
    threads = (thread.split(" ")[0] for one in all_defects() for thread in one.threads)
    reported = {name for thread in threads for name in thread.split("/")}
    assert {"kijai", "ComfyUI-KJNodes", "SkyRL", "unpacked"}.isdisjoint(vocabulary().words)
    assert reported >= {"kijai", "ComfyUI-KJNodes", "SkyRL"}


_SETTINGS = ("config_flip", "recompiles", "cpp_wrapper", "three_changes", "cache_key_tag")
_NAMES = (*_SETTINGS, "entry_garbage", "four_ranks", "rename_argument")
RECORDINGS = [*(("2.13.0", name) for name in _NAMES), ("2.10.0", "combined"), ("2.15.0", "dynamic_guards")]

# What people go by: none of it tells anything of whoever recorded it.
KEPT = (
    "verdict", "kind", "changed", "fields", "cause", "outcome", "cache", "cache_key", "compile_id", "evidence",
    "advice", "misses", "runs", "ranks", "status", "torch_version", "python_version", "rank", "pid",
    "hit_rate", "time_lost_ns", "lookup", "entry", "cache_state", "size_bytes", "code_key", "fx_keys", "will_hit",
)  # fmt: skip
MADE = re.compile(r"<[a-z]+-\d+>")


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    main([*map(str, arguments)])
    return capsys.readouterr().out


def beside(plain: Any, redacted: Any, name: str = "") -> list[object]:
    """Where a redacted answer has another shape, another number, or other words where people go by them."""
    if isinstance(plain, dict):
        if list(plain) != list(redacted):
            return [(name, list(redacted))]
        return [one for key in plain for one in beside(plain[key], redacted[key], key)]
    if isinstance(plain, list):
        if len(plain) != len(redacted):
            return [(name, len(plain), len(redacted))]
        return [one for a, b in zip(plain, redacted, strict=True) for one in beside(a, b, name)]
    if isinstance(plain, str) and (name not in KEPT or plain.startswith("edit ")):
        # A text that may be anyone's; an edit is told by a hash of the code.
        return [] if isinstance(redacted, str) else [(name, redacted)]
    # A recompile is told by its function and its file: names.
    parts = map(re.escape, MADE.split(redacted)) if isinstance(redacted, str) else ()
    same = plain == redacted or (isinstance(plain, str) and re.fullmatch("[^:]+".join(parts), plain))
    return [] if same else [(name, plain, redacted)]


@pytest.mark.parametrize(("version", "scenario"), RECORDINGS)
def test_verdicts_causes_and_counts_are_the_same(
    version: str, scenario: str, capsys: pytest.CaptureFixture[str], recording: Recording
) -> None:
    place = recording(version, scenario)
    for command in (("explain", place), ("entries", place / "cache"), ("diff", "run:0", "run:1", place)):
        plain, redacted = (
            json.loads(told(capsys, *command, "--json", *more)) for more in ((), ("--redact",))
        )
        assert beside(plain, redacted) == [], command


@pytest.mark.parametrize(("version", "scenario"), RECORDINGS)
def test_the_answer_reads_as_it_did(
    version: str, scenario: str, capsys: pytest.CaptureFixture[str], recording: Recording
) -> None:
    place = recording(version, scenario)
    plain = " ".join(told(capsys, "explain", place).split())
    redacted = " ".join(told(capsys, "explain", place, "--redact").split())
    # Every stand-in is of a text that may be anything: what is around it stays, word for word.
    parts = [re.escape(part) for part in MADE.split(redacted)]
    if "…" not in plain or len(parts) == 1:
        assert re.fullmatch(r"\S(?:.*?\S)?".join(parts), plain), redacted
    # One function has one name, however often it is named.
    assert len(set(MADE.findall(redacted))) <= 6, redacted


def test_equal_values_stay_equal_and_unequal_ones_do_not(
    capsys: pytest.CaptureFixture[str], recording: Recording
) -> None:
    place = recording("2.13.0", "other_directory")
    plain, redacted = (
        json.loads(told(capsys, "explain", place, "--json", *more))["runs"] for more in ((), ("--redact",))
    )
    for name in ("source", "cache_dir"):
        pairs = {(a[name], b[name]) for a, b in zip(plain, redacted, strict=True)}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        assert all(b is None or MADE.match(b) for _, b in pairs)


def test_the_page_names_the_same_causes(recording: Recording, tmp_path: Any) -> None:
    import cachescope
    from tests.report.test_page import without_drawing

    scope = cachescope.read(recording("2.13.0", "three_changes"))
    page = without_drawing(scope.report(tmp_path / "out.html", redact=True).read_text())
    fields = {field for cause in scope.causes["fields"] for field in cause}
    assert fields and all(re.sub(r"[\[_/.]", r"\g<0><wbr>", i) in page or i in page for i in fields)
