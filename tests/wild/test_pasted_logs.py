"""Logs as people paste them and as torch writes them at its default level: what is recorded, and what is not said to be none; and one that ends before an outcome.

Made by hand after the forms of public reports; the values are invented.
"""

import json
from pathlib import Path

import pytest

import cachescope
from cachescope import figures
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.summary import counts_text
from cachescope.catalogue import messages
from cachescope.columns import records
from cachescope.errors import NotFoundError, SourceError
from cachescope.readers.logs import text_log
from cachescope.report.comparison import comparison_object
from cachescope.scope import Scope
from tests.conftest import Recording

KEY = "fx5wq3kz7a2hnrjv4o6ydlmtbcuepsig2wq3kz7a2hnrjv4o6ydl"
FOLDER = "/models/.cache/vllm/torch_compile_cache/7a60f1c2de"


def scope_of(folder: Path, *lines: str) -> Scope:
    folder.mkdir(exist_ok=True)
    log = folder / "pasted.log"
    log.write_text("\n".join(lines) + "\n")
    return cachescope.read(log)


def torch_line(text: str, compile_id: str = "2/0", level: str = "W") -> str:
    return f"[rank3]:{level}0710 12:30:00.100000 4123 torch/_inductor/codecache.py:983] [{compile_id}] {text}"


def traceback(head: str, error: str) -> list[str]:
    return [torch_line(text) for text in (head, "Traceback (most recent call last):", error)]


NOT_PICKLED = traceback(
    "Failed to pickle cache key", "AttributeError: Can't pickle local object 'f.<locals>.g'"
)
NOT_LOADED = traceback("fx graph cache unable to load compiled graph", "EOFError: Ran out of input")
NOT_STORED = traceback("fx graph unable to write to cache", "OSError: [Errno 28] No space left on device")


@pytest.mark.parametrize(("lines", "said"), [
    (NOT_PICKLED, "compile 2/0: bypassed, the key could not be pickled: AttributeError: Can't pickle local object"),
    (NOT_LOADED, "compile 2/0: an entry could not be loaded: EOFError: Ran out of input"),
    (NOT_STORED, "compile 2/0: what was compiled could not be stored: OSError: [Errno 28] No space left"),
    # The words of 2.5, and those of 2.15.
    (traceback("Can't pickle", "TypeError: no"), "compile 2/0: bypassed, the key could not be pickled: TypeError: no"),
    (traceback("AOTAutogradCache unable to load compiled graph", "ValueError: x"),
     "compile 2/0: an entry could not be loaded: ValueError: x"),
])  # fmt: skip
def test_what_torch_says_at_its_default_level_is_told(lines: list[str], said: str, tmp_path: Path) -> None:
    scope = scope_of(tmp_path, "step 1", *lines, "step 2")
    (problem,) = scope.problems.to_dict("records")
    assert (problem["kind"], problem["where"]) == ("no_lookups", "line 2")
    assert problem["message"].startswith(said)
    assert "does not say that there was none" in counts_text(scope)


@pytest.mark.parametrize(("error", "line", "column", "wanted"), [
    (NOT_LOADED, f"fx graph cache miss for key {KEY}", "load_error", "EOFError: Ran out of input"),
    (NOT_PICKLED, "Bypassing FX Graph Cache because 'Failed to pickle cache key'", "bypass_reason",
     "Failed to pickle cache key: AttributeError: Can't pickle local object 'f.<locals>.g'"),
])  # fmt: skip
def test_where_its_lookup_is_logged_it_is_a_fact_of_that(
    error: list[str], line: str, column: str, wanted: str, tmp_path: Path
) -> None:
    scope = scope_of(tmp_path, *error, torch_line(line, level="I"))
    assert scope.lookups[column].tolist() == [wanted]
    assert scope.problems.empty


