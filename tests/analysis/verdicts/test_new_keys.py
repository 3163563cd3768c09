"""Keys that were never seen: upgrades, edits, what is not recorded and what is not known; small histories made by hand."""

import re
from dataclasses import replace
from typing import Any

import pytest

from cachescope.analysis.differences import changed_besides
from cachescope.analysis.verdicts.baselines import Choice
from cachescope.analysis.verdicts.judging import judged
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.detail_hash import detail_hash
from cachescope.verdict_kinds import ELSEWHERE, OTHER_KEY
from tests.analysis.plain_rows import TEMPLATE, history_of, run_row
from tests.made import CODE, Details, Made, Run, aot, component, entry, fx, miss_rows, run, scope_of

G: Details = {"gm": CODE, "x": "1", "torch_version": "b'one'"}
HERE = {"cache_dir": "/cache"}
NAMED = {"function": "f", "file": "a.py"}


def key(name: str, at: float | None, details: Details | None = G, **told: Any) -> Made:
    return fx(f"f{name}", details=details, at=at, **{"took": 1.0, **NAMED, **told})


def last(*runs: Run, **told: Any) -> dict[str, Any]:
    return miss_rows(scope_of(*runs, **told))[-1]


UPGRADED: Details = {**G, "torch_version": "b'two'", "x": "2", "new": "1"}


@pytest.mark.parametrize(("before", "after", "kind"), [
    (("2.10.0", "3.11"), ("2.13.0", "3.11"), "torch 2.10.0 -> 2.13.0"),
    (("2.10.0", "3.11"), ("2.13.0", "3.12"), "torch 2.10.0 -> 2.13.0, Python 3.11 -> 3.12"),
    (("2.10.0", None), ("2.13.0", "3.12"), "torch 2.10.0 -> 2.13.0"),
    (("2.13.0", "3.12"), ("2.10.0", "3.12"), "torch 2.13.0 -> 2.10.0"),
    (("2.13.0", None), ("2.13.0", None), "another build of torch 2.13.0, or files in it were edited"),
    ((None, None), ("2.13.0", None), "another torch -> 2.13.0"),
    (("2.13.0", None), (None, None), "another torch"),
    ((None, "3.11"), (None, "3.12"), "another torch, Python 3.11 -> 3.12"),
])  # fmt: skip
def test_another_torch(before: tuple[str | None, ...], after: tuple[str | None, ...], kind: str) -> None:
    names = ("torch_version", "python_version")
    before, after = ({**HERE, **dict(zip(names, side, strict=True))} for side in (before, after))
    row = last(run(key("1", 0), **before), run(key("2", 10, UPGRADED), **after))
    assert row["kind"] == f"upgrade: {kind}"
    assert row["reason"] == f"{kind}; 2 other fields of the key follow"
    # The version stands first, for the others follow from it.
    assert row["changed"][0] == "torch_version" and set(row["changed"]) == {"torch_version", "x", "new"}


def test_each_of_several_upgrades_is_named() -> None:
    """Also where the same fields changed with each of them."""
    versions = ("2.10.0", "2.12.0", "2.13.0")
    runs = [
        run(key(str(at), 10.0 * at, {**G, "torch_version": one, "x": one}), **HERE, torch_version=one)
        for at, one in enumerate(versions)
    ]
    kinds = ["torch 2.10.0 -> 2.12.0", "torch 2.12.0 -> 2.13.0"]
    assert [(row["kind"], row["reason"]) for row in miss_rows(scope_of(*runs))[1:]] == [
        (f"upgrade: {kind}", f"{kind}; 1 other field of the key follows") for kind in kinds
    ]


def test_an_entry_of_another_torch() -> None:
    stored = entry("fxgraph", "f1", G, at=5)
    row = last(run(key("2", 10, UPGRADED), **HERE, torch_version="2.13.0"), entries=[stored])
    assert (row["baseline"], row["kind"]) == ("entry 0", "upgrade: another torch -> 2.13.0")


EDITED: Details = {**G, "gm": CODE.replace("relu", "gelu")}


