"""Whether a process would find an entry: entries and fields of a process in, a prediction out; made by hand.

tests/capture/test_preflight_against.py holds them against what processes of torch then found.
"""

from dataclasses import asdict, replace
from typing import Any

import pytest

from cachescope.analysis.contexts.prediction import predictions_of
from cachescope.analysis.contexts.process_fields import ProcessFields
from cachescope.details import HashDetails
from cachescope.keys.detail_hash import detail_hash
from cachescope.terms import AOT_SWITCH, WOULD_BYPASS
from tests.made import CODE, Details, Stored, aot, component, entry, fx, run, scope_of

OPTION, OTHER_OPTION = "inductor_config[epilogue_fusion]", "inductor_config[shape_padding]"
OWN: Details = {OPTION: "True", OTHER_OPTION: "True", "torch_version": "b'2.13'"}
OF_ENTRY: Details = {"gm": CODE, "example_inputs[0]": "Tensor(4)", **OWN, "pre_grad_custom_pass": "None"}


def of_process(fields: Details = OWN, **told: Any) -> ProcessFields:
    return ProcessFields({n: frozenset({component(n, text)[1:52]}) for n, text in fields.items()}, **told)


def predicted(process: ProcessFields, *entries: Stored, source: str = "") -> list[dict[str, Any]]:
    scope = scope_of(entries=entries)
    found = predictions_of(scope.tables.entries.rows, scope.tables.hash_details, process, lambda row: source)
    return [asdict(row) for row in found]


def graph(details: Details | None = OF_ENTRY, **told: Any) -> Stored:
    return entry("fxgraph", "f11", details, **told)


OTHER_TORCH = {**OWN, "torch_version": "b'2.14'"}
THREADS = "cpp_runtime_thread_count"
REMOTE = "redis://host/0/pt2:fx-graph-v1::f11:c1"
RENAMED = {"status": "damaged", "damage": "content hash differs from the name"}
UNREADABLE = {"status": "unreadable", "damage": "Permission denied"}
EQUAL, OFF = "every field of the process is equal", {"fxgraph": "it is off"}
LOADED_IF_IT_CAN = "renamed or altered, torch loads it if it can"

# An FX entry and a process: whether it would be found, the fields that differ, and part of the reason.
GRAPHS: dict[str, tuple[Stored, ProcessFields, tuple[str, tuple[str, ...], str]]] = {
    "all is equal": (graph(), of_process(), ("yes", (), EQUAL)),
    "a field of the process differs": (graph(), of_process(OTHER_TORCH), ("no", ("torch_version",), "torch_version differs")),
    "two fields differ": (graph(), of_process({**OTHER_TORCH, OPTION: "False"}), ("no", (OPTION, "torch_version"), f"{OPTION}, torch_version differ")),
    "the entry lacks a field": (graph(), of_process({**OWN, "new": "1"}), ("no", ("new",), "new differs")),
    "the process lacks a field": (graph({**OF_ENTRY, "new": "1"}), of_process(), ("no", ("new",), "new differs")),
    "the entry lacks what not every graph has": (graph(), of_process({**OWN, THREADS: "4"}), ("yes", (), EQUAL)),
    "the process lacks what not every graph has": (graph({**OF_ENTRY, THREADS: "4"}), of_process(), ("yes", (), EQUAL)),
    "what not every graph has differs": (graph({**OF_ENTRY, THREADS: "4"}), of_process({**OWN, THREADS: "8"}), ("no", (THREADS,), f"{THREADS} differs")),
    "four fields differ": (graph({**OF_ENTRY, **dict.fromkeys("abcd", "1")}), of_process(), ("no", ("a", "b", "c", "d"), "a, b, c and 1 more differ")),
    "it looked the key up": (graph(), of_process({"torch_version": "b'2.14'"}, keys=frozenset({("fxgraph", "f11")})), ("yes", (), "the process looked this very key up")),
    "it looked up a key of that name in the other cache": (graph(), of_process(OTHER_TORCH, keys=frozenset({("aotautograd", "f11")})), ("no", ("torch_version",), "torch_version differs")),
    "nothing is known of the process": (graph(), ProcessFields({}), ("unknown", (), "nothing is known of the fields of the process")),
    "the entry has no hash details": (graph(None), of_process(), ("unknown", (), "does not store its hash details")),
    "its cache is off": (graph(), of_process(off=OFF), ("no", (), "it is off")),
    "only its remote cache is off": (graph(), of_process(off_remotely=OFF), ("yes", (), EQUAL)),
    "the remote cache that it lies in is off": (graph(path=REMOTE), of_process(off_remotely=OFF), ("no", (), "it is off")),
    "it lies in a remote cache, and the local one is off": (graph(path=REMOTE), of_process(off=OFF), ("yes", (), EQUAL)),
    "another cache is off": (graph(), of_process(off={"aotautograd": "it is off"}), ("yes", (), EQUAL)),
    "it is damaged": (graph(status="damaged", damage="truncated at byte 3"), of_process(), ("no", (), "it is damaged: truncated at byte 3")),
    "it is temporary": (graph(status="temporary"), of_process(), ("no", (), "it is temporary: not an entry yet")),
    "it is not understood": (graph(status="damaged", damage="an unknown class"), of_process(),
        ("unknown", (), "it could not be read here: an unknown class")),
    "it may not be read": (graph(**UNREADABLE), of_process(), ("unknown", (), "it could not be read here: Permission denied")),
    "it may not be read, and its cache is off": (graph(**UNREADABLE), of_process(off=OFF), ("no", (), "it is off")),
    "it has another name than its content": (graph(**RENAMED), of_process(), ("unknown", (), LOADED_IF_IT_CAN)),
    "it has another name, and a field differs": (graph(**RENAMED), of_process(OTHER_TORCH), ("no", ("torch_version",), "torch_version differs")),
}  # fmt: skip


