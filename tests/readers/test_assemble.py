"""From processes and entries to frames: where the hash details of a lookup come from, and what is under what."""

from typing import Any

import pandas as pd
import pytest

from cachescope.columns import records
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.assemble import Tables, assemble
from cachescope.readers.json_record import MOST_NS
from cachescope.readers.reading import Process, Reading
from tests.made import NOON_NS, component

OF_LOG, OF_ENTRY, OF_AUTOGRAD, OTHER = "1", "2", "3", "4"


def made(
    *lookups: LookupRow, entries: tuple[EntryRow, ...] = (), of_key: dict[str, str] | None = None
) -> tuple[Reading, Process]:
    reading, process = Reading(), Process(source="/logs/a.log", kind="trace", pid=7)
    process.lookups = list(lookups)
    reading.processes.append(process)
    for lookup in lookups:
        lookup.detail_set = added(reading, lookup.detail_set)  # type: ignore[arg-type]
    for entry in entries:
        entry.detail_set = added(reading, entry.detail_set)  # type: ignore[arg-type]
    reading.entries += entries
    for key, text in (of_key or {}).items():
        code = added(reading, text)
        assert code is not None
        reading.details_of_key[key] = code
    return reading, process


def added(reading: Reading, text: str | None) -> int | None:
    return None if text is None else reading.details.add([component("x", text)])[0]


def fx(key: str | None, details: str | None = None, **told: Any) -> LookupRow:
    usual = {"cache": "fxgraph", "time": NOON_NS, "cache_key": key, "detail_set": details}
    return LookupRow(**(usual | told))


def stored(key: str, details: str | None) -> EntryRow:
    told: dict[str, Any] = {"detail_set": details}
    return EntryRow(cache="fxgraph", path=f"/cache/{key}", root="/cache", cache_key=key, **told)


def origins(tables: Tables) -> list[tuple[str, str | None]]:
    """Of each lookup where its details are from, and the value of the only one."""

    def value(code: int | None) -> str | None:
        return None if code is None else tables.hash_details.details(code)[0].value_text

    return [(row["details"], value(row["detail_set"])) for row in records(tables.lookups.frame)]


@pytest.mark.parametrize(("lookups", "entries", "of_key", "wanted"), [
    ([fx("f1", OF_LOG)], [stored("f1", OF_ENTRY)], {"f1": OF_AUTOGRAD}, [("recorded", OF_LOG)]),
    ([fx("f1")], [stored("f1", OF_ENTRY)], {"f1": OF_AUTOGRAD}, [("from_entry", OF_ENTRY)]),
    ([fx("f1")], [stored("f1", None)], {"f1": OF_AUTOGRAD}, [("from_entry", OF_AUTOGRAD)]),
    ([fx("f1"), fx("f1", OF_LOG)], [stored("f1", OF_ENTRY)], {}, [("from_entry", OF_ENTRY), ("recorded", OF_LOG)]),
    ([fx("f1"), fx("f1", OF_LOG), fx("f1", OTHER), fx("f1")], [], {}, [("from_log", OF_LOG), ("recorded", OF_LOG), ("recorded", OTHER), ("from_log", OF_LOG)]),
    ([fx("f1"), fx("f2", OF_LOG)], [], {}, [("not_recorded", None), ("recorded", OF_LOG)]),
    ([fx("f1", is_details_cut=True)], [], {}, [("incomplete", None)]),
    ([fx("f1", is_details_cut=True)], [stored("f1", OF_ENTRY)], {}, [("from_entry", OF_ENTRY)]),
    ([fx(None)], [stored("f1", OF_ENTRY)], {}, [("not_recorded", None)]),
    ([fx(None, OF_LOG), fx(None)], [], {}, [("recorded", OF_LOG), ("not_recorded", None)]),
])  # fmt: skip
def test_the_details_of_a_lookup_are_its_own_those_of_the_entry_or_those_of_a_log(
    lookups: list[LookupRow],
    entries: list[EntryRow],
    of_key: dict[str, str],
    wanted: list[tuple[str, str | None]],
) -> None:
    copies = [fx(x.cache_key, x.detail_set, is_details_cut=x.is_details_cut) for x in lookups]  # type: ignore[arg-type]
    kept = tuple(stored(str(entry.cache_key), entry.detail_set) for entry in entries)  # type: ignore[arg-type]
    reading, _ = made(*copies, entries=kept, of_key=of_key)
    assert origins(assemble(reading)) == wanted


