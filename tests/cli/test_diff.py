"""``cachescope diff``: runs, directories, keys and lookups."""

import re

import pytest

import cachescope
from cachescope.columns import records
from tests.cli.conftest import Run
from tests.conftest import Archive, Recording

pytestmark = pytest.mark.slow

FIELD = "inductor_config[epilogue_fusion]"


def test_two_logs_differ_in_one_field_of_both_caches(run: Run, recording: Recording) -> None:
    text = recording("2.13.0", "config_flip") / "text"
    paths = (text / "00_cold.log", text / "01_epilogue_fusion_off.log")
    assert f" {FIELD}  True -> False\n" in run("diff", *paths).out
    (difference,) = run("diff", *paths, "--json").json["differences"]
    assert difference["fields"] == [FIELD]
    assert [pair["after"]["cache"] for pair in difference["keys"]] == ["aotautograd", "fxgraph"]


@pytest.mark.parametrize(("sides", "recorded", "equal", "fields", "only_after"), [
    # Equal runs have equal keys.
    (("run:0", "run:2"), "config_flip/text", 2, [], []),
    # The changed graph is paired with the one that it replaced.
    (("run:0", "run:1"), "four_graphs", 6, [["gm"]], []),
    # A new graph is only after.
    (("run:0", "run:1"), "new_graph", 8, [], ["aotautograd", "fxgraph"]),
])  # fmt: skip
def test_what_is_equal_is_counted_and_what_is_not_is_told(
    sides: tuple[str, str], recorded: str, equal: int, fields: list[list[str]], only_after: list[str],
    run: Run, recording: Recording,
) -> None:  # fmt: skip
    name, _, kind = recorded.partition("/")
    printed = run("diff", *sides, recording("2.13.0", name) / kind, "--json").json
    assert (printed["equal"], printed["only_before"]) == (equal, [])
    assert [one["fields"] for one in printed["differences"]] == fields
    assert [row["cache"] for row in printed["only_after"]] == only_after
    paired = {pair["before"]["compile_id"] for one in printed["differences"] for pair in one["keys"]}
    assert paired == ({"1/0"} if fields else set())


def test_swapping_the_sides_swaps_the_values(run: Run, recording: Recording) -> None:
    text = recording("2.13.0", "combined") / "text"
    a, b = sorted(text.iterdir())
    there = run("diff", a, b, "--json").json["differences"]
    back = run("diff", b, a, "--json").json["differences"]
    for one, other in zip(there, back, strict=True):
        assert {(c["field"], c["before"], c["after"]) for c in one["changes"]} == {
            (c["field"], c["after"], c["before"]) for c in other["changes"]
        }


def test_two_keys_by_their_beginnings_and_two_lookups(run: Run, recording: Recording) -> None:
    flip = recording("2.13.0", "config_flip")
    for names in (("ft4g", "fhcz"), ("1", "3")):
        (difference,) = run("diff", *names, flip, "--json").json["differences"]
        assert difference["fields"] == [FIELD]


def test_two_cache_directories_without_logs(run: Run, recording: Recording) -> None:
    caches = (recording("2.13.0", "config_flip") / "cache", recording("2.13.0", "graph_relu_tanh") / "cache")
    printed = run("diff", *caches, "--json").json
    assert printed["equal"] == 2
    fx = next(d for d in printed["differences"] if d["keys"][0]["after"]["cache"] == "fxgraph")
    assert "gm" in fx["fields"]


def test_what_was_built_otherwise_under_equal_keys(run: Run, archive: Archive) -> None:
    built = archive("built/2.13.0") / "2.13.0"
    first, other = built / "first", built / "other_choice"
    text = run("diff", first, other).out
    assert "under equal keys, built differently: 1 choice of max-autotune" in text
    assert "packed_linear" in text and "→" in text
    text = run("diff", first, built / "again").out
    assert "under equal keys, built the same way: 2 graphs, 1 choice of max-autotune" in text
    rows = run("diff", first, other, "--json").json["built"]
    assert [row["name"] for row in rows if row["result"] == "choice"] == ["packed_linear"]


def test_a_directory_and_a_run_tell_which_entries_that_run_would_find(run: Run, recording: Recording) -> None:
    flip = recording("2.13.0", "config_flip")
    flipped = flip / "text" / "01_epilogue_fusion_off.log"
    printed = run("diff", flip / "cache", flipped, "--json").json
    found = {row["cache_key"][:4]: (row["will_hit"], row["fields"]) for row in printed["predictions"]}
    assert found == {
        "ft4g": ("no", [FIELD]), "a4eo": ("no", [FIELD]), "fhcz": ("yes", []), "azfh": ("yes", []),
    }  # fmt: skip
    text = run("diff", flip / "cache", flipped).out
    assert text.startswith("4 entries: 2 would be found, 2 not, 0 unknown")


def test_two_snapshots_are_told_apart_down_to_the_field(run: Run, recording: Recording) -> None:
    contexts = recording("2.13.0", "isolation_context") / "contexts"
    both = (contexts / "base.json", contexts / "settings.json")
    printed = run("diff", *both, "--json").json
    found = cachescope.read(*both).context_difference(0, 1)
    assert printed["context_difference"] == records(found) and len(found) == 3
    assert re.search(r"inductor_configs +deterministic +false +true\n", run("diff", *both).out)


def test_a_bare_context_says_nothing_about_entries(run: Run, recording: Recording) -> None:
    flip = recording("2.13.0", "config_flip")
    context = recording("2.13.0", "isolation_context") / "contexts" / "base.json"
    printed = run("diff", flip / "cache", context, "--json").json
    assert {row["will_hit"] for row in printed["predictions"]} == {"unknown"}
