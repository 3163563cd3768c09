"""With what a missed key is compared: small histories in, the baseline and what differs out; made by hand.

Only what the frames say counts: which lookup or entry it is, the fields that differ, and how that is known.
"""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.frames.directory_rows import EntryRow
from tests.made import CODE, Details, Made, Run, aot, entry, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1", "y": "1", "z": "1"}
OTHER = "def forward(self, y):\n    return (torch.fft.fft(torch.angle(y)).diff().cumsum(0),)"
THIRD = "def forward(self, w):\n    c = w.sort()\n    d = c.unique()\n    return (d, c)"
HERE = {"cache_dir": "/cache"}
BACKWARD = {"fx_kwargs[is_backward]": "True", "fx_kwargs[is_inference]": "False"}
SYMBOLIC = "TensorMetadata(dtype=torch.float32, shape=torch.Size([s77, 8]), stride=(8, 1), device=device(type='cpu'))"


def one(key: str, at: float, compile_id: str = "0/0", /, **changed: Any) -> Made:
    """A miss of a key whose details are those of G but for some."""
    told = {name: changed.pop(name) for name in ("took", "outcome", "function") if name in changed}
    outcome = told.pop("outcome", "full_miss")
    return fx(key, outcome, {**G, **changed}, at=at, **{"took": 1.0, "compile_id": compile_id, **told})


def here(*lookups: Made, **told: Any) -> Run:
    return run(*lookups, **HERE, **told)


def last(*runs: Run, entries: tuple[tuple[EntryRow, Details | None], ...] = ()) -> dict[str, Any]:
    return miss_rows(scope_of(*runs, entries=entries))[-1]


def compared(row: dict[str, Any]) -> tuple[str, Any, tuple[str, ...], str]:
    return row["verdict"], row["baseline_lookup"], tuple(sorted(row["changed"])), row["evidence"]


NEW = ("first_lookup", None, (), "inferred")


@pytest.mark.parametrize(
    ("lookups", "wanted"),
    [
        # torch counts the compiles of one function in one process.
        ([one("f1", 0, "0/0"), one("f2", 9, "0/1", gm=OTHER)], ("key_changed", 0, ("gm",), "recorded")),
        ([one("f1", 0, "0/0"), one("f2", 9, "1/0", gm=OTHER)], NEW),
        ([one("f1", 0, "0/0"), one("f2", 9, "1/1", gm=OTHER)], NEW),
        ([one("f1", 0, "0/1"), one("f2", 9, "0/0", gm=OTHER)], NEW),
        ([one("f1", 0, "0/1"), one("f2", 9, "0/1", gm=OTHER)], NEW),
        ([one("f1", 0, "0/0", **BACKWARD), one("f2", 9, "0/1", gm=OTHER)], NEW),
        ([one("f1", 0, "0/0"), one("f2", 9, "0/1", gm=OTHER, **BACKWARD)], NEW),
        ([one("f1", 0, "0/0", **BACKWARD), one("f2", 9, "0/1", gm=OTHER, **BACKWARD)], ("key_changed", 0, ("gm",), "recorded")),
        # The nearest of them, and the latest of those that are as near.
        ([one("f1", 0, "0/0", gm=THIRD), one("f2", 5, "0/1", x="2", y="2"), one("f3", 9, "0/2", gm=OTHER)], ("key_changed", 0, ("gm",), "recorded")),
        ([one("f1", 0, "0/0", gm=THIRD, x="2"), one("f2", 5, "0/1"), one("f3", 9, "0/2", gm=OTHER)], ("key_changed", 1, ("gm",), "recorded")),
        ([one("f1", 0, "0/0", gm=THIRD), one("f2", 5, "0/1"), one("f3", 9, "0/2", gm=OTHER)], ("key_changed", 1, ("gm",), "recorded")),
        # After a reset compile ids mean other functions.
        ([one("f1", 0, "0/3"), one("f2", 5, "0/0", gm=THIRD, x="2"), one("f3", 9, "0/1", gm=OTHER)], ("key_changed", 1, ("gm", "x"), "recorded")),
        ([one("f1", 0, "0/0"), one("f2", 4, "0/3", x="2"), one("f3", 5, "0/1", gm=THIRD, x="2", y="2"), one("f4", 9, "0/2", gm=OTHER)], ("key_changed", 2, ("gm", "x", "y"), "recorded")),
        ([fx("f1", details=G, at=0, compile_id=None), fx("f2", details={**G, "gm": OTHER}, at=9, compile_id=None)], NEW),
    ],
)  # fmt: skip
def test_compiled_again_in_one_process(lookups: list[Made], wanted: tuple[Any, ...]) -> None:
    row = last(here(*lookups))
    assert compared(row) == wanted
    if wanted is not NEW:
        assert row["reason"].startswith("compiled again in one process, after compile 0/")


