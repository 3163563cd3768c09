"""Forms of caches that strangers made on GPUs and no recording has, made here of recordings: `tests/strangers.py` asks the caches themselves."""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hostile_pickles import Object, entry_bytes

import cachescope
from cachescope.cli import main
from tests.conftest import Directory, Recording


@pytest.fixture
def triton(directory: Directory, tmp_path: Path) -> Path:
    return Path(shutil.copytree(directory("triton_kernels") / "cache_t2150", tmp_path / "work" / "cache"))


def alone(cache: Path) -> set[tuple[str, str]]:
    found = cachescope.read(cache).orphans
    return set(zip(found["cache"], found["reason"], strict=True))


@pytest.mark.parametrize("start", ["", "./", "../other/../"])
def test_relative_paths_of_triton_lead_to_the_folder_that_they_lie_in(triton: Path, start: str) -> None:
    groups = list(triton.rglob("__grp__*.json"))
    for group in groups:
        names = json.loads(group.read_text())["child_paths"]
        relative = {name: f"{start}{os.path.relpath(group.parent / name, triton.parent)}" for name in names}
        group.write_text(json.dumps({"child_paths": relative}))
    assert groups and "triton" not in {kind for kind, why in alone(triton) if "another directory" in why}
    entries = cachescope.read(triton).entries
    details = entries.loc[entries["path"].isin(list(map(str, groups))), "detail"]
    assert all("by relative paths" in detail for detail in details)
    # Nor does the audit call it moved.
    assert "group-moved" not in set(cachescope.audit(triton)["rule"])
    moved = triton.rename(triton.with_name("other"))
    assert ("triton", "its paths are those of another directory, so Triton compiles again") in alone(moved)


def test_best_configurations_at_the_root_are_those_of_a_mega_cache(triton: Path) -> None:
    for number, file in enumerate(triton.rglob("*.best_config")):
        shutil.copy(file, triton / f"{number:064x}.best_config")
    scope = cachescope.read(triton)
    assert scope.orphans["reason"].str.contains("when it loads a mega-cache").sum() == number + 1
    assert set(scope.entries["root"]) == {str(triton)}
    # Nothing else at the root tells what it is: a folder of code has such files, too.
    only = triton / "only"
    only.mkdir()
    shutil.copy(file, only)
    assert set(cachescope.read(only).entries["cache"]) == {"best_config"}


def test_a_best_configuration_belongs_to_a_kernel_in_a_wrapper(triton: Path) -> None:
    scope = cachescope.read(triton)
    files = scope.entries.set_index("entry")
    kernels = [Path(path) for path in files.loc[files["name"].notna() & (files["cache"] == "code"), "path"]]
    for kernel in kernels:
        kernel.unlink(missing_ok=True)
    shutil.rmtree(triton / "triton")  # its .ttir would name the kernel
    links = cachescope.read(triton).links.query("child_kind == 'best_config'")
    assert len(links) == len(list(triton.rglob("*.best_config")))
    assert links["known_by"].str.contains("in the wrapper").any()
    assert "there is no kernel next to it" not in {reason for _, reason in alone(triton)}


