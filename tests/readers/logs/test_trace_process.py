"""What the records of a trace say of its process and its lookups: records in, a process out; made by hand in torch's words."""

import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.errors import SourceError
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.json_record import Record
from cachescope.readers.kinds import looks_like_trace_log
from cachescope.readers.logs.trace_artifacts import lookup_from_artifact, lookup_from_event
from cachescope.readers.logs.trace_log import TRACE
from cachescope.readers.reading import Process, Reading
from tests.conftest import Archive
from tests.made import component
from tests.readings import read_by

KEY = "f" + "a" * 51
PLACE = "torch/_inductor/codecache.py:1646"
AFTER = "torch/_inductor/compile_fx.py:900"
NOON = 1_795_348_800
IDS = {"frame_id": 0, "frame_compile_id": 0}
DEEP = "[" * 100_000 + "]" * 100_000
FORWARD, BACKWARD, INFERENCE = (
    {"components": [component("gm", "g"), *(component(f"fx_kwargs[{name}]", str(name == is_so)) for name in ("is_backward", "is_inference"))]}
    for is_so in ("", "is_backward", "is_inference")
)  # fmt: skip


def prefix(second: float = 0, pid: object = 7, place: str = PLACE, day: str = "1122") -> str:
    return f"V{day} 12:00:{second:09.6f} {pid} {place}] "


def record(
    said: dict[str, Any], payload: object = None, second: float = 0, *, digest: str | None = None, **told: Any
) -> str:
    """A record as torch writes it; a payload that is no text is JSON."""
    if payload is None:
        return f"{prefix(second, **told)}{json.dumps(said)}\n"
    text = payload if isinstance(payload, str) else json.dumps(payload)
    said = {**said, "has_payload": digest or hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}
    lines = "".join(f"\t{line}\n" for line in text.split("\n"))
    return f"{prefix(second, **told)}{json.dumps(said)}\n{lines}"


def artifact(
    name: str, payload: object, second: float = 0, ids: dict[str, Any] | None = None, **told: Any
) -> str:
    named = {"name": name, "encoding": "json"}
    return record({"artifact": named, **(IDS if ids is None else ids)}, payload, second, **told)


def looked_up(outcome: str = "hit", second: float = 0, **told: Any) -> str:
    payload = {"key": KEY, "cache_state": outcome, **told.pop("payload", {})}
    return artifact(f"fx_graph_cache_{outcome}", payload, second, **told)


def event(second: float = 0, epoch_s: float = 0, **said: Any) -> str:
    told = {"name": "inductor_compile", "ts": (NOON + epoch_s) * 1e6, "ph": "E", **said}
    return record({"chromium_event": {}}, json.dumps(told, indent=0), second)


def begins(second: float = 0, ids: dict[str, Any] | None = None, stack: object = ()) -> str:
    told = {"stack": list(stack) if isinstance(stack, tuple) else stack}
    return record({"dynamo_start": told, **(IDS if ids is None else ids)}, None, second)


def metrics(
    second: float = 0, ids: dict[str, Any] | None = None, kind: str = "compilation_metrics", **said: Any
) -> str:
    return record({kind: said, **(IDS if ids is None else ids)}, None, second)


def read(*records: str, folder: Path, name: str = "t.log", cut: int = 0) -> Reading:
    path = folder / name
    data = "".join(records).encode()
    path.write_bytes(data[: len(data) - cut])
    os.utime(path, (NOON + 60, NOON + 60))
    return read_by(TRACE.read, str(path))


def one(*records: str, folder: Path, **told: Any) -> tuple[Process, list[tuple[str, str, str]]]:
    reading = read(*records, folder=folder, **told)
    (process,) = reading.processes
    return process, [(problem.where, problem.kind, problem.message) for problem in reading.problems]


