"""What the commands say of recordings: what was done in each is known, and so is what has to be said of it. ``cachescope demo`` explains those that ship."""

import pytest

from cachescope.samples import sample_names
from tests.cli.conftest import Run
from tests.conftest import Recording

pytestmark = pytest.mark.slow

NOT_TRACED = "no event of Dynamo's tracing"


@pytest.mark.parametrize(("given", "said", "unsaid"), [
    ("explain config_flip", ["^1.6 s of the 15.4 s compiled after misses were avoidable, by epilogue_fusion", "1 epilogue_fusion: True -> False", "1.6 s avoidable"], []),
    ("explain config_flip", ["6 lookups in 3 runs: 2 hit, 4 missed", "1.6 s avoidable · 2 misses", "the first: aotautograd azfhfvcu…", "compared with run 0", "the same graph; nothing else differs"], []),
    ("explain config_flip", ["do, just before the first compile (or in mode or options of torch.compile, if set there): torch._inductor.config.epilogue_fusion = True", "first lookups (cold start): 2 misses", "problems: 0"], []),
    ("explain graph_relu_tanh", ["- relu = torch.relu(matmul)", "+ tanh = torch.tanh(matmul)"], []),
    ("explain dynamic_guards", ["11 <= L['t0']"], []),
    ("explain inputs", ["shape [8, 16] -> [12, 16]"], []),
    # What made further entries.
    ("explain config_flip/cache", ["inductor_config[epilogue_fusion] True -> False"], ["2 entries"]),
    ("explain config_flip/cache", ["1 entry was made although the graph had been stored before"], []),
    # With a log the log has the word.
    ("explain config_flip/trace config_flip/cache", ["6 lookups"], ["made although"]),
    # The recordings hold no compiled files.
    ("explain cache_key_tag/cache", ["The generated source is the same", "not all compiled kernels could be compared"], ["but kernels"]),
    ("explain inputs/cache", ["made although"], ["generated source is the same"]),
    # What a trace lacks.
    ("time killed_compiling/trace", ["10 events without an end in the log"], ["TORCH_TRACE"]),
    ("time training/text", ["TORCH_TRACE"], ["without an end"]),
    ("time training/trace", ["in all"], [NOT_TRACED]),
    ("time 2.6.0:training/trace", [NOT_TRACED], ["TORCH_TRACE"]),
    ("compiles killed_compiling/trace", ["; 1 without an end in the log"], []),
    ("compiles training/text", ["TORCH_TRACE"], []),
    ("entries config_flip/cache", ["^5 entries of ", "ft4g52pb6tzvpozp…"], []),
    # Compiled graphs are listed one by one, other files are counted by kind.
    ("entries config_flip/cache --most 1", ["The first 1 of 4 graphs; --most 4 has all."], []),
    ("entries aot_entry_truncated/cache", ["1 damaged:", "truncated"], []),
    ("entries entry_truncated/cache", ["1 ok, 1 damaged (damaged, next to an intact one)"], []),
    ("entries entry_truncated/cache", ["1 file of 40.1 kB can go (--prune-list prints the paths): 1 fxgraph: damaged: truncated"], []),
    ("entries dynamic_guards/cache", ["2 ok (same key, other code; same key, other guards)"], ["duplicate"]),
    ("entries four_processes/cache", ["6 duplicates of", "4 files of which 1 would be enough"], []),
    ("contexts isolation_context/trace", ["Known by its hash alone: torch_version_hash", "Not known of any: triton_version_hash"], ["Isolation key:"]),
    ("contexts isolation_context/trace", ["Known and equal in all 2 contexts: torch_version_hash.", "Context 0 beside context 1"], []),
    ("contexts isolation_context/cache", ["reconstructed from entries"], ["cachescope capture"]),
    ("contexts 2.6.0:config_flip/cache", ["cachescope capture"], []),
    ("check --help", ["3 a bar is not met"], []),
])  # fmt: skip
def test_what_is_said(given: str, said: list[str], unsaid: list[str], run: Run, recording: Recording) -> None:
    """A recording is named without its version where that is 2.13.0; what begins with ^ begins the answer."""

    def source(word: str) -> object:
        version, _, place = word.rpartition(":")
        name, _, kind = place.partition("/")
        return recording(version or "2.13.0", name) / kind

    command, *words = given.split()
    is_option = [word.startswith("-") or word.isdigit() for word in words]
    done = run(command, *(w if option else source(w) for w, option in zip(words, is_option, strict=True)))
    text = done.flat
    assert (done.status, done.err) == (0, "")
    assert [one for one in said if not (text.startswith(one[1:]) if one[0] == "^" else one in text)] == []
    assert [one for one in unsaid if one in text] == []


def test_the_tour_is_explained_and_the_last_lines_say_where_to_go_on(run: Run) -> None:
    out = run("demo").out
    assert "48 lookups in 6 runs: 22 hit, 26 missed" in out
    assert "epilogue_fusion: True -> False" in out
    assert "cpp_runtime_thread_count: 2 -> 1" in out
    last = "\n".join(out.splitlines()[-6:])
    assert "make lab" in last and "notebooks/01_why_did_it_miss.ipynb" in last
    assert all(name in out for name in sample_names())


def test_every_sample_is_explained(run: Run) -> None:
    for name in sample_names():
        out = run("demo", name).out
        assert " lookups in " in out or "no lookups were read; " in out
        # Also of what ships as an archive.
        assert run("explain", *out.partition("This was: cachescope explain ")[2].split()[:1]).status == 0


def test_json_is_the_object_of_explain(run: Run) -> None:
    printed = run("demo", "config_flip", "--json").json
    (fields,) = (cause["fields"] for cause in printed["causes"] if cause["fields"])
    assert fields == ["inductor_config[epilogue_fusion]"]