def test_the_same_edit_of_two_graphs_is_one_kind_and_another_edit_is_another() -> None:
    """Numbers that dynamo gives to variables make no difference."""

    def kind(before: str, after: str) -> str:
        runs = (run(key("1", 0, {**G, "gm": before}), **HERE), run(key("2", 10, {**G, "gm": after}), **HERE))
        row = last(*runs)
        assert (row["verdict"], row["changed"], row["evidence"]) == ("key_changed", ("gm",), "inferred")
        assert row["reason"].startswith("another form of the graph, and one field of the key differs: gm, ")
        said = r"both are of the function f of one file, and (\d+) % of their code is alike"
        share = re.search(said, row["evidence_text"])
        assert share is not None and 40 < int(share[1]) < 100
        return str(row["kind"])

    edited, other = CODE.replace("relu", "gelu"), CODE.replace("(self, x)", "(self, y)")
    assert re.fullmatch("edit [0-9a-f]{8}", kind(CODE, edited))
    assert kind(CODE, edited) == kind(other, other.replace("relu", "gelu"))
    assert kind(CODE, edited) != kind(edited, CODE)
    assert kind(CODE, edited) != kind(CODE, CODE.replace("relu", "silu"))
    numbered = CODE.replace("b = torch.relu(a)", "b_7 = torch.relu(a)")
    others = CODE.replace("b = torch.relu(a)", "b_9 = torch.relu(a)")
    assert kind(numbered, numbered.replace("relu", "gelu")) == kind(others, others.replace("relu", "gelu"))


@pytest.mark.parametrize("order", [("first", "other"), ("other", "first")])
def test_of_earlier_forms_that_differ_in_as_many_fields_the_most_alike_counts(order: tuple[str, str]) -> None:
    """As of an optimizer's step whose learning rate was another one in the run before."""
    forms = {"first": CODE, "other": CODE.replace("relu", "gelu")}
    runs = [run(key(name, 10.0 * at, {**G, "gm": forms[name]}), **HERE) for at, name in enumerate(order)]
    row = last(*runs, run(key("new", 30, {**G, "gm": CODE.replace("x, x", "x, 2.0"), "x": "2"}), **HERE))
    assert row["baseline"] == f"lookup {order.index('first')}" and set(row["changed"]) == {"gm", "x"}


UNNAMED: dict[str, Any] = {"function": None, "file": None}
X2 = {**G, "x": "2"}
NEW_GRAPH = {**G, "gm": "def forward(self, z):\n    return (torch.sort(torch.erf(z)),)"}


@pytest.mark.parametrize(("again", "evidence"), [(2, "inferred"), (1, "not_known"), (0, "not_known")])
def test_a_graph_that_the_run_has_as_often_as_before_was_not_replaced(again: int, evidence: str) -> None:
    """The same layer twice; then a graph like it, and the layer so many times: one of them may have been edited."""

    def layers(at: float, count: int, outcome: str) -> list[Made]:
        told = {**UNNAMED, "took": None, "outcome": outcome}
        return [key("1", at + n, compile_id=f"{n}/0", **told) for n in range(count)]

    before = run(*layers(0, 2, "full_miss"), **HERE)
    after = run(*layers(10, again, "hit"), key("2", 20, EDITED, compile_id="5/0", **UNNAMED), **HERE)
    row = last(before, after)
    assert (row["verdict"], row["evidence"]) == ("first_lookup", evidence)


def below_autograd(first: Details | None, second: Details | None, **told: Any) -> tuple[Run, Run]:
    """Two processes with another graph each, below AOTAutograd keys of these details."""
    before = run(aot("a1", details=first, at=0, **told), key("1", 1, **told), **HERE)
    return before, run(aot("a2", details=second, at=10, **told), key("2", 11, NEW_GRAPH, **told), **HERE)