@pytest.mark.parametrize("case", GRAPHS)
def test_a_graph_entry(case: str) -> None:
    made, process, (will_hit, fields, reason) = GRAPHS[case]
    (row,) = predicted(process, made)
    assert (row["will_hit"], tuple(sorted(row["fields"]))) == (will_hit, tuple(sorted(fields)))
    assert reason in row["reason"]


def test_what_differs_in_one_entry_alone_may_be_an_option_of_its_compile() -> None:
    with_option = {**OF_ENTRY, "inductor_config[made_up]": "1"}
    process = of_process({**OWN, "inductor_config[made_up]": "2"})
    plain = entry("fxgraph", "f22", {**OF_ENTRY, "inductor_config[made_up]": "2"})
    first, second = predicted(process, graph(with_option), plain)
    assert (first["will_hit"], second["will_hit"]) == ("unknown", "yes")
    assert "an option or mode of this compile" in first["reason"]
    # What the whole process had set differs in every entry of its directory.
    assert predicted(process, graph(with_option))[0]["will_hit"] == "no"
    elsewhere = entry("fxgraph", "f22", plain[1], root="/other")
    assert predicted(process, graph(with_option), elsewhere)[0]["will_hit"] == "no"
    # A graph that the process looked up under another key was compiled with its own options.
    of_program = {name: OF_ENTRY[name] for name in ("gm", "example_inputs[0]")}
    program = frozenset((name, component(name, text)[1:52]) for name, text in of_program.items())
    looked_up = of_process({**OWN, "inductor_config[made_up]": "2"}, programs=frozenset({program}))
    looked, equal = predicted(looked_up, graph(with_option), plain)
    assert (looked["will_hit"], equal["will_hit"]) == ("no", "yes")
    assert looked["reason"].startswith("the process looked this graph up, and")


def autograd(*keys: str, details: Details | None = None, **told: Any) -> Stored:
    return entry("aotautograd", "a11", details, fx_keys=keys, **told)


DIFFERS = of_process(OTHER_TORCH)
LOOKED_UP = frozenset({("fxgraph", "f11")})
AOT_LOOKED_UP = of_process(keys=frozenset({("aotautograd", "a11")}))
BAD = graph(status="damaged", damage="truncated", name="bad")
IN_ITS_GRAPHS, GONE = "equal in its graphs", "the FX entry it points to is gone"