def test_a_bypass_for_another_reason_does_not_hide_it(tmp_path: Path) -> None:
    text = "Bypassing autograd cache due to: Cannot cache a graph with compiled autograd"
    line = torch_line(text, level="I")
    scope = scope_of(tmp_path, *NOT_PICKLED, line)
    assert (scope.lookups["outcome"].tolist(), len(scope.problems)) == (["bypass"], 1)
    said = torch_line("Bypassing FX Graph Cache because 'Config options may be unpickleable.'", level="I")
    assert scope_of(tmp_path, *NOT_PICKLED, said).problems.empty


def test_errors_of_two_compiles_are_two(tmp_path: Path) -> None:
    two = [[line.replace("[2/0]", "[3/0]") for line in error] for error in (NOT_PICKLED, NOT_LOADED)]
    assert len(scope_of(tmp_path, *NOT_PICKLED, *two[0], *NOT_LOADED, *two[1]).problems) == 4


@pytest.mark.parametrize("frame", ["{}", "{} ", "{}\t", "{}   │", "`{}`", "> {}<br>", '"{}"'])
def test_what_stands_around_a_pasted_line_hides_nothing(frame: str, tmp_path: Path) -> None:
    line = torch_line(f"fx graph cache hit for key {KEY}", level="I")
    written = torch_line(
        f"Writing AOTAutograd cache entry to /c/aotautograd/a{'b' * 51}/{'c' * 51}", level="I"
    )
    scope = scope_of(tmp_path, frame.format(line), frame.format(written))
    assert scope.lookups["outcome"].tolist() == ["hit"] and scope.problems.empty


def test_the_colours_of_grep_hide_nothing(tmp_path: Path) -> None:
    """By ``grep --color=always cache``, whose output was saved; and by a filter that colours the level."""
    line = torch_line(f"fx graph cache hit for key {KEY}", level="I")
    for word in ("cache", "I0710"):
        scope = scope_of(tmp_path, line.replace(word, f"\x1b[01;31m\x1b[K{word}\x1b[m\x1b[K"))
        assert scope.lookups["outcome"].tolist() == ["hit"]


def test_a_key_that_was_cut_is_still_none(tmp_path: Path) -> None:
    assert scope_of(tmp_path, torch_line(f"fx graph cache hit for key {KEY[:-1]}", level="I")).lookups.empty
    assert scope_of(tmp_path, torch_line(f"fx graph cache hit for key {KEY}x", level="I")).lookups.empty


def test_counters_that_a_program_prints_are_quoted(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="say of the FX cache: 1 miss, 2 hit"):
        scope_of(tmp_path, "epoch 0", "{'fxgraph_cache_miss': 1, 'fxgraph_cache_hit': 2}")
    with pytest.raises(SourceError) as error:
        scope_of(tmp_path, "epoch 0")
    assert "FX cache" not in str(error.value) and "TORCH_TRACE" in str(error.value)


