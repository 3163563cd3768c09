"""Which sets of hash details have lost lines: logs with few fields in, those taken for cut out; made by hand.

Every set here has some fields of torch's; the names are torch's, the values are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs import cut_details
from cachescope.readers.logs.cut_details import ALWAYS, CONFIG, SETTINGS, Shapes, mark_cut_details
from cachescope.readers.reading import Process, Reading
from tests.made import component

CODE = "<lambda>()\n\n\n\ndef forward(self, x, y):\n    return x"
FX = {
    "gm": CODE, "example_inputs[0]": "cpu", "example_inputs[1]": "cpu", "inductor_config[a]": "1",
    "inductor_config[b]": "2", "torch_version": "v1", "system_info[hash]": "s1", "system_info[device]": "d1",
    "_fuse_ddp_communication_passes": "p",
}  # fmt: skip
AOT = {"aot_config": "c", **{name: text for name, text in FX.items() if "system_info[device]" not in name}}
Fields = dict[str, str]


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of torch that has the options a and b, and one that has c alone."""
    known = frozenset(frozenset(f"inductor_config[{name}]" for name in names) for names in ("abd", "ab", "c"))
    monkeypatch.setattr(cut_details, "config_names", lambda: known)


def without(fields: Fields, *names: str) -> Fields:
    return {name: text for name, text in fields.items() if name not in names}


class Logs:
    """Processes, each with lookups of sets of details."""

    def __init__(self) -> None:
        self.reading = Reading()

    def code(self, fields: Fields, doubled: str | None = None) -> int:
        lines = [component(name, text) for name, text in fields.items()]
        if doubled is not None:
            lines.append(component(doubled, "twice"))
        code, rejected = self.reading.details.add(lines)
        assert code is not None and not rejected
        return code

    def text(self, *sets: Fields, kind: str = "text", cache: str = "fxgraph", **told: Any) -> Logs:
        process = Process(source=f"/{len(self.reading.processes)}.log", kind=kind, pid=7)
        for number, fields in enumerate(sets):
            key = f"{cache[0]}{len(self.reading.processes)}{number}"
            code = self.code(fields)
            process.lookups.append(LookupRow(cache=cache, cache_key=key, detail_set=code, **told))
        self.reading.processes.append(process)
        return self

    def entry(self, key: str | None, fields: Fields | None) -> Logs:
        entry = EntryRow(cache="fxgraph", path="/cache/x", root="/cache", cache_key=key)
        entry.detail_set = None if fields is None else self.code(fields)
        self.reading.entries.append(entry)
        return self

    def cut(self) -> list[str]:
        """The keys whose details are not used."""
        mark_cut_details(self.reading)
        found = [one for process in self.reading.processes for one in process.lookups]
        return [one.cache_key or "" for one in found if one.detail_set is None]


OTHER = {**FX, "gm": CODE + "\n"}
MORE = {**FX, "cudagraph_annotation": "x"}
NO_DEVICE = without(FX, "system_info[device]")
NO_GRAPH = without(FX, "gm")
NO_SETTING = without(FX, "_fuse_ddp_communication_passes")
NO_OPTION = without(FX, "inductor_config[b]")
NO_OPTIONS = without(FX, "inductor_config[a]", "inductor_config[b]")
OF_V0 = {**NO_DEVICE, "torch_version": "v0"}
OF_S2 = {"system_info[hash]": "s2"}


def other(fields: Fields, end: str = "\n") -> Fields:
    """The same of another graph."""
    return {**fields, "gm": CODE + end}


