"""What a number or the beginning of a key names: frames in, a lookup or a set of hash details out; made by hand."""

import pytest

from cachescope.analysis.resolve_name import baseline_choice, detail_set_of, full_key, lookup_named
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.errors import NotFoundError
from tests.made import CODE, entry, fx, run, scope_of

G = {"gm": CODE}
OF_FIRST = [("fabc1", outcome, G) for outcome in ("full_miss", "guard_miss", "hit")]
LOOKUPS = [*OF_FIRST, ("fabd2", "hit", G), ("fxyz3", "full_miss", None)]
SCOPE = scope_of(
    run(*(fx(*told, at=at, compile_id=f"{at}/0") for at, told in enumerate(LOOKUPS))),
    entries=[entry("fxgraph", "fent4", {**G, "x": "1"}), entry("code", "cabc1")],
)


@pytest.mark.parametrize(
    ("named", "lookup"), [("fabc1", 1), ("fabc", 1), ("fabd", 3), ("fx", 4), (0, 0), ("2", 2), (4, 4)]
)
def test_the_last_miss_of_a_key_or_a_number(named: int | str, lookup: int) -> None:
    assert repr(SCOPE.explain(named)).startswith(f"lookup {lookup}, run 0 ")


@pytest.mark.parametrize(("named", "said"), [
    ("fab", "fab"), ("fnothing", "fnothing"), ("", ""), (9, "no lookup 9; there are 5"),
    ("fent", "no lookup of it was recorded"),
])  # fmt: skip
def test_what_is_nothing_or_several_is_said(named: int | str, said: str) -> None:
    with pytest.raises(NotFoundError) as error:
        SCOPE.explain(named)
    assert said in str(error.value)


def test_hash_details_by_key_and_by_lookup() -> None:
    assert SCOPE.hash_details("fent4")["field"].tolist() == ["gm", "x"]
    assert SCOPE.hash_details("fabc1").equals(SCOPE.hash_details(lookup=3))
    for asked in ({"cache_key": "fxyz3"}, {"lookup": 4}, {"lookup": 77}):
        with pytest.raises(NotFoundError):
            SCOPE.hash_details(**asked)
    for wrong in ({}, {"cache_key": "fabc1", "lookup": 0}):
        with pytest.raises(TypeError):
            SCOPE.hash_details(**wrong)


@pytest.mark.parametrize(("baseline", "wanted"), [
    ("auto", Choice("auto")), ("nearest", Choice("nearest")), (0, Choice("run", run=0)),
    ("0", Choice("run", run=0)), ("fxyz", Choice("key", cache_key="fxyz3")),
    ("fent", Choice("key", cache_key="fent4")),
])  # fmt: skip
def test_what_a_baseline_may_be(baseline: str | int, wanted: Choice) -> None:
    assert baseline_choice(SCOPE.tables, baseline) == wanted


LISTED = "a baseline is auto, nearest, the number of a run"


@pytest.mark.parametrize(("runs", "baseline", "said"), [
    (1, 1, f"no run 1; {LISTED} (0), or"),
    (1, "1", f"no run 1; {LISTED} (0), or"),
    (2, 2, f"no run 2; {LISTED} (0 to 1), or"),
    (0, 0, f"no run 0; {LISTED} (none was read), or"),
    (1, -1, "no run -1; "),
    (1, "neares", f"no baseline 'neares'; near it: nearest; {LISTED}"),
    (1, "fnothing", f"no baseline 'fnothing'; {LISTED}"),
    # Too many digits for a number.
    (1, "1" * 19, f"no baseline '{'1' * 19}'; {LISTED}"),
    (1, "1" * 18, f"no run {'1' * 18}; "),
])  # fmt: skip
def test_a_baseline_that_is_not_there(runs: int, baseline: str | int, said: str) -> None:
    scope = scope_of(*(run(fx(f"f{n}", details=G, at=n)) for n in range(runs)))
    with pytest.raises(NotFoundError) as error:
        baseline_choice(scope.tables, baseline)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(("start", "wanted"), [
    ("fabc", "fabc1"), ("fent", "fent4"), ("cabc", "no key 'cabc' in what was read"),
    ("", "no key '' in what was read"), ("fab", "'fab' begins 2 keys: fabc1, fabd2"),
])  # fmt: skip
def test_the_whole_of_a_key(start: str, wanted: str) -> None:
    try:
        found = full_key(SCOPE.tables, start)
    except NotFoundError as error:
        found = str(error)
    assert found == wanted


def test_of_many_keys_four_are_named_by_their_beginning() -> None:
    scope = scope_of(run(*(fx(f"f{n}{'x' * 20}", details=G, at=n) for n in range(6))))
    with pytest.raises(NotFoundError) as error:
        full_key(scope.tables, "f")
    named = ", ".join(f"f{n}xxxxxxxxxx" for n in range(4))
    assert str(error.value) == f"'f' begins 6 keys: {named}"


@pytest.mark.parametrize(("lookups", "number"), [
    (["full_miss", "guard_miss", "hit", "hit"], 1),
    (["hit", "hit"], 1),
    (["hit", "unknown", "hit"], 1),
    (["full_miss"], 0),
])  # fmt: skip
def test_the_last_miss_of_a_key_else_its_last_lookup(lookups: list[str], number: int) -> None:
    made = [fx("f1", outcome, G, at=at, compile_id=f"{at}/0") for at, outcome in enumerate(lookups)]
    scope = scope_of(run(*made))
    assert lookup_named(scope.tables, "f1") == lookup_named(scope.tables, str(number)) == number


def test_the_details_of_a_key_are_those_of_its_lookup_that_has_some() -> None:
    scope = scope_of(
        run(fx("f1", details=None, at=0, is_details_cut=True), fx("f2", details=G, at=1, compile_id="1/0")),
        entries=[entry("fxgraph", "f1", {"x": "9"}), entry("fxgraph", "f2", {"x": "8"})],
    )
    assert detail_set_of(scope.tables, "f2", None) == detail_set_of(scope.tables, None, 1)
    sets = [detail_set_of(scope.tables, key, None) for key in ("f2", "f1")]
    assert scope.tables.hash_details.changed_fields(*sets)
    for asked in ((None, None), ("f1", 0)):
        with pytest.raises(TypeError):
            detail_set_of(scope.tables, *asked)
