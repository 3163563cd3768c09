"""What a page needs for a replay of its own: a small history in, its fields, forms and numbers out; made by hand."""

from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.keys.key_schema import VERSION_FIELD
from tests.analysis.what_if.test_made_histories import G, here
from tests.made import Details, aot, fx, run, scope_of

FUSES = "inductor_config[epilogue_fusion]"
OLD = "{'device': {'name': 'cpu'}, 'runtime': {'cuda': '12.4'}, 'version': {'triton': '3.1'}}"
NEW = OLD.replace("12.4", "12.6").replace("3.1", "3.2")


def forms(*details: Details) -> dict[str, tuple[tuple[str, ...], int]]:
    runs = [
        here(fx(f"f{at}", details={**G, **told}, at=10 * at, took=1.0)) for at, told in enumerate(details)
    ]
    codes = ReplayCodes.of(scope_of(*runs).replay)
    return {form.name: (tuple(codes.fields[at] for at in form.fields), form.part) for form in codes.forms}


def test_a_form_has_its_varying_fields_and_no_part() -> None:
    assert forms({FUSES: "True"}, {FUSES: "False"}) == {"inductor_configs": ((FUSES,), 0)}
    # What varies in no form makes none.
    assert forms({"x": "1"}, {"x": "2"}) == forms({FUSES: "True"}, {FUSES: "True"}) == {}


def test_the_shared_field_has_values_without_the_parts_of_any_of_its_forms_but_all() -> None:
    details = ({**G, VERSION_FIELD: version} for version in (OLD, NEW))
    runs = [here(fx(f"f{at}", details=told, at=10 * at, took=1.0)) for at, told in enumerate(details)]
    codes = ReplayCodes.of(scope_of(*runs).replay)
    parts = [form.part for form in codes.forms if form.part]
    assert codes.parted is not None
    assert codes.fields[codes.parted.field] == VERSION_FIELD
    assert sorted(codes.parted.values) == list(range(1, sum(parts)))


def test_forms_that_share_a_field_have_a_bit_each() -> None:
    found = forms({FUSES: "True", VERSION_FIELD: OLD}, {FUSES: "False", VERSION_FIELD: NEW})
    assert found.pop("inductor_configs") == ((FUSES,), 0)
    assert {fields for fields, _ in found.values()} == {()}
    assert sorted(part for _, part in found.values()) == [1 << at for at in range(len(found))]
    assert len(found) > 1


def test_misses_have_their_aotautograd_lookup_and_when_they_stored() -> None:
    scope = scope_of(
        here(aot("a1", details=G, at=0), fx("f1", details=G, at=1, took=2.0)),
        here(fx("f1", "hit", details=G, at=10)),
        here(fx("f2", details={**G, "x": "2"}, at=20, took=3.0, save_error="OSError: full")),
        here(fx("f3", details=None, at=30, took=4.0)),
    )
    codes = ReplayCodes.of(scope.replay)
    misses = codes.misses
    assert misses.at == [0, 1, 3, 4]
    # A key without hash details can become equal to no other: it has no cell there.
    assert misses.cell == [0, 1, 2, -1]
    assert len(codes.cells.home) == 3
    assert misses.aot == [-1, 0, -1, -1]
    assert misses.is_open == [False, False, False, True]
    # By the position of the first lookup that could find it, the second of these misses.
    events = codes.events
    assert (events.at[1], events.cell[1], events.source[1], events.more[1]) == (2, 1, 1, 1)
    # What could not be saved is not there, nor what nobody can find under another key.
    assert events.source == [0, 1]


def test_values_are_numbered_within_a_cache_and_a_directory_the_most_frequent_first() -> None:
    made = [("/cache", 0, ("11", "21", "22")), ("/other", 10, ("11", "31"))]
    runs = []
    for cache_dir, start, keys in made:
        values = enumerate(keys, start)
        lookups = [fx(f"f{x}{y}", details={**G, "x": x, "y": y}, at=at, took=1.0) for at, (x, y) in values]
        runs.append(run(*lookups, cache_dir=cache_dir))
    codes = ReplayCodes.of(scope_of(*runs).replay)
    values = dict(zip(codes.fields, codes.values, strict=True))
    assert values == {"x": [1, 0, 0, 0, 1], "y": [0, 0, 1, 0, 0]}
    home = codes.cells.home
    assert home[0] == home[1] == home[2] != home[3] == home[4]
    assert codes.parted is None