@pytest.mark.parametrize(("logs", "wanted"), [
    (lambda: Logs().text(FX, other(FX, "y")), []),
    (lambda: Logs().text(FX), []),
    (lambda: Logs().text(AOT, cache="aotautograd"), []),
    (Logs, []),
    # Traces and entries are whole, and show what others lack.
    (lambda: Logs().text(NO_DEVICE, kind="trace"), []),
    (lambda: Logs().text(FX, kind="trace").text(NO_DEVICE), ["f10"]),
    (lambda: Logs().entry("f99", FX).text(NO_DEVICE), ["f00"]),
    (lambda: Logs().text(FX, OTHER, NO_DEVICE), ["f02"]),
    # A single set is enough, if it has all that the other has.
    (lambda: Logs().text(FX, NO_DEVICE), ["f01"]),
    # What is in an entry is whole, whatever its log lost; not under the key of the other cache.
    (lambda: Logs().entry("f99", FX).text(FX, outcome="unknown"), []),
    (lambda: Logs().entry("a99", FX).text(FX, outcome="unknown"), ["f00"]),
    (lambda: Logs().entry("a99", AOT).text(AOT, cache="aotautograd", outcome="unknown"), []),
    (lambda: Logs().entry(None, FX).entry("f99", None).text(FX, outcome="unknown"), ["f00"]),
    # A name that stands in a damaged set alone is not missed.
    (lambda: Logs().text(FX, OTHER, {**NO_GRAPH, "damaged": "x"}), ["f02"]),
    (lambda: Logs().text(FX, other(FX, "\n\n"), NO_DEVICE, other(NO_DEVICE)), ["f02", "f03"]),
    # One without a version is of its process.
    (lambda: Logs().text(NO_DEVICE, without(FX, "torch_version")), ["f00", "f01"]),
    (lambda: Logs().text(NO_DEVICE).text(without(FX, "torch_version")), ["f10"]),
    # Equal keys have equal fields.
    (lambda: Logs().entry("f00", MORE).text(FX), ["f00"]),
    (lambda: Logs().entry("f99", MORE).text(FX), []),
    # Of another build of torch other fields are expected; one that lost its version is of the build of its process.
    (lambda: Logs().text(FX, OTHER, OF_V0), []),
    (lambda: Logs().text(FX, OTHER, without(NO_DEVICE, "torch_version")), ["f02"]),
    # Fields that may be missing are missed only where lines are lost, not of another process, cache or build.
    (lambda: Logs().text(MORE, OTHER), []),
    (lambda: Logs().text(MORE, OTHER, NO_GRAPH), ["f01", "f02"]),
    (lambda: Logs().text(MORE, OTHER).text(NO_GRAPH), ["f10"]),
    (lambda: Logs().text(MORE).text(OTHER, is_details_cut=True), ["f10"]),
    (lambda: Logs().text({**MORE, "torch_version": "v0"}).text(OTHER, NO_GRAPH), ["f11"]),
    # A setting that no key of a process has is no loss.
    (lambda: Logs().text(FX, OTHER, NO_SETTING), ["f02"]),
    (lambda: Logs().text(FX, OTHER, NO_SETTING, other(NO_SETTING)), []),
    # Options that no other set has are those of a release.
    (lambda: Logs().text(NO_OPTION), ["f00"]),
    (lambda: Logs().text({**NO_OPTIONS, "inductor_config[c]": "1"}), []),
    (lambda: Logs().text({**FX, "inductor_config[z]": "1"}), []),
    (lambda: Logs().text(NO_OPTION, {**NO_OPTION, **OF_S2}), []),
    (lambda: Logs().text(NO_OPTION, other(NO_OPTION)), []),
    # A set whose outcome is lost may have lost its last lines.
    (lambda: Logs().text(FX, outcome="unknown"), ["f00"]),
    (lambda: Logs().text(FX, OTHER, outcome="unknown"), []),
    (lambda: Logs().text(FX, outcome="unknown").text(FX), []),
    (lambda: Logs().text(FX, {**FX, **OF_S2}, outcome="unknown"), []),
])  # fmt: skip
def test_which_sets_are_cut(logs: Callable[[], Logs], wanted: list[str]) -> None:
    assert logs().cut() == wanted