@pytest.mark.parametrize(("runs", "verdict", "evidence", "text"), [
    ((run(key("1", 0, None, compile_id="0/0"), key("2", 5, None, compile_id="1/0")),), "first_lookup", "inferred",
     "no earlier run and no entry that was there before was read"),
    ((run(key("1", 0, None)), run(key("2", 5, None))), "details_not_recorded", "not_known",
     "torch did not record the hash details of this key"),
    ((run(key("1", 0, None)), run(key("2", 5, None, is_details_cut=True))), "details_not_recorded", "not_known",
     "lines of its hash details are missing from the log"),
    ((run(key("1", 0, None)), run(key("2", 5, X2))), "first_lookup", "not_known",
     "the hash details of earlier lookups were not recorded"),
    ((run(key("1", 0, None, compile_id="0/0"), key("2", 5, X2, compile_id="1/0")),), "first_lookup", "inferred",
     "no earlier lookup or entry that was read is of this graph"),
    ((run(key("1", 0, None, outcome="hit", took=None)), run(key("2", 5, X2))), "first_lookup", "inferred",
     "no earlier lookup or entry that was read is of this graph"),
    ((run(key("1", 0, X2)), run(key("2", 5, X2), key("3", 9, None, compile_id="1/0"))), "details_not_recorded",
     "not_known", "torch did not record the hash details of this key"),
    # It may have been killed: a text log shows no end either.
    ((run(key("1", 0, took=None), **HERE), run(key("2", 1, X2), **HERE)), "first_lookup", "not_known",
     "run 0 had begun to compile the same graph"),
    ((run(key("1", 0, **UNNAMED)), run(key("2", 10, EDITED, **UNNAMED))), "first_lookup", "not_known",
     "run 0 has a graph like it"),
    ((run(key("1", 0, **UNNAMED)), run(key("2", 10, EDITED, **UNNAMED))), "first_lookup", "not_known",
     "nothing names the functions"),
    (below_autograd(None, None, **UNNAMED), "first_lookup", "not_known", "the hash details of its AOTAutograd key"),
    # Where functions are named these tell, and so would the key above.
    (below_autograd(None, None), "first_lookup", "inferred", "of this graph"),
    (below_autograd(G, NEW_GRAPH, **UNNAMED), "first_lookup", "inferred", "of this graph"),
])  # fmt: skip
def test_what_was_not_recorded(runs: tuple[Run, ...], verdict: str, evidence: str, text: str) -> None:
    row = last(*runs)
    assert (row["verdict"], row["evidence"], row["changed"]) == (verdict, evidence, ())
    assert (row["kind"] == "not known") is (verdict == "first_lookup" and evidence == "not_known")
    assert text in row["evidence_text"]


@pytest.mark.parametrize(("details", "stored_at", "verdict", "evidence", "text"), [
    (X2, 5, "key_changed", "inferred", "by its time of modification the entry had been stored before"),
    # It may be an earlier form.
    (EDITED, 5, "first_lookup", "not_known", "the cache directory has a graph like it: "),
    (EDITED, 5, "first_lookup", "not_known", "an entry names no function"),
])  # fmt: skip
def test_of_an_entry_it_is_inferred_that_it_was_there(
    details: Details, stored_at: float | None, verdict: str, evidence: str, text: str
) -> None:
    row = last(run(key("2", 10, details), **HERE), entries=[entry("fxgraph", "f1", G, at=stored_at)])
    assert (row["verdict"], row["evidence"]) == (verdict, evidence)
    assert (row["kind"] == "not known") is (evidence == "not_known")
    assert text in row["evidence_text"]


@pytest.mark.parametrize(("stored", "reason", "text"), [
    (entry("fxgraph", "f1", G), "/cache holds a key of the same graph that differs in x", "nothing shows since when it is stored"),
    # A copy has the time of the copy; in the directory of the run that is when it was stored.
    (entry("fxgraph", "f1", G, at=99, root="/copy"), "/copy holds a key of the same graph that differs in x", "which has the time of the copy"),
    (entry("fxgraph", "f1", G, at=99), None, None),
])  # fmt: skip
def test_a_key_of_the_graph_that_may_have_been_there_is_a_doubt(
    stored: Any, reason: str | None, text: str | None
) -> None:
    row = last(run(key("2", 10, X2), **HERE), entries=[stored])
    if reason is None or text is None:
        assert row["kind"] == ""
        return
    assert (row["verdict"], row["kind"], row["evidence"]) == ("first_lookup", OTHER_KEY, "not_known")
    assert (row["reason"], text in row["evidence_text"]) == (reason, True)


@pytest.mark.parametrize(("written", "graph", "kind"), [
    (5, "full_miss", ELSEWHERE), (99, "full_miss", ""), (None, "full_miss", ""),
    # Its graph was found, which may be because the file was loaded.
    (5, "hit", "not known"),
])  # fmt: skip
def test_a_mega_cache_that_holds_the_missed_keys_is_a_doubt(
    written: float | None, graph: str, kind: str
) -> None:
    shipped = entry("mega_cache", "blob", at=written, root="/shipped", fx_keys=("f2",))
    made = run(aot("a2", details=G, at=10), key("2", 11, NEW_GRAPH, outcome=graph), **HERE)
    rows = miss_rows(scope_of(made, entries=[shipped]))
    assert {row["kind"] for row in rows} == {kind}
    assert all(("holds what was missed" in row["reason"]) is (kind == ELSEWHERE) for row in rows)