def test_another_process_is_no_earlier_compile() -> None:
    row = last(here(one("f1", 0, "0/0")), here(one("f2", 9, "0/1", gm=OTHER)))
    assert row["verdict"] == "first_lookup"


RANKED = "inductor_config[local_rank]"


def ranks(before: str, after: str, field: str = "path", of: tuple[int | None, int | None] = (0, 1)) -> str:
    """The evidence of the second of two ranks that compile at once; their keys differ in one field."""
    first = here(one("f1", 0, took=50.0, **{field: before}), rank=of[0])
    row = last(first, here(one("f2", 1, **{field: after}), rank=of[1]))
    return "rank" if "by their rank alone" in str(row["evidence_text"]) else str(row["verdict"])


@pytest.mark.parametrize(
    ("before", "after", "field", "of", "wanted"),
    [
        ("/tmp/rank_0/x", "/tmp/rank_1/x", "path", (0, 1), "rank"),
        ("/tmp/rank_0/x", "/tmp/rank_1/x", "path", (None, None), "rank"),
        ("/tmp/rank_0/x", "/tmp/rank_1/x", "path", (0, None), "rank"),
        ("/tmp/rank_3/x", "/tmp/rank_7/x", "path", (3, 7), "rank"),
        # By another number than the rank, or by a word.
        ("/tmp/rank_0/x", "/tmp/rank_2/x", "path", (0, 1), "first_lookup"),
        ("/tmp/rank_1/x", "/tmp/rank_0/x", "path", (0, 1), "first_lookup"),
        ("/tmp/rank_a/x", "/tmp/rank_b/x", "path", (0, 1), "first_lookup"),
        ("/tmp/0_0/x", "/tmp/1_1/x", "path", (0, 1), "rank"),
        ("/tmp/0_0/x", "/tmp/1_2/x", "path", (0, 1), "first_lookup"),
        ("/tmp/5_0/x", "/tmp/5_1/x", "path", (0, 1), "rank"),
        # Of a bare number the field must say what it counts.
        ("0", "1", "path", (0, 1), "first_lookup"),
        ("0", "1", RANKED, (0, 1), "rank"),
        ("0", "1", "default_cuda_device_index", (0, 1), "rank"),
        ("0", "1", "ranking", (0, 1), "first_lookup"),
    ],
)
def test_keys_of_ranks_that_differ_by_their_rank(
    before: str, after: str, field: str, of: tuple[int | None, int | None], wanted: str
) -> None:
    assert ranks(before, after, field, of) == wanted


TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 8]), stride=(8, 1), device=device(type='cuda', index={}))"


def test_inputs_of_ranks_are_on_devices_of_their_own() -> None:
    name = "example_inputs[0]"
    assert ranks(TENSOR.format(0), TENSOR.format(1), name) == "rank"
    assert ranks(TENSOR.format(0), TENSOR.format(3), name) == "rank"
    assert ranks(TENSOR.format(0), TENSOR.format(1).replace("[8, 8]", "[9, 8]"), name) == "first_lookup"
    assert ranks(TENSOR.format(0), TENSOR.format(0).replace("[8, 8]", "[9, 8]"), name) == "first_lookup"