@pytest.mark.parametrize("lost", [
    "gm", "example_inputs[0]", "example_inputs[1]", "inductor_config[a]", "torch_version",
    "system_info[hash]",
])  # fmt: skip
def test_one_that_lost_what_every_set_has_is_cut(lost: str) -> None:
    logs = Logs().text(FX, OTHER, without(FX, lost))
    assert logs.cut() == ["f02"]
    (problem,) = logs.reading.problems
    assert (problem.source, problem.where, problem.kind) == ("/0.log", "pid 7", "incomplete_details")
    assert problem.message == "lines of the hash details of a lookup are missing: these details are not used"


def test_so_many_are_cut() -> None:
    logs = Logs().text(FX, without(FX, "gm"), without(FX, "torch_version"))
    assert len(logs.cut()) == 2
    (problem,) = logs.reading.problems
    assert problem.message.startswith("lines of the hash details of 2 lookups are missing")


def test_lookups_without_details_or_without_a_key_say_nothing() -> None:
    logs = Logs().text(FX, OTHER)
    logs.reading.processes[0].lookups += [
        LookupRow(cache="fxgraph", cache_key="f77"),
        LookupRow(cache="fxgraph", cache_key=None),
    ]
    logs.reading.processes[0].lookups[0].cache_key = None
    assert logs.cut() == ["f77", ""]
    assert logs.reading.problems == []


def test_equal_keys_have_equal_fields() -> None:
    logs = Logs().text(FX, kind="trace").text(MORE)
    logs.reading.processes[1].lookups[0].cache_key = "f00"
    # The trace is whole, so what only the other has is of a damaged line; each lacks nothing of both together but one.
    assert logs.cut() == []
    logs = Logs().text(MORE, kind="trace").text(FX)
    logs.reading.processes[1].lookups[0].cache_key = "f00"
    assert logs.cut() == ["f00"]
    # So does an entry that is of an AOTAutograd lookup.
    logs = Logs().text(FX, outcome="unknown")
    logs.reading.details_of_key["f99"] = logs.code(FX)
    assert logs.cut() == []


def shapes(*sets: Fields, doubled: str | None = None) -> tuple[Shapes, list[int]]:
    logs = Logs()
    codes = [logs.code(fields, doubled) for fields in sets]
    return Shapes(logs.reading.details), codes


@pytest.mark.parametrize(("fields", "cache", "wanted"), [(fields, cache, wanted) for cache, wanted, sets in [
    ("fxgraph", False, [FX, {**FX, "example_inputs[2]": "z"}, {**FX, "inputs_to_check[0]": "0"},
     {**FX, "inputs_to_check[00000000]": "1"}]),
    ("aotautograd", True, [FX, without(AOT, "gm")]),
    ("aotautograd", False, [AOT]),
    ("fxgraph", True, [AOT, without(FX, "torch_version"), without(FX, "system_info[hash]"), without(FX, "gm"),
     without(FX, "example_inputs[0]"), without(FX, "example_inputs[1]"), {**FX, "example_inputs[3]": "z"},
     {**FX, "inputs_to_check[1]": "1"}, {**FX, "inputs_to_check": "[]"}, {**FX, "inputs_to_check[x]": "1"},
     {**FX, "inputs_to_check[000000000]": "1"}]),
] for fields in sets])  # fmt: skip
def test_a_set_that_shows_its_own_gaps(fields: Fields, cache: str, wanted: bool) -> None:
    found, (code,) = shapes(fields)
    assert found.is_broken(cache, code) is wanted


@pytest.mark.parametrize(
    ("doubled", "wanted"), [("torch_version", True), ("example_inputs[2]", False), (None, False)]
)
def test_a_field_that_stands_twice_is_of_two_sets(doubled: str | None, wanted: bool) -> None:
    found, (code,) = shapes(FX, doubled=doubled)
    assert found.is_broken("fxgraph", code) is wanted


def names(found: Shapes, store: HashDetails, cache: str, code: int) -> dict[object, set[str]]:
    return {group[0]: {store.fields[one] for one in fields} for group, fields in found.groups(cache, code)}