def test_a_lookup_and_its_details(tmp_path: Path) -> None:
    lines = [component("gm", "g"), component("x", "y")]
    guards = {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": "s > 4"}
    reading = read(looked_up("miss", 3, payload={"components": lines, **guards}), folder=tmp_path)
    (lookup,) = reading.processes[0].lookups
    assert (lookup.cache_key, lookup.compile_id) == (KEY, "0/0")
    assert (lookup.outcome, lookup.guards_expr) == ("guard_miss", "s > 4")
    assert lookup.detail_set is not None
    assert [one.field for one in reading.details.details(lookup.detail_set)] == ["gm", "x"]
    assert reading.problems == []
    assert (lookup.end_time, lookup.logged_time) == (lookup.time, lookup.time)
    # Those of 2.4 are split at every newline.
    split = [*component("gm", "g\nmore").split("\n"), component("x", "y")]
    reading = read(looked_up(payload={"components": split}), folder=tmp_path)
    assert reading.details.details(reading.processes[0].lookups[0].detail_set or 0)[0].value_text == "g\nmore"
    assert reading.problems == []


@pytest.mark.parametrize(("components", "messages"), [
    ("text", ["components is no list of texts"]),
    ([3], ["components is no list of texts"]),
    ({"a": 1}, ["components is no list of texts"]),
    (None, []),
    ([], []),
])  # fmt: skip
def test_details_that_are_none(components: object, messages: list[str], tmp_path: Path) -> None:
    process, problems = one(looked_up(payload={"components": components}), folder=tmp_path)
    assert process.lookups[0].detail_set is None
    assert problems == [("byte 0", "hash_detail", message) for message in messages]


def test_a_detail_that_is_none_is_named(tmp_path: Path) -> None:
    made = looked_up(payload={"components": ["no detail", component("a", "b")]})
    process, ((where, kind, message),) = one(made, folder=tmp_path)
    assert process.lookups[0].detail_set is not None
    assert (where, kind) == ("byte 0", "hash_detail") and "no detail" in message


@pytest.mark.parametrize(("records", "wanted"), [
    # The id of the envelope counts, and that of the payload where it has none.
    ([looked_up(payload={"compile_id": "5/5"})], "0/0"),
    ([looked_up(payload={"compile_id": "5/5"}, ids={})], "5/5"),
    ([looked_up(ids={"frame_id": 1, "frame_compile_id": 2, "attempt": 1})], "1/2_1"),
    ([looked_up(ids={})], None),
])  # fmt: skip
def test_the_compile_of_a_lookup(records: list[str], wanted: str | None, tmp_path: Path) -> None:
    process, _ = one(*records, folder=tmp_path)
    assert process.lookups[0].compile_id == wanted


@pytest.mark.parametrize(("records", "wanted"), [
    ([looked_up()], False),
    ([looked_up(place=AFTER)], True),
    ([looked_up(), metrics()], True),
    ([looked_up(), metrics(kind="bwd_compilation_metrics")], True),
    ([looked_up(), record({"compilation_metrics": 3, "frame_id": 0, "frame_compile_id": 0})], False),
])  # fmt: skip
def test_whether_its_compile_ended(records: list[str], wanted: bool, tmp_path: Path) -> None:
    process, _ = one(*records, folder=tmp_path)
    assert process.lookups[0].compile_ended is wanted


def test_after_a_reset_a_graph_is_below_no_lookup_of_the_compile_before(tmp_path: Path) -> None:
    """As where torch._functorch.config.enable_autograd_cache is switched off after torch._dynamo.reset(), which begins ids again."""
    asked = artifact("aotautograd_cache_miss", {"key": "a" + "b" * 51, "cache_state": "miss"}, 2)
    records = [begins(1), asked, looked_up("miss", 3, payload=FORWARD), metrics(4)]
    again = [begins(5), looked_up("miss", 6, payload={"key": "f" + "b" * 51, **INFERENCE}), metrics(7)]
    # The backward graph of the first function, which is compiled now.
    last = [looked_up("miss", 8, payload={"key": "f" + "c" * 51, **BACKWARD}), metrics(9)]
    (tmp_path / "t.log").write_text("".join([*records, *again, *last]))
    lookups = cachescope.read(tmp_path / "t.log").lookups
    assert lookups["aot_lookup"].fillna(-1).tolist() == [-1, 0, -1, 0]


def test_after_a_reset_a_backward_graph_is_of_the_compile_of_its_forward_graph(tmp_path: Path) -> None:
    def compiled(name: str, second: float, graph: dict[str, Any]) -> list[str]:
        stack = [{"name": name, "filename": "/mine.py", "line": 1}]
        asked = artifact(
            "aotautograd_cache_miss", {"key": "a" + name * 51, "cache_state": "miss"}, second + 1
        )
        return [
            begins(second, stack=tuple(stack)),
            asked,
            looked_up("miss", second + 2, payload=graph),
            metrics(second + 3),
        ]

    failed = metrics(9, kind="bwd_compilation_metrics", fail_type="E")
    records = (
        *compiled("f", 1, FORWARD),
        *compiled("g", 5, INFERENCE),
        looked_up("miss", 8.5, payload=BACKWARD),
        failed,
    )
    process, _ = one(*records, folder=tmp_path)
    told = [(lookup.function, lookup.compile_error) for lookup in process.lookups]
    assert told == [("f", "E"), ("f", None), ("g", None), ("g", None), ("f", "E")]
    assert [(found.function, found.error) for found in process.compiles] == [("f", "E"), ("g", None)]


def test_the_code_that_was_compiled(tmp_path: Path) -> None:
    frame = {"name": "f", "line": 3, "filename": 2}
    named = record({"str": ["/mine.py", 2]})
    process, problems = one(named, begins(stack=[frame]), looked_up(), folder=tmp_path)
    (lookup,) = process.lookups
    assert (lookup.function, lookup.file, lookup.line, problems) == ("f", "/mine.py", 3, [])
    assert one(begins(stack="no list"), looked_up(), folder=tmp_path)[0].lookups[0].function is None
    assert one(looked_up(), record({"dynamo_start": None}), folder=tmp_path)[1] == []
    # A compile that began and did not end looks up nothing; one that ended had its caches off.
    assert one(begins(), folder=tmp_path)[0].looked_up
    assert not one(begins(), metrics(), folder=tmp_path)[0].looked_up
    # Where the beginning of the compile is lost, its lookups may be lost with it.
    assert one(metrics(), folder=tmp_path)[0].looked_up
    assert one(metrics(), begins(1, {"frame_id": 1, "frame_compile_id": 0}), folder=tmp_path)[0].looked_up
    assert one(begins(), metrics(fail_type="E"), folder=tmp_path)[0].looked_up
    assert one(begins(), metrics(), looked_up(), folder=tmp_path)[0].looked_up


def test_the_function_under_a_wrapper_is_of_the_graph_of_its_own_compile(tmp_path: Path) -> None:
    """A log that was appended to itself in part names no compile that has the id by now."""
    stack = [{"name": "inner", "line": 7, "filename": "/lib/torch/_dynamo/external_utils.py"}]
    graph = record({"dynamo_output_graph": {}, **IDS}, "        # File: /mine.py:8 in g, code: x + 1", 1)
    records = (begins(stack=stack), graph, looked_up(second=2), begins(5, stack=stack), looked_up(second=6))
    for log in (records, (*records[:4], graph, records[4])):
        process, problems = one(*log, folder=tmp_path)
        assert [lookup.function for lookup in process.lookups] == ["g", "inner"] and problems == []


def guards(type_: str, second: float = 1, source: str = "L['self']", more: str = "") -> str:
    """What torch 2.9 and later write of the guards of a compile, after its lookups."""
    line = f"| +- GuardManager: source={source}, accessed_by=FrameLocalsGuardAccessor(key='self', framelocals_idx=0)"
    tree = f"\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n{line}{type_}, tag_safe=(False, False)\n{more}"
    return record({"dynamo_cpp_guards_str": {}, **IDS}, tree, second, place="torch/_dynamo/guards.py:4552")


@pytest.mark.parametrize(("stack", "type_", "wanted"), [
    (["/mine.py"], ", type=<class '__main__.Net'>", "Net"),
    (["/mine.py"], ", type=<class 'mine.made.<locals>.Net'>", "Net"),
    (["/mine.py"], "", None),  # torch 2.8 and earlier
    # The module that torch's wrapper calls is not that of the caller, which is named.
    (["/mine.py", "/lib/torch/nn/modules/module.py"], ", type=<class '__main__.Net'>", None),
    ([], ", type=<class '__main__.Net'>", None),
])  # fmt: skip
def test_the_class_of_a_method(stack: list[str], type_: str, wanted: str | None, tmp_path: Path) -> None:
    """Ids begin again where Dynamo is reset: what follows is of other code."""
    frames = [{"name": "f", "line": 3, "filename": file} for file in stack]
    method = [{"name": "g", "line": 9, "filename": "/other.py"}]
    records = [
        *(begins(stack=method), looked_up(), guards(", type=<class 'other.Other'>")),
        *(begins(2, stack=frames), looked_up(second=3), guards(type_, 4)),
        *(begins(5, stack=method), looked_up(second=6)),
    ]
    process, problems = one(*records, folder=tmp_path)
    assert [lookup.class_name for lookup in process.lookups] == ["Other", wanted, None]
    # A log that was appended to itself in part tells nothing new of the compile that has the id by now.
    again, _ = one(*records, records[2], folder=tmp_path)
    assert [lookup.class_name for lookup in again.lookups] == ["Other", wanted, None]
    assert problems == []


@pytest.mark.parametrize(("caller", "more", "wanted"), [
    ("/lib/torch/nn/modules/module.py", "._modules", "Llama"),
    ("/lib/torch/nn/modules/module.py", ".stride()", None),  # a tensor that a wrapper of a bound method takes
    ("/mine.py", "._modules", None),  # a function that is given a model
])  # fmt: skip
def test_the_class_of_a_decorated_method(caller: str, more: str, wanted: str | None, tmp_path: Path) -> None:
    """The lines are those that torch 2.13 writes of `LlamaForCausalLM.forward` of transformers 5.24, cut."""
    files = [caller, "/lib/torch/_dynamo/eval_frame.py", "/lib/transformers/utils/deprecation.py"]
    stack = [{"name": "wrapped_func", "line": 121, "filename": file} for file in files]
    rest = f"| | | | +- GuardManager: source=L['args'][0]{more}, accessed_by=DictGetItemGuardAccessor(0)\n"
    rest += "| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None      # _dynamo/output_graph.py:1222\n"
    tree = guards(", type=<class 'llama.Llama'>", source="L['args'][0]", more=rest)
    process, _ = one(begins(stack=stack), looked_up(), tree, folder=tmp_path)
    assert [(lookup.class_name, lookup.default_device) for lookup in process.lookups] == [(wanted, "None")]


def disabled(second: float = 0, epoch_s: float = 0, **args: Any) -> str:
    return event(second, epoch_s, args={"cache_state": "disabled", "cache_event_time": NOON * 10**9, **args})


def test_a_disabled_cache_leaves_an_event_alone(tmp_path: Path) -> None:
    made = disabled(epoch_s=2, compile_id="0/0", cache_bypass_reason="off", is_backward=True)
    process, problems = one(made, folder=tmp_path)
    (lookup,) = process.lookups
    assert (lookup.outcome, lookup.cache_state, problems) == ("disabled", "disabled", [])
    assert (lookup.compile_id, lookup.bypass_reason) == ("0/0", "off")
    assert (lookup.time, lookup.time_taken_ns, lookup.is_backward) == (NOON * 10**9, 2 * 10**9, True)
    assert lookup.compile_ended
    # The clock may have been set back.
    assert one(disabled(epoch_s=-2), folder=tmp_path)[0].lookups[0].time_taken_ns == 0


def aot_code(second: float) -> str:
    return record({"graph_dump": {"name": "inductor_aot_wrapper_code"}}, "code", second)


@pytest.mark.parametrize(("records", "wanted"), [
    ([], [None]),
    # The event says that its compile began at noon.
    ([aot_code(1)], [True]),
    ([aot_code(0)], [True]),
    ([record({"graph_dump": {"name": "other"}}, "code", 1)], [None]),
    ([event(1), aot_code(2), disabled(3, 3, cache_event_time=(NOON + 3) * 10**9)], [None, None]),
    ([event(1), aot_code(2), disabled(3, 3)], [True, None]),
    ([event(1), aot_code(2), disabled(3, 3, cache_event_time=None)], [None, None]),
])  # fmt: skip
def test_code_that_is_written_within_a_compile_was_compiled_ahead_of_time(
    records: list[str], wanted: list[bool | None], tmp_path: Path
) -> None:
    process, problems = one(event(0), *records, disabled(4, 4), folder=tmp_path)
    assert ([lookup.aot_mode for lookup in process.lookups], problems) == (wanted, [])


NOON_NS = NOON * 10**9


def bypass(at: int, **ids: int) -> str:
    said = {"cache_event_time": at, "cache_bypass_reason": "no"}
    return artifact("fx_graph_cache_bypass", said, ids={**IDS, **ids})


def bypassing(compile_id: str = "0/0", **args: Any) -> str:
    """The event that ends such a compile, three seconds after noon; it began at noon."""
    said = {"cache_state": "bypass", "cache_event_time": NOON_NS, "is_backward": False}
    return event(0, 3, args={**said, "compile_id": compile_id, **args})


@pytest.mark.parametrize(("records", "expected"), [
    # torch looks up after it began.
    ([bypass(NOON_NS + 300_000), bypassing()], [3]),
    ([bypass(NOON_NS), bypassing()], [3]),
    # Before its beginning, and after its end.
    ([bypass(NOON_NS - 1), bypassing()], [None]),
    ([bypass(NOON_NS + 3 * 10**9 + 1), bypassing()], [None]),
    # Another compile, and a later attempt of the same.
    ([bypass(NOON_NS + 1), bypassing("1/0")], [None]),
    ([bypass(NOON_NS + 1, attempt=2), bypassing()], [3]),
    # The latest of two, and one event for one.
    ([bypass(NOON_NS + 1), bypass(NOON_NS + 2), bypassing()], [None, 3]),
    ([bypass(NOON_NS + 1), bypassing(), bypassing()], [3]),
    ([bypass(NOON_NS + 1), bypassing(cache_event_time=None)], [None]),
])  # fmt: skip
def test_the_event_of_a_bypass_says_how_long_it_took(
    records: list[str], expected: list[int | None], tmp_path: Path
) -> None:
    lookups = one(*records, folder=tmp_path)[0].lookups
    assert [x.outcome for x in lookups] == ["bypass"] * len(expected)
    assert [None if x.time_taken_ns is None else x.time_taken_ns // 10**9 for x in lookups] == expected
    assert [x.is_backward for x in lookups] == [None if seconds is None else False for seconds in expected]


def test_of_many_lookups_the_event_of_a_bypass_belongs_to_those_of_just_now(tmp_path: Path) -> None:
    for between, found in ((63, 1), (64, 0)):
        others = [looked_up(second=n / 1000) for n in range(between)]
        process, _ = one(bypass(NOON_NS), *others, bypassing(), folder=tmp_path)
        assert sum(x.time_taken_ns is not None for x in process.lookups) == found


DISABLED = {"args": {"cache_state": "disabled"}}


@pytest.mark.parametrize("other", [
    event(**DISABLED, ph="B"),
    event(**{**DISABLED, "name": "other"}),
    event(args=None),
    event(args={"cache_state": "hit"}),
    artifact("fx_graph_cache_other", "no json"),
    artifact("other", "no json"),
])  # fmt: skip
def test_other_records_are_no_lookups(other: str, tmp_path: Path) -> None:
    process, problems = one(looked_up(), other, folder=tmp_path)
    assert (len(process.lookups), problems) == (1, [])


@pytest.mark.parametrize(("records", "wanted"), [
    ([artifact("torch_version", {"pytorch_version": "2.13.0"})], ("2.13.0", None)),
    ([metrics(pytorch_version="2.13.0", python_version="3.12.1 (main)")], ("2.13.0", "3.12.1")),
    # What was said first stays; metrics fill what is missing.
    ([artifact("torch_version", {"pytorch_version": "2.13.0"}), metrics(pytorch_version="2.12.0", python_version="3.12")], ("2.13.0", "3.12")),
    ([metrics(pytorch_version="2.13.0"), metrics(pytorch_version="2.12.0", python_version="3.12")], ("2.13.0", "3.12")),
    ([metrics(python_version="3.12"), metrics(pytorch_version="2.12.0", python_version="3.13")], ("2.12.0", "3.12")),
    ([metrics()], (None, None)),
])  # fmt: skip
def test_the_versions_of_a_process(
    records: list[str], wanted: tuple[str | None, ...], tmp_path: Path
) -> None:
    process, problems = one(*records, folder=tmp_path)
    assert (process.torch_version, process.python_version, problems) == (*wanted, [])


@pytest.mark.torch
def test_the_script_of_a_graph_names_the_gpus_as_torch_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from torch._dynamo.debug_utils import _cuda_system_info_comment

    names = ["NVIDIA L4", "NVIDIA RTX A6000", "NVIDIA L4"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "get_device_name", names.__getitem__)
    said = _cuda_system_info_comment.__wrapped__()
    script = artifact("fx_graph_runnable", f"import torch\n\n{said}\nfrom torch.nn import *\n")
    (process,) = read(script, script, folder=tmp_path).processes
    assert process.gpus == ("NVIDIA L4", "NVIDIA RTX A6000")
    none = artifact("fx_graph_runnable", "# torch.cuda.is_available()==False, no GPU info collected\n")
    (process,) = read(none, folder=tmp_path).processes
    assert process.gpus == ()


@pytest.mark.torch
def test_what_autotuning_found_stored_is_told_as_torch_records_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch/_inductor/runtime/triton_heuristics.py, `check_autotune_cache`; torch/_inductor/async_compile.py, `_compile_end`."""
    import torch
    from torch._inductor import async_compile
    from torch._inductor.runtime.triton_heuristics import check_autotune_cache

    class Config:
        num_warps, num_stages, pre_hook = 4, 1, None

        def __init__(self, block: int) -> None:
            self.kwargs = {"XBLOCK": block}

    configs: Any = [Config(16), Config(32)]
    meta = {"backend_hash": "b", "autotune_local_cache": True, "autotune_remote_cache": False, "bundled_autotune_remote_cache": False}  # fmt: skip
    file = tmp_path / "kernel.py"
    file.touch()
    recorded: list[str] = []

    def keep(kind: str, payload_fn: Callable[[], Any], **told: Any) -> None:
        recorded.extend([payload_fn()] if kind == "artifact" else [])

    monkeypatch.setattr(torch._logging, "trace_structured", keep)
    async_compile._compile_start()
    _, cache, info = check_autotune_cache(configs, str(file), meta)
    async_compile._add_triton_kernel_info("triton_poi_missed", info)
    cache.save(configs[0], 0)
    for name, some, more in (
        ("triton_poi_found", configs, {}),
        ("triton_poi_one_configuration", configs[:1], {}),
        ("triton_poi_off", configs, {"force_disable_caches": True}),
    ):
        async_compile._add_triton_kernel_info(name, check_autotune_cache(some, str(file), meta | more)[2])
    async_compile._compile_end()
    assert list(tmp_path.glob("*.best_config"))
    (payload,) = recorded
    record = artifact("triton_kernel_info", payload)
    (process,) = read(looked_up("hit"), record, record, folder=tmp_path).processes
    wanted = "hit triton_poi_found", "miss triton_poi_missed", "force_disabled triton_poi_off"
    assert process.kernel_lookups == tuple(f"0/0 {text}" for text in wanted)
    said = "tuned configurations of Triton kernels: 1 found, 1 not"
    beside = " (1 of these in compiles with hits alone), 1 not asked for"
    assert said + beside in " ".join(repr(cachescope.read(tmp_path / "t.log")).split())
    tunes = [
        event(at, at, name="CachingAutotuner.benchmark_all_configs", ph=ph, args={"compile_id": "0/0"})
        for at, ph in ((1, "B"), (3, "E"))
    ]
    read(looked_up("hit"), record, *tunes, folder=tmp_path)
    shown = " ".join(repr(cachescope.read(tmp_path / "t.log")).split())
    assert "in compiles with hits alone, tuned in 2.0 s)" in shown
    # Of a compile id that is used again, nobody knows which one it was.
    read(looked_up("hit"), looked_up("miss", 2), record, folder=tmp_path)
    assert f"{said}, 1 not asked for" in " ".join(repr(cachescope.read(tmp_path / "t.log")).split())


@pytest.mark.parametrize(
    "payload", [{"k": None}, {"k": "hit"}, {"k": {"autotune_cache_state": ["hit"]}}, {"k": {}}, {}]
)
def test_of_another_form_of_it_nothing_is_told(payload: dict[str, Any], tmp_path: Path) -> None:
    (process,) = read(artifact("triton_kernel_info", payload), folder=tmp_path).processes
    assert process.kernel_lookups == ()


@pytest.mark.parametrize(("name", "ranks", "wanted"), [
    ("t.log", [], None), ("t.log", [3], 3), ("t.log", [3, 4], 3),
    ("dedicated_log_torch_trace_rank_5_x.log", [], 5), ("dedicated_log_torch_trace_rank_5_x.log", [3], 5),
    ("rank_1234567890.log", [], None), ("t.log", [-1], None),
])  # fmt: skip
def test_the_rank_of_a_process(name: str, ranks: list[int], wanted: int | None, tmp_path: Path) -> None:
    records = [looked_up(ids={"rank": rank}) for rank in ranks] or [looked_up()]
    assert one(*records, folder=tmp_path, name=name)[0].rank == wanted


def test_the_pid_and_the_first_and_last_moment(tmp_path: Path) -> None:
    process, problems = one(looked_up(second=1), looked_up(second=5), looked_up(second=9), folder=tmp_path)
    assert process.clock_first_us is not None and process.clock_last_us is not None
    assert (process.pid, process.clock_last_us - process.clock_first_us, problems) == (7, 8_000_000, [])
    process, problems = one(looked_up(pid="9" * 19), looked_up(), folder=tmp_path)
    assert process.pid is None
    assert problems == [("byte 0", "bad_value", "no process has the pid of its prefix")]
    process, problems = one(looked_up(second=1), looked_up(second=5, day="1322"), folder=tmp_path)
    assert process.clock_last_us == process.clock_first_us
    assert problems == [(f"byte {len(looked_up())}", "bad_value", "the time of its prefix is none")]
    assert process.lookups[1].time is None


def test_the_time_of_an_event_tells_year_and_zone(tmp_path: Path) -> None:
    """The clock of the prefixes is an hour ahead of UTC, and the event is not of the year of the file."""
    year = 365 * 86_400
    stamped = record({"chromium_event": {}}, json.dumps({"name": "x", "ts": (NOON - 3600 - year) * 1e6}))
    process, _ = one(looked_up(), stamped, folder=tmp_path)
    assert process.start_time == (NOON - 3600 - year) * 10**9
    # Only a time, and only one before the next record.
    for text in ('{"ts": ...}', '{"name": "x"}'):
        process, _ = one(record({"chromium_event": {}}, text), stamped, folder=tmp_path)
        assert process.start_time == (NOON - 3600 - year) * 10**9
    process, _ = one(stamped, stamped.replace("ts", "st"), folder=tmp_path)
    assert process.start_time == (NOON - 3600 - year) * 10**9
    # It shows the clock of its own record, not that of one before it, which may have been written an hour earlier.
    late = record({"chromium_event": {}}, json.dumps({"name": "x", "ts": (NOON + 3600) * 1e6}))
    process, _ = one(looked_up(), late.replace("12:00:", "13:00:"), folder=tmp_path)
    assert process.start_time == NOON * 10**9
    # One of another age tells nothing.
    plain = one(looked_up(), folder=tmp_path)[0].start_time
    for stamp in ("1e30", "0", "0.0.0", ".", "9" * 400, "-62135596800000000"):
        odd = record({"chromium_event": {}}, f'{{"name": "x", "ts": {stamp}}}')
        assert one(looked_up(), odd, folder=tmp_path)[0].start_time == plain


def test_where_generated_code_was_written(tmp_path: Path) -> None:
    def code(path: str) -> str:
        return record({"inductor_output_code": {"filename": path}}, "text")

    first, second = code("/cache/ab/cabc.py"), code("/other/ab/cabc.py")
    assert one(looked_up(), first, second, folder=tmp_path)[0].cache_dir == "/cache"
    assert one(looked_up(), code("/tmp/x.py"), second, folder=tmp_path)[0].cache_dir == "/other"
    assert one(looked_up(), folder=tmp_path)[0].cache_dir is None


@pytest.mark.parametrize(("made", "kind", "message"), [
    (looked_up(digest="0" * 32).replace('"key"', "key"), "truncated", "fx_graph_cache_hit: the payload is cut"),
    (artifact("fx_graph_cache_hit", "no json"), "not_json", "fx_graph_cache_hit: the payload is no JSON"),
    (artifact("fx_graph_cache_hit", [1]), "not_json", "the payload is no JSON object"),
    (looked_up().replace('"frame_id"', "frame_id"), "not_json", ""),
    (looked_up(payload={"key": 3}), "bad_value", "key is 3, not a text"),
    (looked_up().replace('"encoding"', f'"x": {DEEP}, "encoding"'), "not_json", ""),
    (looked_up(ids={"rank": "x", **IDS}), "bad_value", "rank is the text 'x'"),
    # The tab before each line is not part of what torch hashed.
    (artifact("fx_graph_cache_hit", '{\n  "key":\n}'), "not_json", "fx_graph_cache_hit: the payload is no JSON"),
    (artifact("fx_graph_cache_hit", '{\n  "key":\n}', digest="0" * 32), "truncated", "fx_graph_cache_hit: the payload is cut"),
    (artifact("torch_version", {"pytorch_version": 3}), "bad_value", ""),
    (disabled().replace('"ph": "E"', '"ph" "E"'), "not_json", ""),
    (disabled(cache_event_time=-1), "bad_value", ""),
    (begins(stack="no list"), "bad_value", "stack is the text 'no list', not a list of objects"),
    (begins(stack=[{"name": 3}]), "bad_value", ""),
    (begins().replace('"frame_id"', "frame_id"), "not_json", ""),
    (record({"dynamo_start": 3}), "bad_value", ""),
    (record({"dynamo_start": None, "rank": "x"}), "bad_value", "rank is the text 'x', not a whole number"),
    ("Segmentation fault\n", "not_a_record", "'Segmentation fault'"),
])  # fmt: skip
def test_a_wrong_record_is_a_problem_at_its_byte(made: str, kind: str, message: str, tmp_path: Path) -> None:
    before = looked_up()
    process, ((where, found, said),) = one(before, made, looked_up(second=1), folder=tmp_path)
    assert (where, found) == (f"byte {len(before)}", kind)
    assert sum(lookup.cache_key == KEY for lookup in process.lookups) >= 2
    assert said.startswith(message)


LONG = "9" * 5_000
# As they stand in JSON: what no torch writes there, but a log can hold.
BAD = [str(1 << 64), str(-(1 << 64)), LONG, "Infinity", "1e400", "NaN", "true", "1.5", "[1]", "{}"]


@pytest.mark.parametrize("value", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("field", ["time_taken_ns", "cache_event_time", "key", "compile_id", "cache_state"])
def test_a_bad_value_of_a_lookup_costs_no_more_than_itself(field: str, value: str, tmp_path: Path) -> None:
    text = json.dumps({"key": KEY, "cache_state": "hit", field: "@"}).replace('"@"', value)
    process, problems = one(artifact("fx_graph_cache_hit", text), looked_up(second=1), folder=tmp_path)
    assert [x.cache_key for x in process.lookups] == [None if field == "key" else KEY, KEY]
    ((where, kind, message),) = problems
    assert (where, kind) == ("byte 0", "bad_value") and message.startswith(f"{field} is ")


@pytest.mark.parametrize("field", ["rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id"])
def test_a_bad_number_of_an_envelope_is_a_problem(field: str, tmp_path: Path) -> None:
    for value in ("true", "-1", LONG, str(1 << 64), '"0"', "[0]", "1.5"):
        made = looked_up(ids={**IDS, field: "@"}).replace('"@"', value)
        process, ((where, kind, message),) = one(made, folder=tmp_path)
        assert (process.lookups[0].cache_key, process.rank) == (KEY, None)
        assert (where, kind) == ("byte 0", "bad_value") and message.startswith(f"{field} is ")


def test_half_a_character_is_an_escape(tmp_path: Path) -> None:
    details = [component("gm", "half @").replace("@", "\udfff")]
    process, problems = one(looked_up(payload={"key": "\ud800f", "components": details}), folder=tmp_path)
    assert (process.lookups[0].cache_key, problems) == ("\\ud800f", [])


@pytest.mark.parametrize(("first", "kind", "message"), [
    ("\ufeff", "not_a_record", "the log begins with a byte order mark"),
    ("\trest of a payload\n", "truncated", "the log begins within a record"),
    ("a shell says something\n", "not_a_record", "'a shell says something'"),
    # Of a long line, only the beginning is quoted.
    ("s" * 1_000 + "\n", "not_a_record", repr("s" * 80)),
])  # fmt: skip
def test_what_is_before_the_first_record(first: str, kind: str, message: str, tmp_path: Path) -> None:
    process, problems = one(first, looked_up(), folder=tmp_path)
    assert (len(process.lookups), problems) == (1, [("byte 0", kind, message)])


@pytest.mark.parametrize("folder", ["my] {x}", "v2] {x}", 'my] {"x"}', "{x}", "my] [0/0] {x}"])
def test_a_record_of_a_file_in_an_odd_folder_is_one(folder: str, tmp_path: Path) -> None:
    odd = looked_up(second=1, place=f"/home/{folder}/torch/_inductor/codecache.py:9")
    # Behind it is enough for the quick check of many records at once.
    process, problems = one(odd, *(metrics(second=2 + n) for n in range(9)), folder=tmp_path)
    assert (len(process.lookups), problems) == (1, [])


@pytest.mark.parametrize(("cut", "is_cut", "problems"), [(0, False, 0), (1, True, 1), (2, True, 2)])
def test_a_log_that_ends_within_a_record(cut: int, is_cut: bool, problems: int, tmp_path: Path) -> None:
    process, found = one(looked_up(), looked_up(), folder=tmp_path, cut=cut)
    assert (process.is_cut, len(found)) == (is_cut, problems)
    assert {kind for _, kind, _ in found} <= {"truncated"}


def test_a_payload_that_lost_whole_lines_is_cut(tmp_path: Path) -> None:
    text = json.dumps({"key": KEY}, indent=1)
    whole = artifact("fx_graph_cache_hit", text)
    assert not one(whole, folder=tmp_path)[0].is_cut
    process, problems = one(looked_up(), "".join(whole.splitlines(keepends=True)[:-1]), folder=tmp_path)
    assert process.is_cut
    assert [message for _, _, message in problems] == ["fx_graph_cache_hit: the payload is cut"]


def test_a_log_without_a_record_is_none(tmp_path: Path) -> None:
    for text in ("nothing\n", "nothing\nat all\n", "nothing"):
        (tmp_path / "t.log").write_text(text)
        reading = Reading()
        with pytest.raises(SourceError, match="holds no record of torch's trace log"):
            TRACE.read(str(tmp_path / "t.log"), reading)
        assert reading.problems[0].message == "'nothing'"


def test_a_packed_log_is_not_read_on_when_it_grows(tmp_path: Path) -> None:
    reading = Reading()
    (tmp_path / "t.log.gz").write_bytes(gzip.compress(looked_up().encode()))
    TRACE.read_events(str(tmp_path / "t.log.gz"), reading)
    assert (len(reading.processes[0].lookups), reading.processes[0].end_state) == (1, None)


def lookup(name: str = "fx_graph_cache_miss", **payload: Any) -> LookupRow:
    return lookup_from_artifact(name, Record(payload))


@pytest.mark.parametrize(("name", "payload", "wanted"), [
    ("fx_graph_cache_hit", {}, ("hit", "hit")),
    ("fx_graph_cache_miss", {}, ("full_miss", "miss")),
    ("fx_graph_cache_miss", {"cache_status_detailed": "guard_miss"}, ("guard_miss", "miss")),
    ("fx_graph_cache_miss", {"cache_status_detailed": "miss"}, ("full_miss", "miss")),
    ("fx_graph_cache_hit", {"cache_status_detailed": "guard_miss"}, ("hit", "hit")),
    ("aotautograd_cache_bypass", {}, ("bypass", "bypass")),
    # One artifact for all: the state is in the payload.
    ("fx_graph_cache_hash", {"cache_state": "hit"}, ("hit", "hit")),
    ("fx_graph_cache_hash", {"cache_state": "bypass"}, ("bypass", "bypass")),
    ("fx_graph_cache_hash", {"cache_state": "disabled"}, ("disabled", "disabled")),
    ("fx_graph_cache_hash", {"cache_state": "other"}, ("full_miss", "other")),
    ("fx_graph_cache_hash", {"cache_state": None}, ("full_miss", None)),
    # torch 2.4 writes none.
    ("fx_graph_cache_hash", {}, ("unknown", None)),
    ("fx_graph_cache_hit", {"cache_state": "miss"}, ("full_miss", "miss")),
])  # fmt: skip
def test_the_outcome_of_artifacts(name: str, payload: dict[str, Any], wanted: tuple[str, str | None]) -> None:
    found = lookup(name, **payload)
    assert (found.outcome, found.cache_state) == wanted
    assert found.cache == ("aotautograd" if name.startswith("aot") else "fxgraph")


def test_the_times_of_an_artifact() -> None:
    assert lookup(time_saved_ns=5, time_saved_ms=7).time_saved_ns == 5
    assert lookup(time_saved_ms=7).time_saved_ns == 7_000_000
    assert lookup(time_saved_ms=1.5).time_saved_ns == 1_500_000
    assert (lookup().time_saved_ns, lookup().time_taken_ns) == (None, None)
    assert (lookup(time_taken_ns=3).time_taken_ns, lookup(cache_event_time=9).time) == (3, 9)


def test_an_event_without_a_time_has_no_duration() -> None:
    def taken(**said: Any) -> int | None:
        args = {"cache_state": "disabled", **said.pop("args", {})}
        found = lookup_from_event(Record({"ph": "E", "name": "inductor_compile", "args": args, **said}))
        return found.time_taken_ns

    assert taken(ts=2_000_000, args={"cache_event_time": 10**9}) == 10**9
    assert taken(ts=2_000_000) is taken(args={"cache_event_time": 10**9}) is taken() is None


def test_problems_are_at_their_byte_in_later_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.readers.logs.trace_records.BLOCK_BYTES", 1_000)
    goods, bad = [looked_up(second=n) for n in range(19)], looked_up(payload={"key": 3})
    frame = begins(stack=[{"name": 3}])
    process, problems = one(*goods[:9], bad, *goods[9:18], frame, goods[18], folder=tmp_path)
    places = [9 * len(goods[0]), 18 * len(goods[0]) + len(bad)]
    assert [where for where, _, _ in problems] == [f"byte {place}" for place in places]
    assert len(process.lookups) == 20


@pytest.mark.parametrize("more", [0, 1])
def test_a_record_too_long_is_passed_over(more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, long, later = looked_up(), looked_up(payload={"other": "x" * 5_000}), looked_up(second=1)
    monkeypatch.setattr("cachescope.readers.logs.trace_records._MOST_BYTES_OF_A_RECORD", len(long) - more)
    process, problems = one(good, long, later, folder=tmp_path)
    said = (f"byte {len(good)}", "limit", "the record is too long: it was not read")
    assert (len(process.lookups), problems) == ((2, [said]) if more else (3, []))
    (_, later) = one(good, long, good.replace('"key"', "key"), folder=tmp_path)
    assert [where for where, _, _ in later] == [said[0]] * more + [f"byte {len(good + long)}"]


def test_a_file_of_no_age_gives_no_times(tmp_path: Path) -> None:
    path = tmp_path / "t.log"
    path.write_text(looked_up() + looked_up(payload={"cache_event_time": NOON * 10**9}))
    os.utime(path, (5, 5))
    (process,) = read_by(TRACE.read, str(path)).processes
    assert process.start_time is None
    # A time that the artifact says itself is one.
    times = [(x.time, x.end_time, x.logged_time) for x in process.lookups]
    assert times == [(None, None, None), (NOON * 10**9, None, None)]


def test_only_a_few_wrong_values_of_a_record_are_told(tmp_path: Path) -> None:
    wrong = {f"{name}": [] for name in ("key", "cache_state", "cache_status_detailed", "cache_bypass_reason")}
    made = looked_up(payload={**wrong, "time_saved_ns": [], "cache_event_time": [], "time_taken_ns": []})
    ((_, kind, message),) = one(made, folder=tmp_path)[1]
    assert (kind, message.count("; ")) == ("bad_value", 4)
    # The time of its prefix is told after the others.
    ((_, _, message),) = one(looked_up(payload={"key": 3}, day="1322"), folder=tmp_path)[1]
    assert message == "key is 3, not a text; the time of its prefix is none"


def test_a_record_at_the_start_of_a_line_makes_a_trace() -> None:
    made = looked_up().encode()
    assert looks_like_trace_log(made) and looks_like_trace_log(b"x\n" + made)
    assert not looks_like_trace_log(b"x" + made) and not looks_like_trace_log(b"")


@pytest.mark.parametrize("step", ["cold", "warm", "option"])
def test_the_outcomes_of_torch_2_4_are_those_of_its_text_log(step: str, archive: Archive) -> None:
    """Its traces have none: what they do not show otherwise is unknown, as of a backward graph that hits when it is called."""
    folder = archive("outcomes/2.4.1") / "2.4.1" / step
    log = (folder / "torch.log").read_text()
    said = {key: outcome for outcome, key in re.findall(r"fx graph cache (hit|miss) for key (f\w+)", log)}
    assert len(said) == 5

    def told(source: Path) -> dict[str, str]:
        rows = cachescope.read(source).lookups
        return {
            key: outcome.removeprefix("full_")
            for key, outcome in zip(rows["cache_key"], rows["outcome"], strict=True)
        }

    alone = told(folder / "trace")
    known = {key: outcome for key, outcome in alone.items() if outcome != "unknown"}
    assert list(alone) == list(said) and known.items() <= said.items()
    assert len(known) == (4 if step == "warm" else 5)
    assert told(folder) == said
