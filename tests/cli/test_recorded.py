"""``cachescope recorded``: the texts that a trace has of one compile. torch wrote the hash of each beside it."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.errors import NotFoundError
from tests.cli.conftest import Run
from tests.conftest import Recording

_RECORD = re.compile(rb'\] (\{"(?!chromium_event)[^\n]*"has_payload": "([0-9a-f]{32})"\})\n')


def hashes_in(trace: Path) -> list[str]:
    """The hashes that torch wrote of the texts of compile 0/0, in order."""
    found = [(json.loads(match[1]), match[2].decode()) for match in _RECORD.finditer(trace.read_bytes())]
    return [text for one, text in found if (one.get("frame_id"), one.get("frame_compile_id")) == (0, 0)]


@pytest.mark.parametrize("release", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_every_text_is_the_one_that_torch_hashed(release: str, recording: Recording) -> None:
    scope = cachescope.read(recording(release, "training") / "trace", index=False)
    texts = scope.recorded("0/0")
    for run, sources in zip(scope.runs["run"], scope.runs["sources"], strict=True):
        own = texts.loc[texts["run"] == run, "text"]
        found = [hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() for text in own]
        assert found == hashes_in(Path(sources[0]))
        assert len(found) > 10
    graphs = {"dynamo_output_graph", "aot_backward_graph"}
    assert graphs | {"inductor_output_code", "dynamo_cpp_guards_str"} <= set(texts["name"])
    code = texts[texts["name"] == "inductor_output_code"]
    assert all(file.endswith(".py") for file in code["file"].dropna())


def test_it_lists_what_there_is_and_shows_what_is_asked_for(run: Run) -> None:
    sample = cachescope.sample("config_flip")
    done = run("recorded", "0/0", sample)
    assert (done.status, done.err) == (0, "")
    first, *lines = done.out.splitlines()
    assert first == "what torch recorded of compile 0/0 in runs 0-2"
    (listed,) = [line.split() for line in lines if "before_post_grad" in line]
    assert listed[-3:] == ["in", "runs", "0-1"]
    shown = run("recorded", "0/0", sample, "--show", "dynamo_output_graph").out
    # The same graph in all three runs: once.
    head = "# dynamo_output_graph of compile 0/0, runs 0-2\n"
    assert shown.startswith(f"{head}class GraphModule(torch.nn.Module):\n")
    assert shown.count("class GraphModule") == 1
    (text,) = set(cachescope.read(sample).recorded("0/0").query("name == 'dynamo_output_graph'")["text"])
    assert shown.partition("\n")[2].rstrip() == text.rstrip()


def test_what_is_not_there_is_said(run: Run) -> None:
    sample = cachescope.sample("config_flip")
    done = run("recorded", "7/0", sample)
    assert done.status == 2
    assert done.err == "cachescope: no trace that was read has a text of a compile '7/0'\n"
    done = run("recorded", "0/0", sample, "--show", "nothing")
    assert done.status == 2
    assert "compile 0/0 has no text 'nothing'; it has dynamo_output_graph, " in done.err


def test_hidden_texts_name_nobody(run: Run) -> None:
    sample = cachescope.sample("config_flip")
    done = run("recorded", "0/0", sample, "--redact", "--show", "dynamo_output_graph")
    assert (done.status, "record_programs" in done.out, "matmul_relu" in done.out) == (0, False, False)
    assert "torch.relu" in done.out


@pytest.fixture(scope="module")
def trace(recording: Recording) -> bytes:
    first, *_ = sorted((recording("2.15.0", "training") / "trace").iterdir())
    return first.read_bytes()


@given(st.data())
def test_what_stands_before_a_damage_is_read_as_if_there_were_none(
    trace: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = tmp_path_factory.mktemp("damaged") / "trace.log"
    at = data.draw(st.integers(10_000, len(trace)))
    rest = trace[data.draw(st.integers(at, len(trace))) :]
    log.write_bytes(trace[:at] + data.draw(st.binary(max_size=20)) + rest)
    before = [text for end, text in _texts(trace) if end < at]
    try:
        texts = cachescope.read(log, index=False).recorded("0/0")["text"]
    except NotFoundError:
        texts = []
    assert list(texts)[: len(before)] == before


def _texts(trace: bytes) -> list[tuple[int, str]]:
    """The texts of compile 0/0, by a reading of its own, each with where it ends."""
    found = []
    for match in _RECORD.finditer(trace):
        own = json.loads(match[1])
        lines = re.compile(rb"(?:\t[^\n]*\n)+").match(trace, match.end())
        if lines and (own.get("frame_id"), own.get("frame_compile_id")) == (0, 0):
            found.append((lines.end(), lines[0][1:-1].replace(b"\n\t", b"\n").decode()))
    return found


def test_a_text_that_is_cut_says_so(trace: bytes, run: Run, tmp_path: Path) -> None:
    end, text = next((end, text) for end, text in _texts(trace) if text.count("\n") > 10)
    (tmp_path / "trace.log").write_bytes(trace[: end - 200])
    texts = cachescope.read(tmp_path / "trace.log", index=False).recorded("0/0")
    assert texts["is_whole"].tolist() == [True] * (len(texts) - 1) + [False]
    (cut,) = texts.loc[~texts["is_whole"], "text"]
    assert cut != text and text.startswith(cut)
    name = texts["name"].iloc[-1]
    assert "1 incomplete" in run("recorded", "0/0", tmp_path).out
    shown = run("recorded", "0/0", tmp_path, "--show", name).out
    assert "incomplete: its log was cut or changed" in shown.splitlines()[0]
