"""A redacted answer is still one: the same verdicts, causes, fields and counts, and torch's own words in it."""

import json
import re
from typing import Any

import pytest

from cachescope.cli import main
from tests.conftest import Recording

RECORDINGS = [
    *(
        ("2.13.0", name)
        for name in ("config_flip", "recompiles", "cpp_wrapper", "three_changes", "cache_key_tag")
    ),
    *(("2.13.0", name) for name in ("entry_garbage", "four_ranks", "rename_argument")),
    ("2.10.0", "combined"),
    ("2.15.0", "dynamic_guards"),
]
pytestmark = pytest.mark.slow

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
    assert fields and all(
        re.sub(r"[\[_/.]", r"\g<0><wbr>", field) in page or field in page for field in fields
    )
