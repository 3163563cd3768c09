"""Processes of vLLM as runs, and their starts as lookups, beside what torch says in the same log."""

import os
import re
import time
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording
from tests.vllm_logs import NOON, said, start, write_log

PREFIX = re.compile(rb"[VIWEC](\d\d)(\d\d) (\d\d:\d\d:\d\d)\.\d{6} (\d+) ")


def lines_of_vllm(text: bytes, *, later: bool = False, pid: int | None = None) -> bytes:
    """A start of vLLM by the process of a text log of torch, at the time of its first or its last line."""
    found = list(PREFIX.finditer(text))
    match = found[-1 if later else 0]
    month, day, time, own = (part.decode() for part in match.groups())
    lead = f"(EngineCore pid={own if pid is None else pid}) INFO {month}-{day} {time} [compilation/backends.py:500] "
    path = "/c/torch_compile_cache/aaaaaaaaaa/rank_0_0/backbone"
    texts = (
        f"Using cache directory: {path} for vLLM's torch.compile",
        "Compiling a graph for compile range (1, 8) takes 8.00 s",
        "torch.compile takes 9.00 s in total",
    )
    return "".join(f"{lead}{one}\n" for one in texts).encode()


@pytest.fixture
def text(recording: Recording) -> bytes:
    return (recording("2.13.0", "cold_warm") / "text" / "00_cold.log").read_bytes()


def test_what_torch_says_in_the_same_log_is_of_the_same_process(text: bytes, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(text)
    alone = cachescope.read(log)
    log.write_bytes(lines_of_vllm(text) + text)
    both = cachescope.read(log)
    assert len(both.runs) == len(alone.runs) == 1
    assert both.runs["pid"].tolist() == alone.runs["pid"].tolist()
    assert both.lookups["cache"].tolist() == ["vllm", *alone.lookups["cache"]]
    of_torch = both.misses.merge(both.lookups[both.lookups["cache"] != "vllm"][["lookup"]])
    columns = ["verdict", "kind", "changed", "root", "evidence"]
    assert of_torch[columns].to_dict("list") == alone.misses[columns].to_dict("list")


def test_another_process_of_the_same_log_is_another_run(text: bytes, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(text + lines_of_vllm(text, later=True, pid=1))
    runs = cachescope.read(log).runs
    assert len(runs) == 2
    assert 1 in runs["pid"].tolist()


def test_a_container_that_starts_again_is_another_run(tmp_path: Path) -> None:
    log = write_log(tmp_path / "server.log", start("aaaaaaaaaa"), start("aaaaaaaaaa", NOON + 60))
    scope = cachescope.read(log)
    assert scope.runs["pid"].tolist() == [1, 1]
    assert scope.lookups["run"].tolist() == [0, 1]


def test_parts_of_one_engine_are_lookups_of_one_run(tmp_path: Path) -> None:
    draft = start("aaaaaaaaaa", NOON + 11, prefix="eagle_head", outcome="loaded")
    scope = cachescope.read(write_log(tmp_path / "server.log", start("aaaaaaaaaa"), draft))
    assert scope.lookups[["run", "order", "outcome"]].values.tolist() == [[0, 0, "full_miss"], [0, 1, "hit"]]
    assert set(scope.lookups["cache_key"]) == {"aaaaaaaaaa"}
    assert scope.lookups["time"].astype("int64").tolist() == [NOON * 10**9, (NOON + 11) * 10**9]
    assert scope.vllm_starts["lookup"].tolist() == [0, 1]


def test_a_start_that_lasts_into_the_new_year_began_in_the_old_one(tmp_path: Path) -> None:
    began = int(time.mktime((2026, 12, 31, 23, 59, 55, 0, 0, -1)))
    log = write_log(tmp_path / "server.log", start("aaaaaaaaaa", began))
    os.utime(log, (began + 60, began + 60))
    scope = cachescope.read(log)
    assert scope.lookups["time"].astype("int64").tolist() == [began * 10**9]
    assert scope.lookups["end_time"].astype("int64").tolist() == [(began + 10) * 10**9]
    assert scope.runs["end_time"].astype("int64").tolist() == [(began + 10) * 10**9]


def test_a_whole_model_that_was_loaded_is_a_hit_of_its_folder(tmp_path: Path) -> None:
    key = "0" * 64
    loaded = said(f"Directly load AOT compilation from path /c/torch_aot_compile/{key}/rank_3_0/model", NOON)
    scope = cachescope.read(write_log(tmp_path / "server.log", loaded))
    assert scope.lookups[["cache_key", "outcome"]].values.tolist() == [[key, "hit"]]
    assert scope.runs["rank"].tolist() == [3]


def test_what_is_not_said_is_unknown_and_in_no_rate(tmp_path: Path) -> None:
    scope = cachescope.read(write_log(tmp_path / "server.log", start("aaaaaaaaaa", outcome="not said")))
    assert scope.lookups["outcome"].tolist() == ["unknown"]
    assert scope.hit_rates()["hit_rate"].isna().all()
    assert scope.misses.empty


def test_a_day_that_is_none_has_no_time(tmp_path: Path) -> None:
    text = start("aaaaaaaaaa")
    wrong = re.sub(r"\d\d-\d\d (\d\d:\d\d:\d\d)", r"13-32 \1", text)
    scope = cachescope.read(write_log(tmp_path / "server.log", wrong))
    assert scope.lookups["time"].isna().all()
    assert scope.misses["verdict"].tolist() == ["first_lookup"]
