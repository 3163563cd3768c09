"""One entry and everything known about it, from directories of real torch and Triton."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hostile_pickles import Object, entry_bytes

import cachescope
from cachescope.frames.directory_rows import Candidate
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.generated_files import kernels_of
from cachescope.table import Table
from tests.conftest import Directory, Recording
from tests.keys.test_isolation import A100, H100
from tests.programs import python
from tests.readers.test_snapshot import SNAPSHOT

pytestmark = pytest.mark.slow  # every kind of entry of every version

HOSTILE = "<script>alert(1)</script>\x1b[31m"
VERSIONS = ["2.6.0", "2.10.0", "2.13.0", "2.15.0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_source_is_the_file_that_torch_wrote_beside_it(version: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, "training") / "cache")
    graphs = scope.entries[scope.entries["cache"] == "fxgraph"]
    assert len(graphs) == 4
    for row in graphs.itertuples():
        one = scope.entry(row.entry)
        code = scope.entry(row.code_key)
        assert one.row.entry == row.entry and code.row.path.endswith(f"{row.code_key}.py")
        assert one.source_code == code.source_code == Path(code.row.path).read_text()
        assert [kernel.kernel for kernel in kernels_of(one.source_code)] == one.kernels["kernel"].tolist()
        assert one.source.language == "python"


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_joined_to_what_it_uses_and_what_uses_it(version: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, "training") / "cache")
    aot = scope.entries[scope.entries["cache"] == "aotautograd"].iloc[0]
    one = scope.entry(aot["cache_key"])
    assert set(one.links["child_key"]) == set(aot["fx_keys"])
    assert set(one.links["parent"]) == {aot["entry"]}
    graph = scope.entry(aot["fx_keys"][0])
    text = repr(graph)
    assert f"used by aotautograd {aot['cache_key']}" in text
    assert f"uses code {graph.row.code_key}" in text
    assert "the source is in the FX entries it points to" in (one.source.why_not or "")
    assert one.source_code is None


def test_every_candidate_under_the_key_is_shown_with_its_guards(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "dynamic_guards") / "cache")
    newest = scope.guards[scope.guards["cache"] == "fxgraph"].iloc[-1]
    one = scope.entry(newest["cache_key"][:10])
    assert one.row.entry == newest["entry"]
    assert len(one.guards) == len(one.frame) == 2
    text = repr(one)
    assert all(guards in text for guards in one.guards["guards_expr"])
    assert "same key, other code; same key, other guards" in text
    # Why there is a second one.
    (miss,) = one.past_misses.itertuples()
    assert miss.entry == newest["entry"]
    assert "its key is stored under other guards too" in text


def test_of_many_candidates_the_first_and_the_entry_itself_are_shown(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "dynamic_guards") / "cache")
    one = scope.entry(scope.guards[scope.guards["cache"] == "fxgraph"].iloc[-1]["cache_key"])
    other, mine = (
        [row for row in one.rows(Candidate) if (row.entry == one.row.entry) == is_mine]
        for is_mine in (False, True)
    )
    guards = Table(Candidate, [*other * 20, *mine])
    text = repr(replace(one, tables={**one.tables, "guards": guards}))
    assert text.count(", 20") >= 9 and text.count("this one, ") == 1
    assert "21 candidates under the key" in text and "… and 12 more: --json and .guards have all" in text


def test_a_miss_that_made_it_is_told_with_its_field_and_knows_the_second(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "cache")
    (miss,) = scope.past_misses.itertuples()
    second = scope.entry(miss.entry)
    assert [change.field for change in second.changes] == ["inductor_config[epilogue_fusion]"]
    assert "inductor_config[epilogue_fusion]  True -> False" in repr(second)
    first = scope.entry(miss.baseline_entry)
    assert first.changes == () and f"another miss made fxgraph {miss.cache_key}" in repr(first)


def test_a_damaged_one_beside_a_sound_one(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "entry_truncated") / "cache")
    (damaged,) = scope.entries.loc[scope.entries["status"] == "damaged", "entry"]
    one = scope.entry(damaged)
    assert "status      damaged: truncated" in repr(one) and "can go" in repr(one)
    assert (one.source_code, one.source.why_not) == (None, f"damaged: {one.row.damage}")
    assert len(one.problems) == 1
    # The key itself speaks of the sound one.
    sound = scope.entry(one.row.cache_key)
    assert sound.row.status == "ok" and "1 candidate under the key, and 1 damaged" in repr(sound)
    assert "damaged, next to an intact one" in repr(sound)


def test_a_triton_kernel_is_found_by_each_of_its_names(directory: Directory) -> None:
    folder = directory("triton_cross")
    scope = cachescope.read(folder)
    spelled = sorted(path.parent for path in folder.rglob("__grp__*.json"))
    assert {len(path.name) for path in spelled} >= {43, 52}
    for path in spelled:
        one = scope.entry(path.name)
        assert {Path(file).parent.name for file in one.frame["path"]} >= {path.name}
        assert one.row.device_types == ("cuda",) and one.row.name is not None
        assert scope.entry(one.row.cache_key[:20]).row.entry == one.row.entry
        assert one.source_code is not None and "tt.func" in one.source_code


@pytest.mark.parametrize("version", VERSIONS)
def test_no_wrapper_says_which_choice_it_took(version: str, directory: Directory) -> None:
    scope = cachescope.read(directory(f"torch_{version}"))
    (timed,) = scope.entries.loc[scope.entries["cache"] == "autotune", "entry"]
    hashes = {choice.rpartition("-")[2] for choice in scope.autotune["choice"]}
    wrappers = [Path(path).read_text() for path in scope.entries["path"] if path.endswith(".py")]
    assert len(wrappers) > 5
    assert not any(name in text for name in hashes for text in wrappers)
    assert "ended in    entries that are not known" in repr(scope.entry(timed))


def machine(folder: Path, version: str, *devices: str) -> Path:
    """A snapshot, made by hand, of a process with these devices."""
    form = {"runtime_context": None, "compile_context": {"runtime": "CUDA", "runtime_version": version}}
    path = folder / "snapshot.json"
    path.write_text(json.dumps(SNAPSHOT | {"context": form, "device_properties": devices}))
    return path


@pytest.mark.parametrize("step", [0, 1, 2], ids=["2.13", "2.10", "2.8"])
def test_a_list_for_cutlass_says_for_which_machine(step: int, directory: Directory, tmp_path: Path) -> None:
    folder = directory("cutlass_configs")
    recorded = json.loads((folder / "provenance.json").read_text())["steps"][step]
    cache = folder / Path(recorded["environment"]["TORCHINDUCTOR_CACHE_DIR"]).name
    release = recorded["versions"]["torch_version"].partition("+")[0]
    scope = cachescope.read(cache, machine(tmp_path, "12.4", H100, A100))
    names = {"80": "NVIDIA A100-SXM4-80GB", "90": "NVIDIA H100 80GB HBM3"}
    said = 0
    for written in recorded["truth"]["written"]:
        one = scope.entry(written["request_key"])
        assert one.made_for is not None
        if written["arch"] in names and written["toolkit"] == "12.4" and written["level"] == "0":
            said += 1
            board = f"{names[written['arch']]} (arch {written['arch']})"
            assert one.made_for.startswith(f"{board}, CUDA 12.4, instantiation level 0, torch ")
            assert release.rpartition(".")[0] in one.made_for
        else:
            assert one.made_for.startswith("no machine that was read (arch 80, 90; CUDA 12.4; level 0)")
        assert "made for" in repr(one)
    assert 0 < said < len(recorded["truth"]["written"])
    alone = cachescope.read(cache).entry(written["request_key"])
    assert (alone.made_for or "").startswith("not known: no CUDA device")


def test_every_entry_of_every_directory_can_be_shown(directory: Directory) -> None:
    scope = cachescope.read(directory("torch_2.13.0"))
    kinds = scope.entries.drop_duplicates(["cache", "status"])
    assert len(kinds) > 12
    for row in kinds.itertuples():
        one = scope.entry(row.entry)
        assert row.path in repr(one) and row.cache in one._repr_html_()
        assert (one.source_code is None) == (one.source.why_not is not None)


def test_a_key_of_another_kind_than_graphs_is_found(directory: Directory) -> None:
    scope = cachescope.read(directory("torch_2.13.0"))
    for kind in ("autotune", "memoizer", "on_disk_cache", "pgo", "precompile"):
        row = scope.entries[scope.entries["cache"] == kind].iloc[0]
        assert scope.entry(row["cache_key"]).row.cache == kind
    # A lock is called after what it is for, which is meant where it is there.
    (blob,) = scope.entries.loc[scope.entries["path"].str.endswith("mega_cache.bin"), "entry"]
    assert scope.entry("mega_cache.bin").row.entry == blob


def test_what_lies_in_a_mega_cache_alone_is_found_in_it(directory: Directory) -> None:
    scope = cachescope.read(directory("torch_2.13.0") / "mega_cache.bin")
    one = scope.entry(scope.entries["fx_keys"].iloc[0][0])
    assert one.row.cache == "mega_cache" and one.source.why_not == "a file of this kind holds no source"


def test_what_is_meant_by_nothing_or_by_several_is_said(recording: Recording) -> None:
    scope = cachescope.read(recording("2.6.0", "config_flip") / "cache")
    asked = {"zz": "no key 'zz'", "": "an empty key", "a": "begins 2 keys", "entry": "begins 2 keys"}
    for name, said in {**asked, 99: "no entry 99", "99": "no entry 99"}.items():
        with pytest.raises(cachescope.NotFoundError, match=said):
            scope.entry(name)


def test_an_entry_that_vanished_says_so(recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    scope = cachescope.read(cache)
    scope.save(tmp_path / "saved")
    shutil.rmtree(cache)
    for of in (scope, cachescope.read(tmp_path / "saved")):
        one = of.entry(of.entries.loc[of.entries["cache"] == "fxgraph", "cache_key"].iloc[0])
        assert one.source.why_not == "the file is gone"
        assert "no source: the file is gone" in one._repr_html_()


def test_what_the_file_says_is_escaped(tmp_path: Path) -> None:
    state = dict.fromkeys(("cache_key", "source_code", "guards_expr", "disabled_cudagraphs_reason"), HOSTILE)
    data = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", state))
    folder = tmp_path / "fxgraph" / "aa" / f"f{'a' * 51}"
    folder.mkdir(parents=True)
    (folder / entry_name(data)).write_bytes(data)
    one = cachescope.read(tmp_path).entry(0)
    assert one.source_code == HOSTILE
    html = one._repr_html_()
    assert html.count("&lt;script&gt;") >= 4 and "<script>" not in html
    for text in (html, repr(one)):
        assert "\x1b" not in text and "\\x1b[31m" in text


@pytest.mark.torch
def test_why_a_graph_is_no_cuda_graph_is_torchs_own_reason(tmp_path: Path) -> None:
    code = (
        "import torch\n"
        "graph = torch.compile(lambda x: (x * 2).relu(), mode='reduce-overhead')\n"
        "graph(torch.ones(4, 8))\n"
        "torch.compile(lambda x: (x * 3).relu())(torch.ones(4, 8))"
    )
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    python(code, variables=os.environ | variables)
    scope = cachescope.read(tmp_path)
    reasons = scope.entries.loc[scope.entries["cache"] == "fxgraph", ["entry", "cudagraphs_skipped"]]
    (skipped,) = reasons.dropna().itertuples()
    assert len(reasons) == 2
    assert "skipping cudagraphs" in skipped.cudagraphs_skipped
    assert skipped.cudagraphs_skipped.strip() in repr(scope.entry(skipped.entry))
    scope.save(tmp_path / "saved")
    pd.testing.assert_frame_equal(cachescope.read(tmp_path / "saved").entries, scope.entries)