@pytest.mark.parametrize(("made", "wanted"), [
    (entry("fxgraph", "f9", at=1), "details_not_recorded"),
    (entry("fxgraph", "f2", at=11), "first_lookup"),
    (entry("aotautograd", "a9", at=1), "first_lookup"),
])  # fmt: skip
def test_a_directory_that_was_filled_before_is_no_cold_start(made: Any, wanted: str) -> None:
    """An entry that a recorded miss wrote itself proves nothing."""
    assert last(run(key("2", 10, None), **HERE), entries=[made])["verdict"] == wanted


def test_in_one_process_the_compile_before_is_named() -> None:
    recompiled = {**G, "example_inputs[0]": "Tensor(5)"}
    first = {**G, "example_inputs[0]": "Tensor(4)"}
    row = last(run(key("1", 0, first, compile_id="0/0"), key("2", 5, recompiled, compile_id="0/1")))
    assert row["reason"].startswith("compiled again in one process, after compile 0/0, and one field")
    assert row["evidence"] == "recorded"
    assert "torch's compile ids count" in row["evidence_text"]


INFERENCE = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "True"}
COLD, UNTOLD = "first_lookup", "details_not_recorded"


@pytest.mark.parametrize(("lookups", "wanted"), [
    # The backward graph of a compile has a key of its own.
    ([aot("a1", details=None, at=0), fx("f1", details=None, at=1), fx("f2", details=None, at=2)], COLD),
    ([fx("f1", details=None, at=1), fx("f2", details=None, at=2)], COLD),
    ([fx("f1", details=None, at=1), fx("f1", "unknown", None, at=2), fx("f2", details=None, at=3)], COLD),
    ([fx("f1", details=None, at=1), fx("f2", details=None, at=2, compile_id="1/0")], COLD),
    # Under another AOTAutograd lookup the compile ids have begun again.
    ([aot("a1", details=None, at=0), fx("f1", details=None, at=1),
      aot("a1", details=None, at=2), fx("f2", details=None, at=3)], UNTOLD),
    # An inference graph has no backward graph, and of one whose lines are lost it is not known.
    ([fx("f1", details={**G, **INFERENCE}, at=1), fx("f2", details=None, at=2)], UNTOLD),
    ([fx("f1", details={**G, **INFERENCE}, at=1), fx("f2", details=None, at=2, compile_id="1/0")], COLD),
    ([fx("f1", details=None, at=1, is_details_cut=True), fx("f2", details=None, at=2)], UNTOLD),
    ([aot("a1", details=None, at=0), aot("a2", details=None, at=1)], COLD),
    ([aot("a1", details=None, at=0, is_details_cut=True), aot("a2", details=None, at=1)], UNTOLD),
])  # fmt: skip
def test_a_compile_id_that_a_process_used_before_is_no_cold_start(lookups: list[Made], wanted: str) -> None:
    assert last(run(*lookups))["verdict"] == wanted


@pytest.mark.parametrize(("stored", "lookups", "wanted"), [
    ("f9", [], UNTOLD),
    ("f1", [key("1", 1, None)], COLD),
    ("f1", [key("1", 1, None, outcome="hit", took=None)], UNTOLD),
    # The first lookup of a key shows it: a later hit finds what it wrote.
    ("f1", [key("1", 1, None), key("1", 5, None, outcome="hit", took=None)], COLD),
])  # fmt: skip
def test_an_entry_that_no_miss_wrote_was_there_before(stored: str, lookups: list[Made], wanted: str) -> None:
    runs = run(*lookups, key("2", 10, None, compile_id="9/0"), **HERE)
    assert last(runs, entries=[entry("fxgraph", stored, at=3)])["verdict"] == wanted


@pytest.mark.parametrize(("earlier", "evidence"), [
    (fx("f1", details=None, at=0), "not_known"), (fx("f1", "guard_miss", None, at=0), "not_known"),
    (fx("f1", "unknown", None, at=0), "not_known"),
    # What hit was stored before and is of another graph; a bypass stores nothing.
    (fx("f1", "hit", None, at=0), "inferred"), (fx(None, "bypass", None, at=0), "inferred"),
    (aot("a1", details=None, at=0), "inferred"), (fx("f1", details=None, at=20), "inferred"),
])  # fmt: skip
def test_an_earlier_miss_without_details_may_be_of_the_same_graph(earlier: Made, evidence: str) -> None:
    rows = miss_rows(scope_of(run(earlier), run(key("2", 10, X2))))
    cold = (one for one in rows if one["changed"] == () and one["verdict"] == COLD)
    (row,) = (one for one in cold if "graph" in one["reason"])
    assert row["evidence"] == evidence