def test_copies_of_an_entry_are_one_entry_in_several_places(recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    backbone = tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "backbone"
    for number in range(3):
        shutil.copytree(cache, backbone / f"artifact_shape_None_subgraph_{number}")
    (backbone / "vllm_compile_cache.py").write_text("{}")
    one, many = cachescope.read(cache), cachescope.read(tmp_path)
    assert len(many.entries) == 3 * len(one.entries) + 1
    assert many.past_misses["verdict"].tolist() == one.past_misses["verdict"].tolist() == ["key_changed"]
    columns = [
        "cache_key", "guards_expr", "code_key", "kernel_keys", "time_taken_ns", "device_types", "fx_keys",
    ]  # fmt: skip
    assert many.entries[columns].value_counts(dropna=False).max() % 3 == 0
    explained = many.entries.drop_duplicates([*columns, "size_bytes", "cache"])
    assert len(explained) == len(one.entries.drop_duplicates([*columns, "size_bytes", "cache"])) + 1


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def test_a_mega_cache_of_torch_2_7_is_read_and_names_its_device(tmp_path: Path) -> None:
    properties = "DeviceProperties(type='cuda', index=0, multi_processor_count=60, cc=90, warp_size=32)"
    state = {"cache_key": f"c{'a' * 51}", "source_code": f"x = {properties}", "device_types": {"cuda"}}
    graph = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", state))
    fx, best = f"f{'b' * 51}".encode(), f"{'0' * 64}.best_config".encode()
    artifacts = ((0, fx, graph), (1, best, b"{}"), (3, b"job:None:", b"x"))
    parts = [kind.to_bytes(8, "big") + sized(key) + sized(content) for kind, key, content in artifacts]
    file = tmp_path / "blob"
    for first in range(3):
        file.write_bytes((1).to_bytes(8, "big") + b"".join(parts[first:] + parts[:first]))
        scope = cachescope.read(file)
        (row,) = scope.entries.to_dict("records")
        assert (row["cache"], row["status"], row["fx_keys"]) == ("mega_cache", "ok", (fx.decode(),))
        assert "inductor 1" in row["detail"] and "torch 2.7 alone" in row["detail"]
        (device,) = scope.devices.to_dict("records")
        seen = (device["compute_capability"], device["sm_count"], device["seen_in"])
        assert seen == ("9.0", 60, ("entries",))
    file.write_bytes((1).to_bytes(8, "big") + parts[0] + (9).to_bytes(8, "big") + parts[1])
    assert "unknown type 9" in cachescope.read(file).entries["damage"][0]


def test_failed_compiles_lead_the_answer_with_their_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for number, name in enumerate(("first", "second", "third")):
        folder = f"/tmp/tmp{number}"
        command = f"['/usr/bin/gcc', '{folder}/main.c', '-O3', '-o', '{folder}/cuda_utils.so', '-lcuda']"
        reason = f"CalledProcessError: Command '{command}' returned non-zero exit status 1."
        metrics = {
            "compile_id": f"{number}/0",
            "co_name": name,
            "co_filename": "/model.py",
            "co_firstlineno": 1,
        }
        why = f"backend='inductor' raised:\n{reason}"
        failed = {"fail_type": "BackendCompilerFailed", "fail_reason": why}
        metrics |= {"start_time": 1.0, **(failed if number < 2 else {"fail_type": None, "fail_reason": None})}
        for record in ({"dynamo_start": {"stack": []}}, {"compilation_metrics": metrics}):
            told = json.dumps({**record, "frame_id": number, "frame_compile_id": 0, "attempt": 0})
            lines.append(f"V0303 09:09:4{number}.000000 7 torch/_dynamo/utils.py:8] {told}\n")
    log = tmp_path / "trace.log"
    log.write_text("".join(lines))
    assert main(["explain", "--no-index", str(log)]) == 0
    said = capsys.readouterr().out
    answer = r"^2 of 3 compiles failed .*\n.*raised: CalledProcessError:(?s:.)*problems:"
    assert re.search(answer, said, re.MULTILINE)
    assert "/usr/bin/gcc could not build cuda_utils.so: it returned" in " ".join(said.split())


def told_by_tlparse(trace: Path, folder: Path, has_records: bool) -> Path:
    """What tlparse leaves of a trace: its records with the payloads beside them, or the list of artifacts and the events."""
    listed: dict[str, dict[str, list[dict[str, str]]]] = {}
    events, lines, texts = [], [], dict[int, str]()
    for number, record in enumerate(re.split(r"\n(?=V)", trace.read_text())):
        head, _, payload = record.partition("\n")
        form = r"V(\d+) (\S+) +(\d+) (\S+)\] (.*)"
        month_day, time, thread, place, told = re.fullmatch(form, head).groups()
        envelope, payload = json.loads(told), payload.replace("\n\t", "\n").removeprefix("\t")
        kind = next(iter(envelope))
        ids = "/".join(str(envelope.get(name, "-")) for name in ("frame_id", "frame_compile_id"))
        artifacts = listed.setdefault(f"[{ids}]", {"artifacts": []})["artifacts"]
        name = f"{number}.txt"
        if kind == "str":
            texts[envelope["str"][1]] = envelope["str"][0]
            continue
        if kind == "chromium_event":
            said = json.loads(payload)
            events.append({**said, "args": {**(said["args"] or {}), "compile_id": ids}})
        elif kind == "artifact":
            name = f"{envelope['artifact']['name']}_{number}.json"
            artifacts.append({"name": name, "url": name})
        elif kind == "dynamo_start":
            name, frame = f"compilation_metrics_{number}.html", envelope[kind]["stack"][-1]
            artifacts.append({"name": name, "url": name})
            payload = f"<li>{texts[frame['filename']]}:{frame['line']} in {frame['name']}<br>\n</div>"
        (folder / name).write_text(payload)
        stamp = f"2026-{month_day[:2]}-{month_day[2:]}T{time}Z"
        path = f" {place.rpartition(':')[0]}"
        at = {"pathname": path, "lineno": 1, "thread": int(thread), "timestamp": stamp}
        lines.append(json.dumps({**envelope, **at, "payload_filename": name}, sort_keys=True))
    strings = [texts.get(number, "") for number in range(max(texts) + 1)]
    (folder / "chromium_events.json").write_text(json.dumps(events, sort_keys=True, indent=2))
    (folder / "compile_directory.json").write_text(json.dumps(listed, indent=2))
    if has_records:
        (folder / "raw.jsonl").write_text("\n".join([json.dumps({"string_table": strings}), *lines, ""]))
    return folder


@pytest.mark.parametrize("has_records", [True, False])
def test_a_folder_of_tlparse_without_its_log_tells_what_the_trace_told(
    has_records: bool, recording: Recording, tmp_path: Path
) -> None:
    (trace, *_) = sorted((recording("2.13.0", "recompiles") / "trace").iterdir())
    one = cachescope.read(trace)
    scope = cachescope.read(told_by_tlparse(trace, tmp_path, has_records))
    columns = ["cache", "cache_key", "outcome", "compile_id", "function", "line", "detail_set", "guards_expr"]
    pd.testing.assert_frame_equal(scope.lookups[columns], one.lookups[columns])
    assert scope.problems.empty and len(scope.runs) == 1
    assert (scope.lookups["time"] - one.lookups["time"]).abs().max() < pd.Timedelta(minutes=1)
    compiles = ["compile_id", "function", "file", "line", "recompile_reasons"]
    # Without records, a backward graph that is compiled later has no row of its own.
    told = one.compiles[has_records | (one.compiles["kind"] != "backward")]
    pd.testing.assert_frame_equal(scope.compiles[compiles], told[compiles].reset_index(drop=True))
    assert scope.phases["self_time_ns"].sum() == one.phases["self_time_ns"].sum() or has_records


def test_payloads_that_tlparse_lost_and_folders_a_link_leaves(recording: Recording, tmp_path: Path) -> None:
    (trace, *_) = sorted((recording("2.13.0", "cold_warm") / "trace").iterdir())
    (inner := tmp_path / "inner").mkdir()
    told_by_tlparse(trace, inner, True)
    for number, file in enumerate(inner.glob("*_cache_*.json")):
        file.rename(tmp_path / file.name)
        if number % 2:
            file.symlink_to(tmp_path / file.name)
    lookups = cachescope.read(inner).lookups
    assert lookups["outcome"].tolist() == cachescope.read(trace).lookups["outcome"].tolist()
    assert lookups["cache_key"].isna().all()


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.15.0"])
def test_a_lock_says_of_which_release_the_keys_are(
    version: str, recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = recording(version, "config_flip") / "cache"
    assert main(["lock", "--no-index", str(cache), "-o", str(tmp_path / "cache.lock")]) == 0
    # Entries of 2.6 hold no fields, and the torch that is installed here made none of them.
    release = "a torch whose version nothing says"
    if version != "2.6.0":
        release = f"torch {version.removesuffix('.0')}\n"
    assert f"made by {release}" in capsys.readouterr().out


def test_a_library_of_aotinductor_by_itself_and_the_gpu_of_a_package(tmp_path: Path) -> None:
    library, package = tmp_path / "model.so", tmp_path / "model.pt2"
    library.write_bytes(
        b"\x7fELF" + bytes(99) + b"\0AOTInductorModelContainerCreate\0cuLaunchKernel\0" + bytes(99)
    )
    (row,) = cachescope.read(library).entries.to_dict("records")
    assert (row["cache"], row["status"], row["device_types"]) == ("aotinductor", "ok", ("cuda",))
    said = {"AOTI_DEVICE_KEY": "cuda", "AOTI_COMPUTE_CAPABILITY": "90", "AOTI_MACHINE": "x86_64"}
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("model/data/aotinductor/model/kernel.cubin", "code")
        archive.writestr("model/data/aotinductor/model/c.wrapper_metadata.json", json.dumps(said))
    devices = cachescope.read(package).devices.set_index("type")
    assert devices.loc["cuda", "compute_capability"] == "9.0" and devices.loc["cpu", "arch"] == "x86_64"
    library.write_bytes(b"\x7fELF" + bytes(200))
    with pytest.raises(cachescope.errors.CachescopeError, match="holds no trace"):
        cachescope.read(library)