AUTOGRAD: dict[str, tuple[list[Stored], ProcessFields, tuple[str, str]]] = {
    "its graph is found": ([autograd("f11"), graph()], of_process(), ("yes", IN_ITS_GRAPHS)),
    "its graph is not found": ([autograd("f11"), graph()], DIFFERS, ("no", "torch_version differs")),
    "its graph is gone": ([autograd("f11")], of_process(), ("no", GONE)),
    "one of its graphs is gone": ([autograd("f11", "f22"), graph()], of_process(), ("no", GONE)),
    "its graph lies in another directory": ([autograd("f11"), graph(root="/other")], of_process(), ("no", GONE)),
    "its graph is damaged": ([autograd("f11"), BAD], of_process(), ("no", "it is damaged: truncated")),
    "one of two under the key is damaged": ([autograd("f11"), BAD, graph()], of_process(), ("yes", IN_ITS_GRAPHS)),
    "its graph may be found": ([autograd("f11"), graph(None)], of_process(), ("unknown", "hash details")),
    "one may be, another is not": ([autograd("f11", "f22"), graph(None), entry("fxgraph", "f22", {**OF_ENTRY, "x": "1"})], of_process(), ("no", "x differs")),
    "it was looked up": ([autograd("f11"), graph()], AOT_LOOKED_UP, ("yes", "the process looked this very key up")),
    "it was looked up, and its graph is gone": ([autograd("f11")], AOT_LOOKED_UP, ("no", GONE)),
    "it was looked up, and its graph is damaged": ([autograd("f11"), BAD], AOT_LOOKED_UP, ("no", "it is damaged: truncated")),
    "it was looked up, and its graph would not be found": ([autograd("f11"), graph({**OF_ENTRY, "x": "1"})], AOT_LOOKED_UP, ("yes", "the process looked this very key up")),
    "it was looked up, and it is damaged itself": ([autograd("f11", status="damaged", damage="truncated"), graph()], AOT_LOOKED_UP, ("no", "it is damaged: truncated")),
    "it has another name than its content": ([autograd("f11", **RENAMED), graph()], of_process(), ("unknown", LOADED_IF_IT_CAN)),
    "it has details of its own, and its graph is gone": ([autograd("f11", details=OF_ENTRY)], of_process(), ("yes", IN_ITS_GRAPHS)),
    "its graphs were looked up under another key": ([autograd("f11"), graph()], of_process(keys=LOOKED_UP | {("aotautograd", "a22")}), ("no", "looked its graphs up under another AOTAutograd key")),
    "its graphs were looked up, and no AOTAutograd key": ([autograd("f11"), graph()], of_process(keys=LOOKED_UP), ("unknown", "of AOTAutograd no lookup is recorded")),
    "one of its graphs was looked up": ([autograd("f11", "f22"), graph(), entry("fxgraph", "f22", OF_ENTRY)], of_process(keys=LOOKED_UP), ("yes", IN_ITS_GRAPHS)),
    "it holds its graphs": ([autograd(details=OF_ENTRY)], of_process(keeps_graphs_inside=True), ("yes", IN_ITS_GRAPHS)),
    "it holds its graphs, and nothing of their keys": ([autograd()], of_process(keeps_graphs_inside=True), ("unknown", "it points to no FX entry that could be compared")),
    "it holds its graphs, and the process does not": ([autograd(details=OF_ENTRY)], of_process(keeps_graphs_inside=False), ("no", "it holds its graphs, unlike the process's own")),
    "it points to its graphs, and the process does not": ([autograd("f11"), graph()], of_process(keeps_graphs_inside=True), ("no", "it points to its graphs, unlike the process's own")),
    "its cache is off": ([autograd("f11"), graph()], of_process(off={"aotautograd": "it is off"}), ("no", "it is off")),
}  # fmt: skip


@pytest.mark.parametrize("case", AUTOGRAD)
def test_an_autograd_entry(case: str) -> None:
    entries, process, (will_hit, reason) = AUTOGRAD[case]
    row = predicted(process, *entries)[0]
    assert row["cache"] == "aotautograd"
    assert (row["will_hit"], reason in row["reason"]) == (will_hit, True), row["reason"]


def test_files_that_are_no_entries_of_a_key_are_left_out() -> None:
    rows = predicted(of_process(), entry("code", "c11"), graph(), entry("lock", "f11"))
    assert [(row["entry"], row["cache"], row["cache_key"]) for row in rows] == [(1, "fxgraph", "f11")]


WIDTH = "inductor_config[cpp.simdlen]"
CAPABILITY = {"torch.backends.cpu.get_cpu_capability()": "AVX2"}
LINUX = "Linux-6.1-x86_64-with-glibc2.36"


def of_snapshot(
    fields: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    problem: str | None = None,
    platform: str | None = LINUX,
) -> ProcessFields:
    told = {"key_fields": fields, "settings": settings, "key_fields_problem": problem}
    return ProcessFields.of_snapshot({**told, "torch_version": "2.13.0", "platform": platform})


def test_the_fields_of_a_snapshot_are_those_of_the_process() -> None:
    found = of_snapshot({OPTION: "h1", "gm": "h2", "example_inputs[0]": "h3", "torch_version": "h4"})
    assert found.hashes == {OPTION: {"h1"}, "torch_version": {"h4"}}
    assert (found.version, found.off, found.keys, found.programs) == ("2.13.0", {}, set(), set())
    assert found.problem is None
    assert of_snapshot(None).hashes == {}