def test_the_fields_of_each_group() -> None:
    logs = Logs()
    more = {
        **FX, "cpp_runtime_thread_count": "8", "inductor_config_comms[q]": "1",
        "fx_kwargs[is_inference]": "True", "new_dict[x]": "1", "default_cuda_device_index": "0",
        "inputs_to_check[0]": "0", "plain": "1", "user_defined_triton_source[0]": "code",
        "pre_grad_custom_pass": "x",
    }  # fmt: skip
    code = logs.code(more)
    store = logs.reading.details
    assert names(Shapes(store), store, "fxgraph", code) == {
        CONFIG: {"inductor_config[a]", "inductor_config[b]", "inductor_config_comms[q]"},
        ALWAYS: {"gm", "torch_version", "fx_kwargs[is_inference]", "plain"},
        "system_info": {"system_info[hash]", "system_info[device]"},
        SETTINGS: {"_fuse_ddp_communication_passes", "pre_grad_custom_pass"},
        "cpp_runtime_thread_count": {"cpp_runtime_thread_count"},
    }
    optional = {store.fields[field] for field in Shapes(store).optional(code)}
    # Of lists the graph determines the number of inputs alone.
    lists = {"inputs_to_check[0]", "user_defined_triton_source[0]"}
    assert optional == {"new_dict[x]", "default_cuda_device_index"} | lists
    assert Shapes(store).config_names(code) == names(Shapes(store), store, "fxgraph", code)[CONFIG]
    assert {store.fields[field] for field in Shapes(store).fields(code)} == set(more)


def test_autocast_lasts_where_every_device_is_named() -> None:
    states = "[cpu]", "cpu: (False, None), cuda: (True, 1)"
    on, off = ({**AOT, "autocast_state": state} for state in states)
    logs = Logs()
    codes = [logs.code(fields) for fields in (on, off, AOT)]
    store = logs.reading.details
    found = [names(Shapes(store), store, "aotautograd", code)["autocast_state"] for code in codes]
    assert found == [set(), {"autocast_state"}, set()]
    assert "autocast_state" not in names(Shapes(store), store, "fxgraph", codes[1])
    assert {store.fields[field] for field in Shapes(store).optional(codes[0])} == {"autocast_state"}


def test_the_count_of_threads_is_expected_where_inputs_are_on_the_cpu() -> None:
    threads = "cpp_runtime_thread_count"

    def group(fields: Fields) -> object:
        found, (_, code) = shapes({**FX, threads: "8"}, fields)
        (wanted,) = (one for one, _ in found.groups("fxgraph", code) if one[0] == threads)
        return wanted

    on_cpu = {**FX, "example_inputs[0]": "device(type='cpu')"}
    same = {**on_cpu, "example_inputs[1]": "device(type='cpu')"}
    assert group(on_cpu) == group(same) != group(FX)
    # Only where an input says so.
    assert group({**FX, "inductor_config[a]": "device(type='cpu')"}) == group(FX)
    # And where the options are the same.
    for option in ("cpp.threads", "cpp.dynamic_threads"):
        assert group({**on_cpu, f"inductor_config[{option}]": "4"}) != group(on_cpu)
    assert group({**on_cpu, "inductor_config[a]": "4"}) == group(on_cpu)
    found, (code,) = shapes(on_cpu)
    assert threads not in {one[0] for one, _ in found.groups("fxgraph", code)}


def test_system_info_of_another_machine_has_other_fields() -> None:
    def group(fields: Fields) -> object:
        found, (_, code) = shapes(FX, fields)
        (wanted,) = (one for one, _ in found.groups("fxgraph", code) if one[0] == "system_info")
        return wanted

    assert group(FX) == group({**FX, "system_info[device]": "d2"}) != group({**FX, "system_info[hash]": "s2"})
    assert group(FX) != group({**FX, "torch_version": "v2"})