def test_ranks_that_do_not_run_at_once_are_compared_as_any_others() -> None:
    row = last(here(one("f1", 0, x="/rank_0")), here(one("f2", 9, x="/rank_1")))
    assert compared(row) == ("key_changed", 0, ("x",), "recorded")
    # A field that is on one side alone is no rank.
    row = last(here(one("f1", 0, took=50.0), rank=0), here(one("f2", 1, new="/rank_1"), rank=1))
    assert row["verdict"] == "first_lookup"


@pytest.mark.parametrize(
    ("runs", "entries", "wanted"),
    [
        # The same place in the run before, whichever other run is nearer.
        (
            [here(one("f1", 0)), here(one("f2", 5, x="2", y="2")), here(one("f3", 9, x="3"))],
            (),
            ("key_changed", 0, ("x",)),
        ),
        ([here(one("f1", 0, x="2")), here(one("f2", 5, y="2")), here(one("f3", 9))], (), ("key_changed", 1, ("y",))),
        ([here(one("f1", 0, x="2")), here(one("f2", 5, x="3")), here(one("f3", 9))], (), ("key_changed", 1, ("x",))),
        # Of the same rank, if there is one.
        (
            [here(one("f1", 0, x="2"), rank=1), here(one("f2", 5, x="3"), rank=0), here(one("f3", 9), rank=1)],
            (),
            ("key_changed", 0, ("x",)),
        ),
        # Without the run that is still compiling.
        ([here(one("f1", 0, x="2")), here(one("f2", 5, y="2", took=50.0)), here(one("f3", 9))], (), ("key_changed", 0, ("x",))),
        # In another place, or another direction.
        ([here(one("f1", 0, "3/0")), here(one("f2", 9, x="2"))], (), ("key_changed", 0, ("x",))),
        ([here(one("f1", 0, **BACKWARD)), here(one("f2", 9, x="2"))], (), ("first_lookup", None, ())),
        ([here(aot("a1", details=G, at=0)), here(one("f2", 9, x="2"))], (), ("first_lookup", None, ())),
        # Entries that were there before.
        ([here(one("f2", 9, x="2"))], (entry("fxgraph", "f1", G, at=5),), ("key_changed", None, ("x",))),
        ([here(one("f2", 9, x="2"))], (entry("fxgraph", "f1", G, at=50),), ("first_lookup", None, ())),
        ([here(one("f2", 9, x="2"))], (entry("aotautograd", "a1", G, at=5),), ("first_lookup", None, ())),
        (
            [here(one("f2", 9, x="2", y="2"))],
            (entry("fxgraph", "f1", G, at=5), entry("fxgraph", "f3", {**G, "x": "2"}, at=4)),
            ("key_changed", None, ("y",)),
        ),
        # A hit is as good as a miss.
        ([here(fx("f1", "hit", G, at=0)), here(one("f2", 9, x="2"))], (), ("key_changed", 0, ("x",))),
    ],
)  # fmt: skip
def test_the_key_that_it_is_compared_with(
    runs: list[Run], entries: tuple[tuple[EntryRow, Details | None], ...], wanted: tuple[Any, ...]
) -> None:
    row = last(*runs, entries=entries)
    assert (row["verdict"], row["baseline_lookup"], tuple(sorted(row["changed"]))) == wanted