PASS, AOT_OFF = f"{WOULD_BYPASS}: a pass", f"the process has {AOT_SWITCH} = False"


@pytest.mark.parametrize(("problem", "settings", "off"), [
    (None, {}, {}),
    ("the import failed", {}, {}),
    (PASS, {}, {"aotautograd": PASS, "fxgraph": PASS}),
    (None, {AOT_SWITCH: "False"}, {"aotautograd": AOT_OFF}),
    (PASS, {AOT_SWITCH: "False"}, {"aotautograd": AOT_OFF, "fxgraph": PASS}),
])  # fmt: skip
def test_caches_a_snapshot_lacks(problem: str | None, settings: dict[str, str], off: dict[str, str]) -> None:
    found = of_snapshot({}, settings, problem)
    assert (found.off, found.problem is None) == (off, off != {})


@pytest.mark.parametrize(("fields", "platform", "width"), [
    ({}, LINUX, 256),
    # Unset is torch's default, None; else the option decides, and not the CPU.
    ({WIDTH: detail_hash(None)}, LINUX, 256),
    ({WIDTH: detail_hash(None, 5)}, LINUX, 256),
    ({WIDTH: detail_hash(128)}, LINUX, None),
    ({OPTION: detail_hash(128)}, LINUX, 256),
])  # fmt: skip
def test_the_vectors_of_a_snapshot(fields: dict[str, str], platform: str, width: int | None) -> None:
    found = of_snapshot(fields, CAPABILITY, platform=platform)
    assert (found.vector_width, found.cpu_capability) == (width, "AVX2")
    assert of_snapshot(fields, platform=None).cpu_capability == ""


def hash_of(field: str, text: str) -> str:
    return component(field, text)[1:52]


def test_the_fields_of_a_run_are_those_of_its_fx_lookups() -> None:
    def one(kwargs: str, **told: str) -> dict[str, str]:
        return {"gm": "g", "fx_kwargs[x]": kwargs, **told}

    lookups = [
        aot("a1", details={"aot_only": "1"}), fx("f1", details=one("1", x="1", y="1")),
        fx("f1", "hit", one("1", x="1", y="1")), fx("f2", "hit", one("2", x="2", y="1")), fx("f3", "hit"),
        fx(None, "bypass"),
    ]  # fmt: skip
    scope = scope_of(run(*lookups))
    found = ProcessFields.of_lookups(list(scope.history.lookups), scope.tables.hash_details, "2.13.0")
    assert found.hashes == {"x": {hash_of("x", "1"), hash_of("x", "2")}, "y": {hash_of("y", "1")}}
    assert found.keys == {("aotautograd", "a1"), *(("fxgraph", f"f{n}") for n in (1, 2, 3))}
    # How the graph is compiled is no part of the program: it may follow from options.
    assert found.programs == {frozenset({("gm", hash_of("gm", "g"))})}
    assert (found.version, found.off) == ("2.13.0", {})


@pytest.mark.parametrize(("version", "entry_has", "process_has", "will_hit"), [
    # The entry has what is not the default: it may be an option of its compile.
    ("2.13.0", False, True, "unknown"),
    # It has the default: what the process has set, it has set for all.
    ("2.13.0", True, False, "no"),
])  # fmt: skip
def test_an_option_is_what_differs_from_the_default(
    version: str, entry_has: bool, process_has: bool, will_hit: str
) -> None:
    def line(value: bool) -> str:
        return f"[{detail_hash(value)}] {OPTION}: {value}"

    details = HashDetails()
    code, _ = details.add([f"[{'g' * 51}] gm: g", line(entry_has)])
    (made,) = scope_of(entries=[graph(None)]).tables.entries.rows
    process = ProcessFields({OPTION: frozenset({detail_hash(process_has)})}, version=version)
    (found,) = predictions_of([replace(made, detail_set=code)], details, process, lambda row: "")
    assert (found.will_hit, found.fields) == (will_hit, (OPTION,))


VECTORS = "auto x = at::vec::Vectorized<float>::loadu(p, static_cast<int64_t>({}));"
CPU = {"device_types": ("cpu",), "code_key": "c1"}


def unsafe(process: ProcessFields, *entries: Stored) -> list[Any]:
    """Of each entry whether it would be wrong there; 16 floats are 512 bits, in the code of each."""
    return [row["is_unsafe"] for row in predicted(process, *entries, source=VECTORS.format(16))]