@pytest.mark.parametrize("line", [
    f"2026-11-01 10:00:00,123 - torch._inductor.codecache - INFO - fx graph cache hit for key {KEY}",
    "10:00 WARNING torch._functorch._aot_autograd.autograd_cache: words of a later release",
    json.dumps({"name": "codecache", "message": f"fx graph cache miss for key {KEY}"}),
    "[WARNING]:Bypassing autograd cache due to: Cannot cache a graph with functional tensor",
    # The form of torch before 2.4.
    "[2024-04-16 22:28:39,856] torch._dynamo.convert_frame: [WARNING] torch._dynamo hit config.cache_size_limit (8)",
])  # fmt: skip
def test_what_a_formatter_of_the_program_wrote_is_quoted(line: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as error:
        scope_of(tmp_path, "epoch 0", line, "epoch 1")
    assert f"so that nothing of it is read: {line};" in str(error.value)
    with pytest.raises(SourceError) as error:
        scope_of(tmp_path, line, "{'fxgraph_cache_miss': 1}")
    assert f"read: {line}. torch's counters, printed there, say of the FX cache: 1 miss;" in str(error.value)


@pytest.mark.parametrize("line", [
    # torch 2.10, built for CUDA, on a machine without a GPU; and torch 2.13 with TORCH_LOGS=dynamo.
    "W1129 23:49:59.464000 30324 torch/utils/cpp_extension.py:118] [0/0] No CUDA runtime is found, using CUDA_HOME='/usr/local'",
    "V1129 23:52:30.100000 31317 torch/_dynamo/convert_frame.py:1200] [0/0] torchdynamo start compiling doubled /p.py:31, stack (elided 1 frames):",
])  # fmt: skip
def test_counters_beside_other_lines_of_torch_are_quoted(line: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as error:
        scope_of(tmp_path, line, '{"autograd_cache_miss": 1, "fxgraph_cache_miss": 1}').explain()
    assert str(error.value).startswith("no miss is recorded: no lookup is recorded")
    assert ". torch's counters, printed there, say of the FX cache: 1 miss; " in str(error.value)


LIMIT = [
    "torch._dynamo hit config.recompile_limit (8)",
    "   function: 'forward' (/home/me/model.py:88)",
    "   last reason: 0/7: L['n'] == 3",
]


def test_beside_lines_of_another_form_nothing_is_denied(tmp_path: Path) -> None:
    others = [f"12:00:0{at} [INFO] fx graph cache hit for key {KEY}" for at in range(3)]
    scope = scope_of(tmp_path, *map(torch_line, LIMIT), *others)
    (problem,) = scope.problems.to_dict("records")
    assert (problem["kind"], problem["where"], problem["count"]) == ("quoted", "line 4", 3)
    assert problem["message"].endswith("its form is not torch's: fx graph cache hit")
    assert "not all read as lookups: see the problems" in headline(Chosen(scope))
    assert "not all read" not in headline(Chosen(scope_of(tmp_path, *map(torch_line, LIMIT))))


def test_compiles_without_an_id_are_not_denied(tmp_path: Path) -> None:
    """As with TORCH_LOGS_FORMAT=short."""
    short = ["WARNING:torch._dynamo.convert_frame:" + LIMIT[0], *LIMIT[1:]]
    scope = scope_of(tmp_path, *short, *short)
    assert scope.compiles.empty
    (problem,) = scope.problems.to_dict("records")
    assert problem["kind"] == "quoted" and problem["message"].endswith(f"FORMAT=short: {LIMIT[0]}")


def test_of_logs_without_lookups_it_is_said_what_they_have(tmp_path: Path) -> None:
    lines = (
        "Recompiling function k in /p.py:9",
        "    triggered by the following guard failure(s):",
        "    - 0/0: n == 3",
    )
    scope_of(tmp_path / "a b", *(torch_line(line, "0/1", "V") for line in lines))
    hit = torch_line(f"fx graph cache hit for key {KEY}", level="I")
    scope_of(tmp_path / "c", hit.replace(" 4123 ", " 4124 "))
    a, b = tmp_path / "a b" / "pasted.log", tmp_path / "c" / "pasted.log"
    found = cachescope.compare(a, b)
    said = " ".join(str(found).split())
    assert comparison_object(found)["alone"] == [*found.alone]
    told = f"{a}: 1 compile, 1 recompile (cachescope compiles '{a}'); no lookup is recorded, for text logs"
    assert told in said
    assert f"{b}: 1 lookup" in said


def test_a_program_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no trace"):
        scope_of(tmp_path, "from torch._inductor.codecache import FxGraphCache")


def test_a_large_log_with_all_its_lookups_says_that_none_missed(tmp_path: Path) -> None:
    lines = [torch_line(f"fx graph cache hit for key {KEY}", f"{at}/0", "I") for at in range(3000)]
    scope = scope_of(tmp_path, *lines)
    assert counts_text(scope).startswith("3,000 lookups in 1 run: 3,000 hit, 0 missed (100 % by count)")
    assert scope.problems.empty and scope.misses.empty
    assert headline(Chosen(scope)).startswith("All 3,000 lookups hit")
    # One more line that is not understood, and it is not said.
    told = torch_line("fx graph cache of a later release did something for key", "1/0", "W")
    assert not scope_of(tmp_path, *lines, told).problems.empty


VLLM = "INFO 10-02 08:11:40 [backends.py:508]"
USING = f"Using cache directory: {FOLDER}/rank_0_0/backbone for vLLM's torch.compile"
ON_WINDOWS = USING.replace(FOLDER, "C:" + FOLDER).replace("/rank", "\\rank").replace("/", "\\")


@pytest.mark.parametrize(("head", "texts", "wanted"), [
    # 0.8.5 to 0.9.2.
    (VLLM, [USING, "Compiling a graph for general shape takes 48.20 s"], "compiled"),
    # 0.7: without a bracket, a part and a time.
    ("INFO 02-20 14:00:03 backends.py:408]",
     [USING.replace("_0/backbone", ""), "Directly load the compiled graph for shape None from the cache"], "loaded"),
    # The escape character of colours was lost.
    ("[1;36m(Worker_TP0 pid=120)[0;0m INFO 08-30 06:10:02 [backends.py:559]",
     [USING, "Directly load the compiled graph(s) for dynamic shape from the cache, took 4.510 s"], "loaded"),
    (VLLM, [ON_WINDOWS, "Compiling a graph for compile range (1, 4096) takes 9.15 s"], "compiled"),
])  # fmt: skip
def test_vllm_of_other_releases_and_places(head: str, texts: list[str], wanted: str, tmp_path: Path) -> None:
    starts = scope_of(tmp_path, *(f"{head} {text}" for text in texts)).vllm_starts
    assert (starts["outcome"].tolist(), starts["folder"].tolist()) == ([wanted], ["7a60f1c2de"])


TORCH = json.loads((Path(messages.__file__).parent / "messages.json").read_text())["torch"]["messages"]


@pytest.mark.parametrize("are_known", [True, False])
def test_each_error_of_a_cache_is_told_and_nothing_is_said_to_be_absent(
    are_known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone, in the words of every torch since 2.4; and where the words are of none that is known."""
    if not are_known:
        monkeypatch.setattr(text_log, "messages", lambda of: ())
        monkeypatch.setattr(text_log, "may_be_known", lambda text: False)
    for at, row in enumerate(TORCH):
        for file in row["files"]:
            line = torch_line(row["text"].replace("%s", "x")).replace("torch/_inductor/codecache.py", file)
            scope = scope_of(tmp_path / f"{at}", line)
            is_told = bool(row["means"]) or not are_known
            # What bypasses a lookup is one.
            assert len(scope.problems) + len(scope.lookups) == is_told, row
            if scope.lookups.empty:
                assert "does not say that there was none" in counts_text(scope)


def test_errors_of_other_files_are_not_of_a_cache(tmp_path: Path) -> None:
    line = torch_line("Bundle contains illegal x").replace("_inductor/codecache.py", "_dynamo/other.py")
    assert scope_of(tmp_path, line).problems.empty


INPUT = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([16, 16]), stride=(16, 1), device=device(type='cpu'), layout=torch.strided, "
    "memory_format=torch.contiguous_format, storage_offset=0, storage_bytes=None, requires_grad=False, is_quantized=False, is_conj=False, "
    "is_neg=False, is_inference=False, is_sparse=False, is_coalesced=None, dense_dim=None, sparse_dim=None)"
)
# The hashes that torch 2.13 printed in a process, and in one that it spawned.
FOUND_IN_TORCH = "b2a3uetdnaemd6yjbcmrifx5pdhemtmuxgslhemisjlbcthufau"
FOUND_IN_MAIN = "q5zuwtolz4ra5m5euxf3x3ehvh7wyxp7gpvdgtbwwmjcbpbc4me"


LETTERS = str.maketrans("34", "tf")
ORDER = "imports in another order"
OPTION = "inductor_config[epilogue_fusion]"


@pytest.mark.parametrize(("hashes", "changed", "kind", "said"), [
    ((FOUND_IN_TORCH, FOUND_IN_MAIN), "", ORDER, f"1 of 2 misses was avoidable, by {ORDER};"),
    ((FOUND_IN_MAIN, FOUND_IN_TORCH), "", ORDER, f"by {ORDER};"),
    ((FOUND_IN_TORCH, FOUND_IN_MAIN), OPTION, ORDER, f"by {ORDER} and epilogue_fusion;"),
    ((FOUND_IN_TORCH, FOUND_IN_MAIN), "cuda_matmul_settings[0]", "", "for other inputs"),
    # As of a tensor subclass, which prints its metadata alone.
    ((FOUND_IN_TORCH, "a" * 51), "", "", "for other inputs"),
])  # fmt: skip
def test_inputs_that_pickle_names_by_the_order_of_the_imports(
    hashes: tuple[str, str], changed: str, kind: str, said: str, tmp_path: Path
) -> None:
    for pid, found in enumerate(hashes, 4123):
        key = "f" + "ab"[pid % 2] * 51
        lines = (
            f"FX graph cache hash details for key {key}:",
            f"[{'g' * 51}] gm: <lambda>()",
            f"[{found}] example_inputs[0]: {INPUT}",
            *(f"[{'s' * 51}] {field}: x" for field in ("torch_version", "system_info[hash]")),
            *([f"[{str(pid)[-1].translate(LETTERS) * 51}] {changed}: {pid}"] if changed else []),
            f"fx graph cache miss for key {key}",
        )
        text = "\n".join(torch_line(line, "0/0", "V").replace("4123", str(pid)) for line in lines)
        (tmp_path / f"{pid}.log").write_text(text.replace("12:30:00", f"12:3{pid % 2}:00") + "\n")
    scope = cachescope.read(tmp_path)
    (row,) = scope.misses.query("verdict == 'key_changed'").to_dict("records")
    assert row["kind"] == kind
    assert said in headline(Chosen(scope)), headline(Chosen(scope))


@pytest.fixture
def scope(recording: Recording, tmp_path: Path) -> cachescope.Scope:
    """A warm run, and a cold one whose log ends behind the details of its FX graph."""
    folder = recording("2.13.0", "cold_warm") / "text"
    cold = (folder / "00_cold.log").read_bytes()
    (tmp_path / "cold.log").write_bytes(cold[: cold.rindex(b"\n", 0, cold.index(b"fx graph cache miss")) + 1])
    (tmp_path / "warm.log").write_bytes((folder / "01_warm.log").read_bytes())
    return cachescope.read(tmp_path)


def test_it_is_counted_apart(scope: cachescope.Scope) -> None:
    assert scope.lookups["outcome"].tolist() == ["full_miss", "unknown", "hit", "hit"]
    (rate,) = records(scope.hit_rates())
    assert (rate["lookups"], rate["hits"], rate["misses"], rate["unknown"]) == (4, 2, 1, 1)
    assert rate["hit_rate"] == 2 / 3
    assert "2 hit, 1 missed, 1 of unknown outcome (67 % of the 3 known by count" in counts_text(scope)
    assert records(scope.hit_rates(by=["cache"]))[1]["hit_rate"] == 1


def test_it_never_helps_to_meet_a_bar(scope: cachescope.Scope) -> None:
    assert scope.check(min_hit_rate=0.5).passed
    checked = scope.check(min_hit_rate=0.6, max_time_lost_ns=10**15, against=scope)
    assert checked.frame["passed"].tolist() == [False] * 5
    assert all("the outcome of 1 lookup was not seen" in reason for reason in checked.frame["reason"])


def test_it_is_explained_and_drawn_as_what_it_is(scope: cachescope.Scope) -> None:
    explained = scope.explain(1)
    assert (explained.verdict, explained.word) == (None, "unknown")
    drawn = figures.outcomes(scope.lookups, scope.runs)
    assert {trace.name for trace in drawn.data} == {"hit", "full_miss", "unknown"}


def test_it_stays_unknown_in_a_replay(scope: cachescope.Scope) -> None:
    found = scope.what_if(without=["gm"])
    assert found.frame["outcome_after"].tolist()[1] == "unknown"
    assert found.rates["unknown"].tolist() == [1, 1]
