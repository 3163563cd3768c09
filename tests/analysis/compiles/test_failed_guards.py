"""Which sizes guards failed for: nothing is said where the recorded values do not make them fail, or a size is not known; and guard misses of recordings."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cachescope
from cachescope.analysis.compiles.ranges import Bounds
from cachescope.analysis.guards import (
    FailedGuards,
    failed_guards,
    failed_in,
    fails,
    in_words,
    is_one_size,
    only_placeholder,
    placeholders,
)
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.frames.compile_rows import SymbolRow
from cachescope.scope import Scope
from tests.conftest import Recording, unpacked


def symbol(
    name: str, value: str | None, source: str | None = None, after: str | None = None, *guards: str
) -> SymbolRow:
    place = (None, None, None)
    texts = tuple(f"a: b.py:1: {guard}" for guard in guards)
    return SymbolRow(
        0, "0/0", 1, name, value, source, None, *place, None, after, texts, ("",) * len(texts), None, None
    )


X = symbol("s0", "5", "L['x'].size()[0]")
Y = symbol("s1", "20", "L['y'].size()[1]")
TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([s0, s1]))"


@pytest.mark.parametrize(("source", "words"), [
    ("L['x'].size()[0]", "x.size(0)"),
    ("L['n']", "n"),
    ("L['self'].flag", "self.flag"),
    ("L['self']._modules['x'].weight.size()[1]", "self.x.weight.size(1)"),
    ("G['table'].stride()[0]", "G['table'].stride()[0]"),
])  # fmt: skip
def test_sources_in_the_words_of_the_program(source: str, words: str) -> None:
    assert in_words(source) == words


@pytest.mark.parametrize(("inputs", "symbols", "found"), [
    (["('s0',)", TENSOR, "('s1',)"], [X, Y], {"t0": "s0", "t1": "s1"}),
    # A symbol may be passed twice; floats and numbers from data are no placeholders.
    (["('s0',)", "('zf7',)", "('u0',)", "('s0',)"], [X], {"t0": "s0", "t1": "s0"}),
    (["('s_0',)", TENSOR], [X, symbol("zf1", "2.5", "L['f']")], {"t0": "s0"}),
    (["('s_0',)", "('s_0',)"], [X], {"t0": "s0", "t1": "s0"}),
    # Which number is which symbol is not known, an expression, a value or a source that is not recorded.
    (["('s_0',)", "('s_1',)"], [X, Y], None),
    (["('s_0',)"], [X, Y], None),
    (["('2*s0',)"], [X], None),
    (["('s_0',)", "('2*s0',)"], [X], None),
    (["('s0',)"], [symbol("s0", None, "L['n']")], None),
    (["('s0',)"], [symbol("s0", "5")], None),
    (["('s0',)"], [], None),
    ([TENSOR], [X], {}),
])  # fmt: skip
def test_what_the_placeholders_of_guards_stand_for(
    inputs: list[str], symbols: list[SymbolRow], found: dict[str, str] | None
) -> None:
    of = placeholders(inputs, symbols)
    assert (None if of is None else {name: row.symbol for name, row in of.items()}) == found


def test_of_one_symbol_every_placeholder_is_that_symbol() -> None:
    guards = ["11 <= L['t0'] and L['t1'] <= 90"]
    assert only_placeholder(guards, [X, symbol("zf1", "2.5", "L['f']")]) == {"t0": X, "t1": X}
    assert only_placeholder(guards, [X, replace(Y, specialized="20")]) == {"t0": X, "t1": X}
    assert only_placeholder(guards, [X, Y]) is None
    assert only_placeholder(guards, [symbol("s0", None, "L['n']")]) is None
    assert only_placeholder(guards, []) is None


OF = {"t0": X, "t1": Y}


@pytest.mark.parametrize(("guards", "sizes", "bounds", "conditions"), [
    (["11 <= L['t0']"], ["s0"], [(11, None)], ["11 <= x.size(0)"]),
    (["2 <= L['t1'] and 11 <= L['t0'] and L['t0'] <= 90"], ["s0"], [(11, 90)], ["11 <= x.size(0)"]),
    # Several entries.
    (["11 <= L['t0'] and L['t0'] <= 20", "31 <= L['t0']"], ["s0"], [(11, 20), (31, None)], None),
    (["11 <= L['t0']", "L['t1'] <= 6"], ["s0", "s1"], [], None),
    # Bounds alone do not say what the entry needs.
    (["11 <= L['t0'] and L['t0'] % 8 == 0"], ["s0"], [], ["11 <= x.size(0) and x.size(0) % 8 == 0"]),
    (["L['t0'] > L['t1']"], ["s0", "s1"], [], ["x.size(0) > y.size(1)"]),
])  # fmt: skip
def test_what_guards_fail_for(
    guards: list[str], sizes: list[str], bounds: list[tuple[int, int | None]], conditions: list[str] | None
) -> None:
    found = failed_guards(guards, OF)
    assert [row.symbol for row, _ in found.sizes] == sizes
    assert list(found.bounds) == [Bounds(*one) for one in bounds]
    assert conditions is None or list(found.conditions) == conditions


@pytest.mark.parametrize("guards", [
    [],
    # One of the entries would have hit: something else is true.
    ["11 <= L['t0']", "2 <= L['t0']"], ["L['t0'] <= 10"], ["11 <= L['t7']"],
    ["11 <= L['t0'] and L['t7'] > 2"], ["__import__('os')"], ["11 <="],
    ["11 <= L['t0']" + " + 0" * 20_000], ["not " * 300 + "L['t0']"], ["1 > 2"],
])  # fmt: skip
def test_where_guards_are_not_known_to_fail_nothing_is_said(guards: list[str]) -> None:
    assert failed_guards(guards, OF) is None


@pytest.mark.parametrize(("expr", "is_failed"), [
    ("s0 > 10", True), ("Eq(s0, 5)", False), ("Ne(s0, 5)", True), ("Eq(Mod(s0, 2), 0)", True),
    ("Eq(PythonMod(s0, 2), 1)", False), ("FloorDiv(s0, 2) >= 3", True), ("s0 > s1", True),
    # Not known, so not said to fail.
    ("s0 > s9", False), ("Max(s0, 2) > 90", False), ("open('x') > 3", False), ("s0 >", False),
    ("s0 > 10" + " + 0" * 20_000, False),
])  # fmt: skip
def test_a_guard_fails_only_where_it_is_known_to(expr: str, is_failed: bool) -> None:
    assert fails(expr, {"s0": 5, "s1": 20}) is is_failed


def test_guards_of_the_compiles_that_stored() -> None:
    stored = symbol("s0", "20", "L['x'].size()[0]", "[11, 4096]", "s0 > 10", "s0 < 4097")
    found = failed_in([[stored]], [X])
    assert found == FailedGuards(((X, 5),), (Bounds(11, 4096),), ("x.size(0) > 10",), 1)
    remainder = symbol("s0", "16", "L['x'].size()[0]", "[2, int_oo]", "Eq(Mod(s0, 8), 0)")
    found = failed_in([[remainder]], [X])
    assert found == FailedGuards(((X, 5),), (), ("x.size(0) % 8 == 0",), 1)
    # Of several sizes no bound is told: it would be read as that of one of them.
    wide = symbol("s1", "4", "L['y'].size()[1]", "[2, 6]", "s1 < 7")
    found = failed_in([[stored], [wide]], [X, Y])
    assert found == FailedGuards(((X, 5), (Y, 20)), (), ("x.size(0) > 10", "y.size(1) < 7"), 2)
    # Nor of one size whose bounds in one of the entries are not known.
    found = failed_in([[stored], [replace(stored, range_after=None)]], [X])
    assert found == FailedGuards(((X, 5),), (), ("x.size(0) > 10",), 2)
    other = symbol("s0", "20", "L['z'].size()[0]", "[11, int_oo]", "s0 > 10")
    unguarded = symbol("s0", "20", "L['x'].size()[0]", "[2, int_oo]")
    for compiles in ([], [[]], [[other]], [[unguarded]], [[stored], [unguarded]]):
        assert failed_in(compiles, [X]) is None
    assert failed_in([[stored]], [symbol("s0", None, "L['x'].size()[0]")]) is None
    assert failed_in([[stored]], []) is None


@pytest.mark.parametrize(("source", "inputs", "is_one"), [
    ("L['x'].size()[0]", ["('s0',)", "TensorMetadata(shape=torch.Size([s0, 16]), stride=(16, 1))"], True),
    # A symbol that is another size as well cannot be padded alone; of a number nothing is padded; nothing is known.
    ("L['x'].size()[0]", ["TensorMetadata(shape=torch.Size([s0, s0]), stride=(s0, 1))"], False),
    ("L['x'].size()[0]", ["T(shape=torch.Size([s0]))", "T(shape=torch.Size([4, 2*s0]))"], False),
    ("L['x'].size()[0]", ["T(shape=torch.Size([s10]))", "T(shape=torch.Size([s0]))"], True),
    ("L['n']", ["T(shape=torch.Size([s0]))"], False),
    ("L['x'].size()[0]", [], False),
])  # fmt: skip
def test_only_a_size_of_its_own_can_be_padded(source: str, inputs: list[str], is_one: bool) -> None:
    assert is_one_size(symbol("s0", "5", source), inputs) is is_one


_DATA = Path(__file__).parents[2] / "data"
RECORDED = [
    pytest.param(
        path,
        id=(version := path.name.removesuffix(".tar.xz")),
        marks=() if version == "2.13.0" else pytest.mark.slow,
    )
    for path in sorted((_DATA / "guards").glob("*.tar.xz"))
]
_PROGRAM = (_DATA / "guard_programs.py").read_text(encoding="utf-8").split("\n")
# By hand: which size of `guard_programs.py` fails which condition, and the line that it is from.
TOLD = {
    "bounded": ("x.size(0) is 5", "11 to 4096", "if x.shape[0] > 10 and x.shape[0] < 4097"),
    "at_most": ("x.size(0) is 50", "2 to 32", "if x.shape[0] * 2 <= 64"),
    "remainder": ("x.size(0) is 13", "x.size(0) % 8 == 0", "if x.shape[0] % 8 == 0"),
    "compared": ("x.size(0) is 6, y.size(0) is 9", "x.size(0) > y.size(0)", "if x.shape[0] > y.shape[0]"),
    "number": ("n is 50", "101 or more", "if n > 100"),
    "model": ("tokens.size(1) is 7", "12 or more", "if y.shape[1] >= 12"),
}
PADDED = {"bounded": "Pad x.size(0) to 11 or more", "model": "Pad tokens.size(1) to 12 or more"}


class Recorded(NamedTuple):
    scope: Scope
    facts: dict[str, dict[str, dict[str, int]]]
    folder: Path


def of_folder(folder: Path) -> Recorded:
    facts = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
    return Recorded(cachescope.read(folder / "trace"), facts, folder)


@pytest.fixture(scope="module", params=RECORDED)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return of_folder(unpacked(request.param, tmp_path_factory.mktemp("guards")))


def check_told(recorded: Recorded) -> None:
    """Each guard miss names its size, what the entry needs, and the line."""
    scope = recorded.scope
    told: dict[str, set[str | None]] = {}
    for lookup in scope.misses[scope.misses["verdict"] == "guard_failed"]["lookup"]:
        row = scope.lookups.set_index("lookup").loc[lookup]
        name = "model" if row["function"] == "forward" else row["function"]
        explained = scope.explain(int(lookup))
        told.setdefault(name, set()).add(explained.sizes)
        assert (explained.advice or "").startswith(PADDED.get(name, "Call it once with "))
        assert "on each side of that condition" in (explained.advice or "")
    assert told.keys() == TOLD.keys()
    for name, (size, needs, code) in TOLD.items():
        (line,) = (at for at, text in enumerate(_PROGRAM, 1) if text.strip() == f"{code}:")
        begin = f"{size}; the stored entry needs {needs}, from "
        # torch 2.6 does not write the text of lines.
        line_of = f"guard_programs.py:{line}"
        assert told[name] in ({f"{begin}`{code}` at {line_of}"}, {begin + line_of})


def check_counted(recorded: Recorded) -> None:
    """Torch counted misses where the guards fail, and none where the advice was followed."""
    # There each number of the program, a symbol in the graph, makes another key of AOTAutograd; that of FX is one.
    is_2_15 = str(recorded.scope.runs["torch_version"].iloc[0]).startswith("2.15")
    for name in TOLD:
        second, both = recorded.facts["second"][name], recorded.facts["both"][name]
        # torch 2.6 looks its FX graph up for AOTAutograd's entry, and again to compile it.
        assert second["autograd_cache_miss"] == 1 and second["fxgraph_cache_miss"] >= 1
        assert both["fxgraph_cache_hit"] == 1 and "fxgraph_cache_miss" not in both
        assert both.get("autograd_cache_miss", 0) == (is_2_15 and name == "number")


CHECKS = (check_told, check_counted)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_guard_misses_are_told_in_full(check: Any, recorded: Recorded) -> None:
    check(recorded)


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_the_list_of_causes_tells_it_as_well(version: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, "dynamic_guards") / "trace")
    (card,) = Cards.of(Chosen(scope)).cards
    assert card.guards is not None
    assert card.guards.text.startswith("x.size(0) is 5; the stored entry needs 11 or more, from ")
    assert card.guards.text.endswith("record_programs.py:85")


@pytest.mark.slow
def test_a_trace_that_is_not_there_any_more_tells_no_line(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded.folder / "trace", tmp_path / "trace")
    scope = cachescope.read(tmp_path / "trace")
    misses = scope.misses[scope.misses["verdict"] == "guard_failed"]
    # That of the process that stored the entries.
    Path(scope.runs["source"].iloc[0]).unlink()
    for lookup in misses["lookup"]:
        sizes = scope.explain(int(lookup)).sizes
        assert sizes is None or (" is " in sizes and ", from " not in sizes)


def test_large_traces_are_read_when_asked_for(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.answers.cards.MOST_BYTES_READ_AGAIN", 10)
    monkeypatch.setattr("cachescope.answers.summary.MOST_BYTES_READ_AGAIN", 10)
    scope = cachescope.read(recorded.folder / "trace")
    assert all(card.guards is None for card in Cards.of(Chosen(scope)).cards)
    (lookup, *_) = scope.misses[scope.misses["verdict"] == "guard_failed"]["lookup"]
    assert scope.explain(int(lookup)).sizes is not None
    # Of what was read there, or of all compiles, nothing is read again.
    assert any(card.guards is not None for card in Cards.of(Chosen(scope)).cards)


@pytest.mark.slow
def test_a_saved_scope_tells_it_without_its_traces(recorded: Recorded, tmp_path: Path) -> None:
    recorded.scope.save(tmp_path / "saved")
    saved = cachescope.read(tmp_path / "saved")
    for lookup in saved.misses[saved.misses["verdict"] == "guard_failed"]["lookup"]:
        assert saved.explain(int(lookup)).sizes == recorded.scope.explain(int(lookup)).sizes is not None


@pytest.mark.models
@pytest.mark.torch
def test_the_advice_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are warm: the check above. Padded: another run, of the entries that the first one stored."""
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import guards as record_into

    (folder := tmp_path / "run").mkdir()
    recorded = of_folder(record_into(folder))
    for check in CHECKS:
        check(recorded)
    (padded := tmp_path / "padded").mkdir()
    counted = of_folder(record_into(padded, steps=("first", "padded"))).facts["padded"]
    assert counted.keys() == PADDED.keys()
    assert all(i.get("autograd_cache_hit") == 1 and "fxgraph_cache_miss" not in i for i in counted.values())