DEFAULTED = "inductor_config[epilogue_fusion]"


def hashed(name: str, value: bool) -> str:
    return f"[{detail_hash(value)}] {name}: {value}"


@pytest.mark.parametrize(("values", "versions", "besides"), [
    ((True, False), ("2.10.0", "2.13.0"), (DEFAULTED,)),
    # It had been set before, or is at its default now, or has not changed.
    ((False, True), ("2.10.0", "2.13.0"), ()),
    ((True, True), ("2.10.0", "2.13.0"), ()),
    ((True, None), ("2.10.0", "2.13.0"), ()),
    ((None, False), ("2.10.0", "2.13.0"), ()),
    # Of a torch that is not known no default is.
    ((True, False), (None, "2.13.0"), ()),
    ((True, False), ("2.10.0", None), ()),
])  # fmt: skip
def test_what_was_set_besides_another_torch(
    values: tuple[bool | None, bool | None], versions: tuple[str | None, str | None], besides: tuple[str, ...]
) -> None:
    store = HashDetails()
    options = [[] if value is None else [hashed(DEFAULTED, value)] for value in values]
    before, after = (store.add([component("torch_version", f"b'{n}'"), *options[n]])[0] for n in (0, 1))
    assert before is not None and after is not None
    assert changed_besides(store, store.changes(before, after), *versions) == besides


def test_without_a_graph_twice_an_autograd_miss_is_of_a_new_key() -> None:
    """Two graphs below, or one that hit after it had missed."""
    first = fx("f1", details=G, at=1)
    for below in ([first, fx("f2", details=X2, at=2)], [first, fx("f1", "hit", G, at=2)]):
        (above, *_) = miss_rows(scope_of(run(aot("a1", details=G, at=0), *below)))
        assert above["verdict"] == "first_lookup"


FORWARD = {"fx_kwargs[is_backward]": "False", "fx_kwargs[is_inference]": "False"}
BACKWARD = {"fx_kwargs[is_backward]": "True", "fx_kwargs[is_inference]": "False"}


@pytest.mark.parametrize(("before", "below", "wanted"), [
    ([G], NEW_GRAPH, "lookup 1"),
    # The first with details in its direction.
    ([{**G, **BACKWARD}, {**G, **FORWARD}], {**NEW_GRAPH, **FORWARD}, "lookup 2"),
    ([{**G, **FORWARD}, {**G, **BACKWARD}], {**NEW_GRAPH, **FORWARD}, "lookup 1"),
    ([{**G, **BACKWARD}], {**NEW_GRAPH, **FORWARD}, None),
    ([None, G, X2], NEW_GRAPH, "lookup 2"),
    ([None], NEW_GRAPH, None),
    ([], NEW_GRAPH, None),
])  # fmt: skip
def test_a_graph_is_the_one_that_autograd_had_made_before_its_key_changed(
    before: list[Details | None], below: Details, wanted: str | None
) -> None:
    graphs = [fx(f"f{at}", details=one, at=at, took=1.0, **UNNAMED) for at, one in enumerate(before, 1)]
    first = run(aot("a1", details=G, at=0, **UNNAMED), *graphs, **HERE)
    now = aot("a2", details=X2, at=50, **UNNAMED), fx("f9", details=below, at=51, took=1.0, **UNNAMED)
    rows = miss_rows(scope_of(first, run(*now, **HERE)))
    assert rows[-2]["baseline"] == "lookup 0"
    assert rows[-1]["baseline"] == wanted
    # Where the key above is new, nothing tells.
    now = aot("a2", details=NEW_GRAPH, at=50, **UNNAMED), fx("f9", details=below, at=51, took=1.0, **UNNAMED)
    assert last(first, run(*now, **HERE))["baseline"] is None


def test_each_sentence_says_what_it_is_compared_with_though_one_value_changed_alike() -> None:
    """Of one value in one field: in another process, in the same process, and against an entry."""
    other, third = NEW_GRAPH, {**G, "gm": "def forward(self, w):\n    return (torch.special.i0(w),)"}
    scope = scope_of(
        run(key("1", 0), key("2", 5, other, compile_id="1/0"), **HERE),
        run(key("3", 10, X2), **HERE),
        run(key("4", 20, {**third, "x": "2"}, compile_id="5/0"), **HERE),
        run(
            key("5", 30, other, compile_id="1/0"), key("6", 35, {**other, "x": "2"}, compile_id="1/1"), **HERE
        ),
        entries=[entry("fxgraph", "f77", third, at=-50)],
    )
    rows = {row["lookup"]: row for row in miss_rows(scope)}
    same, again = "the same graph", "compiled again in one process, after compile 1/0"
    beginnings = {2: same, 3: same, 5: again}
    for lookup, beginning in beginnings.items():
        assert rows[lookup]["changed"] == ("x",)
        assert rows[lookup]["reason"] == f"{beginning}, and one field of the key differs: x, 1 -> 2"
    assert [rows[lookup]["evidence"] for lookup in beginnings] == ["recorded", "inferred", "recorded"]
    assert "time of modification" in rows[3]["evidence_text"]


