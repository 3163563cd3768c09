"""Logs made of the words of each release of vLLM and SGLang, which were read off their sources and wheels (tests/data/make_messages.py)."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.summary import counts_text
from cachescope.catalogue import messages
from cachescope.readers.logs import vllm_log

TABLE = json.loads((Path(messages.__file__).parent / "messages.json").read_text())["vllm"]
RELEASES = TABLE["releases"]
REASON = "cannot pickle 'RLock' object: it's in m.f"
PACKAGE = "/c/torch_compile_cache/torch_aot_compile/" + "e" * 64 + "/rank_0_0/model"
HOLE = re.compile(r"%\.?\d*[srdif]")


def said(release: str, *beginnings: str, debug: bool = False) -> list[str]:
    """The texts of a release that begin so, in this order."""
    at = RELEASES.index(release)
    of_release = [
        row["text"]
        for row in TABLE["messages"]
        if RELEASES.index(row["first"]) <= at <= RELEASES.index(row["last"])
        and (debug or row["levels"] != ["debug"])
    ]
    return [text for beginning in beginnings for text in of_release if text.startswith(beginning)]


def is_since(release: str, first: str) -> bool:
    return RELEASES.index(release) >= RELEASES.index(first)


def filled(release: str, text: str) -> str:
    rank = "rank_0_0" if is_since(release, "0.8.0") else "rank_0"
    part = "/backbone" if is_since(release, "0.9.2") else ""
    path = f"/c/torch_compile_cache/{'a' * 10}/{rank}{part}"
    values = iter([path] * 9)
    if "AOT" in text or " aot " in text or "from %s, reason" in text:
        values = iter((PACKAGE, REASON))
    elif "factors: env" in text:
        values = iter(("e0", "c1", "c2", "c3", path))

    def value(hole: re.Match[str]) -> str:
        return {"%.2f": "4.20", "%.3f": "1.234", "%d": "3"}.get(hole[0]) or next(values)

    return HOLE.sub(value, text)


def plain(release: str, text: str, line: int) -> str:
    place = f"backends.py:{line}]"
    bracket = "[" if is_since(release, "0.8.0") else ""
    process = "(EngineCore_0 pid=7) " if is_since(release, "0.10.0") else ""
    head = f"{process}INFO 10-02 08:11:40 {bracket}{place} "
    return head + text.replace("\n", f"\r\n{head}")


def coloured(release: str, text: str, line: int) -> str:
    return f"\x1b[0;36m(EngineCore pid=7)\x1b[0;0m \x1b[32mINFO\x1b[0m 10-02 08:11:40 \x1b[90m[backends.py:{line}]\x1b[0m {text}\r"


def in_json(release: str, text: str, line: int) -> str:
    head = {"asctime": "2026-11-22 10:00:00,410", "levelname": "INFO", "name": "vllm.compilation.backends"}
    return json.dumps(head | {"processName": "MainProcess", "process": 42, "message": text})


def written(folder: Path, *lines: str, name: str = "server") -> Path:
    path = folder / f"{name}.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


FORMS: list[Callable[[str, str, int], str]] = [
    plain,
    coloured,
    in_json,
    lambda release, text, line: f"[service a] pid=1 {plain(release, text, line)}",  # VLLM_LOGGING_PREFIX
    lambda release, text, line: plain(release, f"[draft_model] {text}", line),
    lambda release, text, line: "web-1  | " + plain(release, text, line),
]
COLD = ("Starting", "Using cache dir", "Dynamo bytecode", "Cache the graph", "Compiling a graph")
ENDS = ("torch.compile take", "torch.compile took")
NOT_SAVED = ("Cannot save aot", "unable to save AOT")
GRAPHS_LOADED = (
    "Starting", "Using cache dir", "Dynamo bytecode", "Directly load the comp", "Directly lookup the graph",
)  # fmt: skip


def starts(release: str) -> Iterator[tuple[list[str], str, str | None]]:
    """Texts of one start after another, its outcome, and why it was not saved."""
    yield said(release, *COLD, "collected artifacts:", "saving AOT", "saved AOT", *ENDS), "compiled", None
    yield said(release, *GRAPHS_LOADED, *ENDS), "loaded", None
    if is_since(release, "0.11.1"):
        yield said(release, "Directly load AOT", *ENDS), "loaded", None
        yield said(release, *COLD, *NOT_SAVED, *ENDS), "compiled", REASON
        # After the start has ended: 0.16 and 0.17.
        yield said(release, *COLD, *ENDS, *NOT_SAVED), "compiled", REASON
        yield said(release, *GRAPHS_LOADED, *NOT_SAVED, *ENDS), "loaded", REASON


@pytest.mark.parametrize("form", FORMS)
def test_starts_of_every_release_are_understood(form: Callable[[str, str, int], str], tmp_path: Path) -> None:
    wanted = {}
    for release in RELEASES:
        wanted[f"{release}.log"] = made = list(starts(release))
        lines = [
            form(release, filled(release, text), at) for texts, _, _ in made for at, text in enumerate(texts)
        ]
        written(tmp_path, *lines, name=release)
    scope = cachescope.read(tmp_path)
    assert scope.problems.empty
    told: dict[str, list[tuple[str, str | None]]] = {name: [] for name in wanted}
    for row in scope.vllm_starts.itertuples():
        error = row.save_error if isinstance(row.save_error, str) else None
        told[os.path.basename(row.source)].append((row.outcome, error))
    assert told == {name: [start[1:] for start in made] for name, made in wanted.items()}
    counts = scope.lookups["outcome"].value_counts()
    outcomes = [outcome for made in wanted.values() for _, outcome, _ in made]
    assert (counts["hit"], counts["full_miss"]) == (outcomes.count("loaded"), outcomes.count("compiled"))


def test_each_message_of_a_release_is_known_or_told(tmp_path: Path) -> None:
    for release in RELEASES:
        texts = said(release, "", debug=True)
        lines = [plain(release, filled(release, text), at) for at, text in enumerate(texts)]
        written(tmp_path, *lines, name=release)
    problems = cachescope.read(tmp_path).problems
    assert not problems["message"].str.contains("not understood").any()
    for release in RELEASES:
        told = problems["message"][problems["source"].str.endswith(f"/{release}.log")]
        errors = said(release, "Could not write", "Failed to read", "CRITICAL", "No execution")
        assert all(told.str.contains(HOLE.split(text)[0][:60], regex=False).any() for text in errors)


@pytest.mark.parametrize(
    "gone",
    [row["text"] for row in TABLE["messages"] if row["means"] and "hash %s from file" not in row["text"]],
)
def test_what_is_not_in_the_table_is_quoted_and_nothing_is_said_to_be_absent(
    gone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tuple(known for known in messages.messages("vllm") if known.text != gone.rstrip())
    monkeypatch.setattr(vllm_log, "messages", lambda of: left)
    release = next(row["last"] for row in TABLE["messages"] if row["text"] == gone)
    scope = cachescope.read(written(tmp_path, plain(release, filled(release, gone), 7)))
    (problem,) = scope.problems.to_dict("records")
    assert "not understood: " + HOLE.split(gone)[0].rstrip()[:60] in problem["message"]
    assert "does not say that there was none" in counts_text(scope)


@pytest.mark.parametrize(
    "text", ["The graph was put into the store", "artifact is gone", "AOT: no", "Cachefile bad"]
)
def test_a_later_release_may_say_other_things(text: str, tmp_path: Path) -> None:
    lines = (plain("0.33.0", one, 7) for one in (text, "the rest of it: a graph"))
    (problem,) = cachescope.read(written(tmp_path, *lines)).problems["message"]
    assert text in problem


def test_a_compile_that_failed_is_a_miss_with_its_reason(tmp_path: Path) -> None:
    (failed,) = said("0.33.0", "vLLM failed to compile")
    begun = [
        plain("0.33.0", filled("0.33.0", text), at)
        for at, text in enumerate(said("0.33.0", "Using cache dir", "Dynamo"))
    ]
    error = plain("0.33.0", f"RuntimeError: {failed}", 9).replace("backends.py", "core.py")
    (row,) = cachescope.read(written(tmp_path, *begun, error)).vllm_starts.to_dict("records")
    assert (row["outcome"], row["save_error"]) == ("compiled", "vLLM failed to compile the model")
    scope = cachescope.read(written(tmp_path, error))
    assert scope.vllm_starts.empty and len(scope.problems) == 1


@pytest.mark.parametrize(("beginning", "release", "outcome"), [
    ("Cache the graph", "0.13.0", "compiled"),
    ("Store the", "0.12.0", "compiled"),
    ("store the", "0.7.0", "compiled"),
    ("collected artifacts", "0.16.0", "compiled"),
    ("saved AOT", "0.33.0", "compiled"),
    ("unable to save", "0.33.0", "compiled"),
    ("AOT compiled function was loaded", "0.33.0", "loaded"),
])  # fmt: skip
def test_one_line_proves_an_outcome(beginning: str, release: str, outcome: str, tmp_path: Path) -> None:
    """Where the others were lost."""
    text = said(release, beginning, debug=True)[0]
    log = written(tmp_path, plain(release, filled(release, text), 7))
    assert cachescope.read(log).vllm_starts["outcome"].tolist() == [outcome]


@pytest.mark.parametrize("release", [RELEASES[0], "0.11.0", RELEASES[-1]])
def test_whatever_else_a_server_prints_its_starts_are_all_that_is_told(release: str, tmp_path: Path) -> None:
    asked = "Received request cmpl-1: prompt: 'graph', params: SamplingParams()"
    served = [asked, "POST /v1/completions 200"]
    lines = [
        plain(release, filled(release, text), at).replace("10-02", day)
        for day, texts in (("10-02", COLD), ("10-03", GRAPHS_LOADED))
        for at, text in enumerate(said(release, *texts, *ENDS))
    ]
    others = [f"INFO 10-02 08:11:40 [logger.py:{at}] {served[at % 2]}" for at in range(50_000)]
    scope = cachescope.read(written(tmp_path, *others, *lines, *others))
    assert scope.problems.empty
    assert counts_text(scope).startswith("2 lookups in 2 runs: 1 hit, 1 missed")


MESSAGES = json.loads((Path(messages.__file__).parent / "messages.json").read_text())["sglang"]["messages"]
HEADS = "[2026-11-24 15:00:07] ", "[2026-11-24 15:00:07 TP0] ", "[2026-11-24 15:00:07.123 DP1 TP0 EP0] "


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("text", [row["text"] for row in MESSAGES if row["means"]])
def test_what_it_says_of_graphs_is_quoted_and_nothing_denied(text: str, head: str, tmp_path: Path) -> None:
    said = re.sub(r"%\.2f", "4.20", text).replace("%s", "inductor")
    path = tmp_path / "server.log"
    path.write_text(f"{head}server_args=ServerArgs()\n{head}{said}\n{head}The server is fired up!\n")
    scope = cachescope.read(path)
    assert scope.problems["message"].tolist() == [f"SGLang's log says of its cache: {said}"]
    assert scope.lookups.empty
    assert "does not say that there was none" in counts_text(scope)


def test_other_lines_of_it_make_no_log_of_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("".join(f"{head}Compiling a plan, loading the graph store\n" for head in HEADS))
    with pytest.raises(cachescope.SourceError, match="holds no"):
        cachescope.read(path)
