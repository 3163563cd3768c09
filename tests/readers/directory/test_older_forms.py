"""Forms of torch 2.4 and 2.5, which were not recorded: made by hand after torch's sources of these versions."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path

import cachescope

FX, AOT = "f" + "b" * 51, "a" + "c" * 51
DETAILS = [
    f"[{'d' * 51}] gm: def forward(self):\n    return 1",
    f"[{'e' * 51}] fx_kwargs[is_backward]: False",
]
PREFIX = "V1120 15:24:1{n}.738000 3327 torch/_inductor/codecache.py:1] "


def trace_record(n: int, name: str, payload: dict[str, object]) -> str:
    text = json.dumps(payload)
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    envelope = {
        "artifact": {"name": name, "encoding": "json"},
        "frame_id": 0,
        "frame_compile_id": 0,
        "attempt": 0,
        "has_payload": digest,
    }
    return f"{PREFIX.format(n=n)}{json.dumps(envelope)}\n\t{text}\n"


def test_2_5_traces_say_the_state_in_the_payload_only(tmp_path: Path) -> None:
    records = [
        trace_record(0, "fx_graph_cache_hash", {"key": FX, "components": DETAILS, "cache_state": "miss"}),
        trace_record(1, "aotautograd_cache_hash", {"key": AOT, "components": DETAILS, "cache_state": "miss"}),
        trace_record(2, "fx_graph_cache_hash", {"key": FX, "components": DETAILS, "cache_state": "hit"}),
        trace_record(3, "fx_graph_cache_hash", {"cache_state": "bypass", "cache_bypass_reason": "why"}),
        # An FX miss below AOTAutograd left the state null.
        trace_record(4, "fx_graph_cache_hash", {"key": FX, "components": DETAILS, "cache_state": None}),
    ]
    (tmp_path / "t.log").write_text("".join(records))
    lookups = cachescope.read(tmp_path / "t.log").lookups
    assert lookups["outcome"].tolist() == ["full_miss", "full_miss", "hit", "bypass", "full_miss"]
    assert lookups["cache"].tolist()[0] == "aotautograd"
    assert lookups["bypass_reason"].dropna().tolist() == ["why"]


def test_2_4_traces_split_their_components_at_every_newline(tmp_path: Path) -> None:
    split = "\n".join(DETAILS).split("\n")
    (tmp_path / "t.log").write_text(trace_record(0, "fx_graph_cache_hash", {"key": FX, "components": split}))
    scope = cachescope.read(tmp_path / "t.log")
    assert scope.problems.empty
    assert scope.hash_details(FX)["value_text"].tolist() == ["def forward(self):\n    return 1", "False"]


def test_2_4_text_logs_call_aotautograd_keys_fx(tmp_path: Path) -> None:
    prefix = PREFIX.format(n=0).replace("] ", "] [0/0] ")
    # Without these a set of details would be known to have lost lines.
    always = [f"[{'h' * 51}] torch_version: <bytes>", f"[{'i' * 51}] system_info[hash]: {'0' * 64}"]
    own, common = f"[{'g' * 51}] aot_config: ()", [*DETAILS, *always]
    lines = [f"FX graph cache hash details for key {AOT}:", own, *"\n".join(common).split("\n")]
    lines += [f"FX graph cache hash details for key {FX}:", *"\n".join(common).split("\n")]
    lines += [f"fx graph cache miss for key {FX}"]
    (tmp_path / "t.log").write_text("".join(f"{prefix}{line}\n" for line in lines))
    scope = cachescope.read(tmp_path / "t.log")
    assert scope.lookups["cache"].tolist() == ["aotautograd", "fxgraph"]
    assert scope.hash_details(AOT)["field"].tolist() == ["aot_config", *scope.hash_details(FX)["field"]]


def test_guards_of_2_4_to_2_7_make_a_guard_miss(tmp_path: Path) -> None:
    prefix = PREFIX.format(n=0).replace("] ", "] [0/0] ")
    lines = [
        f"FX graph cache hash details for key {FX}:",
        *"\n".join(DETAILS).split("\n"),
        f"fx graph cache key {FX} evaluating guards [11 <= L['t0']] with values [5] => hit=False",
        f"fx graph cache miss for key {FX}",
    ]
    (tmp_path / "t.log").write_text("".join(f"{prefix}{line}\n" for line in lines))
    (lookup,) = cachescope.read(tmp_path / "t.log").lookups.itertuples()
    assert (lookup.outcome, lookup.guards_expr) == ("guard_miss", "[11 <= L['t0']]")