def test_code_of_another_cpu_is_unsafe_where_it_is_found() -> None:
    narrow, wide = (of_process(vector_width=width) for width in (256, 512))
    assert unsafe(narrow, graph(**CPU)) == [True]
    assert unsafe(wide, graph(**CPU)) == [False]
    assert unsafe(of_process(), graph(**CPU)) == [None]
    assert unsafe(narrow, graph(device_types=("cuda",))) == [False]
    # Of what is not found nobody asks.
    other = of_process({**OWN, "torch_version": "b'2.14'"}, vector_width=256)
    assert unsafe(other, graph(**CPU)) == [None]
    assert unsafe(other, autograd("f11"), graph(**CPU)) == [None, None]


def test_an_autograd_entry_is_as_safe_as_what_it_loads() -> None:
    narrow = of_process(vector_width=256)
    safe = entry("fxgraph", "f22", OF_ENTRY, device_types=("cuda",))
    assert unsafe(narrow, autograd("f11"), graph(**CPU)) == [True, True]
    assert unsafe(narrow, autograd("f22"), graph(**CPU), safe) == [False, True, False]
    assert unsafe(narrow, autograd("f11", "f22"), graph(**CPU), safe) == [True, True, False]
    # Torch may load any that it finds under the key, and none that it cannot.
    beside = graph(name="two", device_types=("cuda",))
    assert unsafe(narrow, autograd("f11"), beside, graph(**CPU)) == [True, False, True]
    bad = graph(**CPU, name="two", status="damaged", damage="truncated")
    assert unsafe(narrow, autograd("f11"), graph(device_types=("cuda",)), bad) == [False, False, None]
    inside = of_process(vector_width=256, keeps_graphs_inside=True)
    assert unsafe(inside, autograd(details=OF_ENTRY, **CPU)) == [True]
    assert unsafe(inside, autograd(details=OF_ENTRY, device_types=("cuda",))) == [False]


def assumed(process: ProcessFields, *entries: Stored) -> tuple[str, ...]:
    found: tuple[str, ...] = predicted(process, *entries)[0]["assuming"]
    return found


SAME = "the same graph and inputs"
GUARDS = {"guards_expr": "s0 > 4"}
LATER: Details = {**OF_ENTRY, "default_dtype": "torch.float32"}
SAME_CPU = "a CPU that runs the kernels compiled with it (-march=native)"
_LEFT_OUT = "the same torch.{}(), which its key does not hold".format
LEFT_OUT, OF_CPU_CODE = _LEFT_OUT("get_default_dtype"), _LEFT_OUT("get_num_threads")
OWN_OF_AOT = "equal AOTAutograd fields, which entries do not store"


def test_the_assumptions_of_a_graph_entry() -> None:
    later = of_process({**OWN, "default_dtype": "torch.float32"})
    looked_up = of_process(keys=frozenset({("fxgraph", "f11")}))
    assert assumed(later, graph(LATER)) == (SAME,)
    assert assumed(later, graph(LATER, **GUARDS)) == (SAME, "sizes for which s0 > 4")
    assert assumed(later, graph(LATER, device_types=("cpu",))) == (SAME, SAME_CPU)
    assert assumed(of_process(), graph(device_types=("cuda",))) == (SAME, LEFT_OUT)
    assert assumed(of_process(), graph(device_types=("cpu",))) == (SAME, LEFT_OUT, OF_CPU_CODE, SAME_CPU)
    assert assumed(looked_up, graph(**GUARDS, device_types=("cpu",))) == ("sizes for which s0 > 4",)
    # A mega-cache is one file: nothing compiled lies beside its entries.
    packed = graph(LATER, device_types=("cpu",))
    packed[0].root = packed[0].path
    assert assumed(later, packed) == (SAME,)


def test_the_assumptions_of_an_autograd_entry() -> None:
    own = autograd("f11", **GUARDS)
    looked_up = of_process(keys=frozenset({("aotautograd", "a11")}))
    assert assumed(of_process(), own, graph()) == (SAME, "sizes for which s0 > 4", OWN_OF_AOT)
    assert assumed(looked_up, own, graph()) == ("sizes for which s0 > 4",)
    assert assumed(DIFFERS, own, graph()) == ()


def test_whether_a_process_asks_a_remote_cache_is_assumed() -> None:
    there = graph(path="redis://host/0/pt2:fx-graph-v1::f11:c1")
    for process in (of_process(), of_process(keys=frozenset({("fxgraph", "f11")}))):
        (row,) = predicted(process, there)
        assert "a process that asks this remote cache" in row["assuming"]