def test_another_call_of_an_equal_graph_is_no_earlier_form() -> None:
    """Of two calls in one run on other inputs, neither has changed into the other."""
    inputs = {"example_inputs[0]": "a"}
    row = last(here(one("f1", 0, "0/0", **inputs), one("f2", 9, "1/0", **{"example_inputs[0]": "b"})))
    assert row["verdict"] == "first_lookup"
    row = last(here(one("f1", 0, "0/0", **inputs), one("f2", 9, "0/1", **{"example_inputs[0]": "b"})))
    assert compared(row) == ("key_changed", 0, ("example_inputs[0]",), "recorded")
    row = last(here(one("f1", 0, "0/0", **inputs), one("f2", 9, "1/0", x="2", **{"example_inputs[0]": "b"})))
    assert row["verdict"] == "key_changed"


def guarded(*runs: Run, entries: tuple[tuple[EntryRow, Details | None], ...] = ()) -> list[str]:
    scope = scope_of(*runs, entries=entries)
    return [str(row["verdict"]) for row in miss_rows(scope)]


def test_a_miss_of_a_stored_key_with_symbolic_sizes_is_one_of_its_guards() -> None:
    """Text logs name no guard miss: the key had been stored, and nothing else explains it."""
    sized = {"example_inputs[0]": SYMBOLIC}

    def missed(at: float, **told: Any) -> Run:
        details = told.pop("details", {**G, **sized})
        return here(
            fx(
                told.pop("key", "f1"),
                told.pop("outcome", "full_miss"),
                details,
                at=at,
                **{"took": 1.0, "entry_path": "/cache/fxgraph/1/f1/e", **told},
            )
        )

    assert guarded(missed(0), missed(9)) == ["first_lookup", "guard_failed"]
    assert guarded(missed(0), missed(9, status_detailed="miss"))[1] == "entry_unavailable"
    assert guarded(missed(0), missed(9, load_error="EOFError: no"))[1] == "entry_unavailable"
    assert guarded(missed(0, details=G), missed(9, details=G))[1] == "entry_unavailable"
    assert guarded(missed(0, details=None), missed(9, details=None))[1] == "entry_unavailable"
    assert (
        guarded(missed(0, save_error="OSError: full", entry_path=None), missed(9))[1] == "entry_unavailable"
    )
    # Where the directory was read, it has an entry for each of several guards.
    single = entry("fxgraph", "f1", {**G, **sized}, at=10, guards_expr="s77 > 4")
    other = entry("fxgraph", "f1", {**G, **sized}, at=11, guards_expr="s77 < 4", name="other")
    same = entry("fxgraph", "f1", {**G, **sized}, at=11, guards_expr="s77 > 4", name="other")
    torn = entry(
        "fxgraph", "f1", at=11, guards_expr="s77 < 4", name="other", status="damaged", damage="truncated"
    )
    shut = entry("fxgraph", "f1", at=11, name="other", status="unreadable")
    assert guarded(missed(0), missed(9), entries=(single, other))[1] == "guard_failed"
    assert guarded(missed(0), missed(9), entries=(single,))[1] == "entry_unavailable"
    assert guarded(missed(0), missed(9), entries=(single, same))[1] == "entry_unavailable"
    assert guarded(missed(0), missed(9), entries=(single, torn))[1] == "entry_unavailable"
    assert guarded(missed(0), missed(9), entries=(single, shut))[1] == "guard_failed"
    # Nothing is said of a key that no miss had stored.
    assert guarded(missed(9), entries=(single, other))[0] != "guard_failed"


def test_the_guards_of_graphs_are_those_of_the_autograd_entry() -> None:
    sized = {**G, "example_inputs[0]": SYMBOLIC}

    def compiled(at: float, **told: Any) -> Run:
        graph = fx("f1", "full_miss", sized, at=at + 1, **{"took": 1.0, **told})
        return here(aot("a1", details=G, at=at, entry_path="/cache/aotautograd/a1/e"), graph)

    stored = {"entry_path": "/cache/fxgraph/1/f1/e"}
    found = guarded(compiled(0, **stored), compiled(20, **stored))
    assert found[2:] == ["guard_failed", "guard_failed"]
    found = guarded(compiled(0, **stored), compiled(20, **stored, status_detailed="miss"))
    assert "guard_failed" not in found