def test_keys_that_differ_by_the_rank_say_so_though_an_entry_differs_alike() -> None:
    one, other = ({**G, "path": f"/rank{rank}"} for rank in (0, 1))
    scope = scope_of(
        run(key("1", 0, {**NEW_GRAPH, "path": "/rank1"}), **HERE),
        run(key("2", 20, one, took=50.0), **HERE, rank=0),
        run(key("3", 25, other), **HERE, rank=1),
        entries=[entry("fxgraph", "f77", {**NEW_GRAPH, "path": "/rank0"}, at=-50)],
    )
    texts = [row["evidence_text"] for row in miss_rows(scope) if row["changed"] == ("path",)]
    assert len(texts) == 2
    assert "time of modification" in texts[0] and "by their rank alone" in texts[1]


def looked_up(store: HashDetails, *sets: list[str]) -> list[LookupRow]:
    """Lookups of processes 0, 1, … 10 s apart."""
    found = []
    for at, components in enumerate(sets):
        details, _ = store.add(components)
        assert details is not None
        found.append(replace(TEMPLATE, lookup=at, run=at, time=10 * at, time_taken_ns=1, cache_key=f"f{at}",
                             detail_set=details, function="f", file="/a.py"))  # fmt: skip
    return found


def test_what_was_set_besides_an_upgrade_is_named() -> None:
    store = HashDetails()
    keys = ([component("gm", CODE), component("torch_version", f"b'{at}'")] for at in (0, 1))
    sets = [[*key, hashed(DEFAULTED, not at)] for at, key in enumerate(keys)]
    runs = [run_row(at, None, torch_version=version) for at, version in enumerate(("2.10.0", "2.13.0"))]
    misses, causes = judged(history_of(looked_up(store, *sets), store, runs=runs), Choice())
    reason = "torch 2.10.0 -> 2.13.0; 1 other field of the key follows"
    assert misses[1].why.reason == f"{reason}; also changed: {DEFAULTED}"
    assert causes[1].summary == "torch 2.10.0 -> 2.13.0; 1 fields follow"


def test_a_graph_whose_printed_code_is_equal_has_no_edit() -> None:
    """What it captured is another tensor: another hash of the same text."""
    store = HashDetails()
    captured = "[" + "a" * 51 + f"] gm: {CODE}"
    misses, _ = judged(history_of(looked_up(store, [component("gm", CODE)], [captured]), store), Choice())
    assert (misses[1].why.verdict, misses[1].why.changed, misses[1].why.kind) == ("key_changed", ("gm",), "")
    assert "the printed code is equal" in misses[1].why.reason


@pytest.mark.parametrize(("details", "at", "told", "kind"), [
    ({**G, "x": "2"}, 5.0, {}, "concurrent"),
    # The other compile had ended: it is compared with that.
    ({**G, "x": "2"}, 20.0, {}, None),
    # A hit compiles nothing, and is compared with.
    ({**G, "x": "2"}, 5.0, {"of_hit": True}, None),
    # Another graph, and another place of the program.
    ({**G, "gm": "another", "x": "2"}, 5.0, {}, ""),
    ({**G, "x": "2"}, 5.0, {"compile_id": "1/0"}, ""),
])  # fmt: skip
def test_a_first_lookup_beside_a_run_that_compiles_the_same_graph_under_another_key(
    details: Details, at: float, told: dict[str, Any], kind: str | None
) -> None:
    ends = {"outcome": "hit"} if told.pop("of_hit", False) else {}
    first = run(key("1", 0, took=10.0, **ends), **HERE)
    row = last(first, run(key("2", at, details, took=10.0, **told), **HERE))
    if kind is None:
        assert row["verdict"] == "key_changed"
        return
    assert (row["verdict"], row["kind"]) == ("first_lookup", kind)
    assert ("another key" in row["reason"]) == (kind == "concurrent")