def test_a_graph_is_under_the_latest_autograd_lookup_of_its_compile() -> None:
    reading, _ = made(
        fx("f0", compile_id="0/0"),
        fx("a1", cache="aotautograd", compile_id="0/0"),
        fx("f1", compile_id="0/0"),
        fx("a2", cache="aotautograd", compile_id="1/0"),
        fx("f2", compile_id="0/0"),
        fx("a3", cache="aotautograd", compile_id="0/0", outcome="hit"),
        fx("f3", compile_id="0/0"),
        fx("f4", compile_id="2/0"),
    )
    second = Process(source="/logs/b.log", kind="trace", pid=8)
    second.lookups = [fx("f5", compile_id="0/0")]
    reading.processes.append(second)
    lookups = assemble(reading).lookups.frame
    assert lookups["lookup"].tolist() == list(range(9))
    assert lookups["run"].tolist() == [0] * 8 + [1]
    assert lookups["order"].tolist() == [*range(8), 0]
    assert lookups["aot_lookup"].fillna(-1).tolist() == [-1, -1, 1, -1, 1, -1, 5, -1, -1]


@pytest.mark.parametrize(("cache", "told", "fields", "direction", "is_backward"), [
    ("aotautograd", None, {}, None, False),
    ("fxgraph", None, {}, None, None),
    ("fxgraph", True, {}, "backward", True),
    ("fxgraph", False, {}, None, False),
    ("fxgraph", None, {"is_backward": "True", "is_inference": "False"}, "backward", True),
    ("fxgraph", None, {"is_backward": "False", "is_inference": "False"}, "forward", False),
    ("fxgraph", None, {"is_backward": "False", "is_inference": "True"}, "inference", False),
    ("fxgraph", True, {"is_backward": "False", "is_inference": "True"}, "inference", False),
])  # fmt: skip
def test_the_direction_is_told_by_the_details_before_anything_else(
    cache: str, told: bool | None, fields: dict[str, str], direction: str | None, is_backward: bool | None
) -> None:
    reading, process = made(fx("f1", cache=cache, is_backward=told))
    if fields:
        kwargs = [component(f"fx_kwargs[{name}]", value) for name, value in fields.items()]
        process.lookups[0].detail_set, _ = reading.details.add(kwargs)
    (row,) = records(assemble(reading).lookups.frame)
    assert (row["direction"], row["is_backward"]) == (direction, is_backward)


@pytest.mark.parametrize(
    ("time_ns", "wanted"), [(0, 0), (1, 1), (MOST_NS, MOST_NS), (MOST_NS + 1, None), (-1, None), (None, None)]
)
def test_a_file_may_have_any_time_and_a_column_some(time_ns: int | None, wanted: int | None) -> None:
    reading = Reading()
    for written in (time_ns, 7):
        reading.entries.append(EntryRow(cache="code", modified_time=written, changed_time=5, seen_time=9))
    frame = assemble(reading).entries.frame
    assert [None if pd.isna(at) else at.value for at in frame["modified_time"]] == [wanted, 7]
    assert [at.value for at in frame["changed_time"]] == [5, 5]
    assert [at.value for at in frame["seen_time"]] == [9, 9]


def test_an_entry_that_was_opened_has_its_own_facts_in_well_formed_texts() -> None:
    reading, one = Reading(), stored("f1", None)
    one.detail, one.fx_keys = "half \ud800", ("whole", "half \udfff")
    reading.entries.append(one)
    (opened,) = records(assemble(reading).entries.frame)
    assert (opened["detail"], opened["fx_keys"]) == ("half \\ud800", ("whole", "half \\udfff"))


def test_details_of_a_text_log_that_lost_lines_are_not_used() -> None:
    reading, process = made(fx("f1", OF_LOG))
    process.kind = "text"
    tables = assemble(reading)
    # It has neither a version nor anything else that every key has.
    assert origins(tables) == [("incomplete", None)]
    assert tables.problems.frame["kind"].tolist() == ["incomplete_details"]
