"""Attacks that work are never proven, and harmless folders are no danger.

Every attack is run in a child, to show that it works, and the same bytes are audited. None of the harmless folders may have a
danger or a warning; what code nothing vouches for is said.
"""

import io
import os
import pickle
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.auditing.pickles import Place, audit_pickle
from cachescope.keys.hashing import stored_code_hash
from tests.auditing import attacks
from tests.auditing.hostile_entries import (
    AOT,
    FX,
    GRAPH,
    RESULT,
    _loaded_storage,
    entry,
    graph,
    mega_cache,
    write,
)
from tests.conftest import Recording
from tests.hostile_pickles import Object, entry_bytes, found, plain, text_of
from tests.programs import ran

ATTACKS = attacks.attacks()


def laid(root: Path, kind: str, data: bytes) -> Path:
    """A cache with the bytes where torch loads them so."""
    if kind == "wrapper":
        key = stored_code_hash(data.decode())
        write(root, f"{key[1:3]}/{key}.py", data)
    elif kind == "setting":
        write(root, f"cc/{'0' * 64}.best_config", data)
    else:
        held = {"pickle": lambda: data, "storage": lambda: _loaded_storage(data),
                "guard": lambda: entry_bytes(graph(guards_expr=data.decode())),
                "stride": lambda: entry_bytes(graph(output_strides=[None, ("8", data.decode())]))}  # fmt: skip
        entry(root, FX, held[kind]())
    return root


def against(path: Path) -> set[str]:
    """The levels of what is said, without notes."""
    return set(cachescope.audit(path)["level"]) - {"note"}


@pytest.mark.slow
def test_every_attack_works(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = ran([sys.executable, attacks.__file__, str(tmp_path)], status=None)
    failed = [name for place, name in enumerate(ATTACKS) if not os.path.exists(tmp_path / str(place) / "@")]
    assert not failed, done.stdout
    assert len(ATTACKS) >= 150


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_is_proven(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = cachescope.audit(laid(tmp_path / "cache", *ATTACKS[name]))
    # That what is made is no graph is true of harmless ones, too.
    assert set(found.loc[found["level"] != "note", "rule"]) - {"entry-foreign-object"}
    assert not os.path.exists("@")


@pytest.mark.parametrize("line", [
    "aten.add = print", "del aten.add", "torch.ops.aten.add.Tensor = print", "aten.add += 1", "for aten.add in (1,): pass",
    "async_compile = AsyncCompile(); async_compile.wait(exit())", "async_compile = AsyncCompile(); async_compile.wait(globals(x=1))",
    "from torch._inductor.wrapper_benchmark import compiled_module_main; compiled_module_main('None', print)",
    "if __name__ != '__main__':\n    from torch._inductor.wrapper_benchmark import compiled_module_main\n    compiled_module_main('None', print)",
])  # fmt: skip
def test_what_changes_torch_or_ends_the_program_is_not_proven(line: str, tmp_path: Path) -> None:
    wrapper = f"{attacks.HEADER}{line}\n".encode()
    assert against(laid(tmp_path / "cache", "wrapper", wrapper)) == {"warning"}


@pytest.mark.parametrize("before", [
    b"N0" * 600_000, b"I" + b"0" * 5_000 + b"\n0", b"(" * 3_000 + b"1" * 3_000, b"Np7\n0", b"S'x'\n0", b"U\x01x0",
])  # fmt: skip
@pytest.mark.parametrize("name", ["README", "notes~", "LICENSE.txt"])
def test_what_lies_beside_entries_is_loaded_whatever_its_name(
    name: str, before: bytes, tmp_path: Path
) -> None:
    entry(tmp_path, FX, entry_bytes(graph()))
    assert against(tmp_path) == set()
    _in_key(name, before + attacks.RUNS)(tmp_path)
    assert against(tmp_path)


@pytest.mark.parametrize("inner", ["output_strides", "metadata"])
def test_shared_containers_cost_no_more_than_they_weigh(inner: str, tmp_path: Path) -> None:
    doubled = b"]\x94" + b"".join(b"0](h%ch%ce\x94" % (place, place) for place in range(90))
    metadata = "torch._functorch._aot_autograd.schemas.ViewAndMutationMeta"
    name = GRAPH if inner == "output_strides" else metadata
    made = b"0" + found(*name.rsplit(".", 1)) + b")\x81}"
    data = b"\x80\x04" + doubled + made + text_of(inner) + b"h\x5asb."
    entry(tmp_path, AOT, data)
    assert against(tmp_path) <= {"warning"}


RESULTS = RESULT.rpartition(".")[0]


@pytest.mark.parametrize("held", [
    Object(f"{RESULTS}.CompiledForward", {"fx_graph_cache_info": ("/tmp/elsewhere", [])}),
    Object(f"{RESULTS}.CompiledBackward", {"fx_graph_cache_info": ("../../elsewhere", [])}),
    Object("torch._functorch._aot_autograd.autograd_cache.CompiledForward", {"fx_graph_cache_key": "../../elsewhere"}),
    Object("torch._inductor.triton_bundler.TritonKernelArtifacts", {"kernel_hash": "A" * 52, "device": "../../..", "artifacts": []}),
])  # fmt: skip
def test_an_entry_that_leads_elsewhere_is_a_danger(held: Object, tmp_path: Path) -> None:
    entry(tmp_path, AOT, entry_bytes(Object(RESULT, {"compiled_fw": held})))
    assert "danger" in against(tmp_path)


@pytest.mark.parametrize("held", [
    ["0]; f("], {"0]; f("}, {0: "0]; f("}, Object("torch.utils._ordered_set.OrderedSet", None, (["0]; f("],)),
])  # fmt: skip
def test_texts_that_torch_makes_python_of_are_found_in_every_container(held: Any, tmp_path: Path) -> None:
    metadata = Object(
        "torch._functorch._aot_autograd.schemas.ViewAndMutationMeta", {"mutated_inp_runtime_indices": held}
    )
    entry(tmp_path, AOT, entry_bytes(Object(RESULT, {"runtime_metadata": metadata})))
    assert against(tmp_path) == {"warning"}


def changed_afterwards(of: bytes, use: bytes) -> bytes:
    """An object made of a dict with code that runs, which the dict no longer holds in the end."""

    def graph_of(code: str) -> bytes:
        held = {"source_code": code, "cache_key": stored_code_hash(code)}
        return b"(" + b"".join(plain(key) + plain(value) for key, value in held.items()) + b"u"

    evil, harmless = graph_of(f"{attacks.MAKE}\n"), graph_of("x = 1\n")
    return b"\x80\x04" + of + b"}\x94" + evil + use + b"h\x00" + harmless + b"0."


def test_an_object_is_made_of_what_a_container_held_then(tmp_path: Path) -> None:
    data = changed_afterwards(found(*GRAPH.rsplit(".", 1)) + b")\x81", b"b")
    made: Any = Unpickler(io.BytesIO(data)).load()
    assert attacks.MAKE in made.source_code
    entry(tmp_path, FX, data)
    assert "danger" in against(tmp_path) or "warning" in against(tmp_path)


class Unpickler(pickle.Unpickler):
    """Python's own, with a plain class for every global."""

    def find_class(self, module: str, name: str) -> Any:
        return type(name, (), {})


@pytest.mark.parametrize("text", attacks.BOMBS)
def test_what_would_take_for_ever_is_a_danger_and_not_evaluated(text: str, tmp_path: Path) -> None:
    assert against(laid(tmp_path / "cache", "guard", text.encode())) == {"danger"}


@pytest.mark.parametrize(("kind", "text"), [
    *(("guard", text) for text in ("", "2 <= L['t0'] and L['t0'] <= 64", "L['s0']**2 < 2**31", "1 << 20 > L['t0']",
                                   "math.ceil(L['s0'] / 8) * 8 == 64")),
    *(("stride", text) for text in ("1", "32*s27", "s0*((s1//2)) + 1", "max(1, s0)")),
])  # fmt: skip
def test_guards_and_strides_that_torch_writes(kind: str, text: str, tmp_path: Path) -> None:
    assert against(laid(tmp_path / "cache", kind, text.encode())) == set()


def _file(name: str, data: bytes = b"text\n") -> Callable[[Path], object]:
    return lambda root: write(root, name, data)


def _in_key(name: str, data: bytes = b"text\n") -> Callable[[Path], object]:
    """Beside the entries of a key, where torch looks at every file."""

    def put(root: Path) -> None:
        key = next(path for path in (root / "fxgraph").glob("*/*"))
        (key / name).write_bytes(data)

    return put


def _deleted_while_open(root: Path) -> None:
    path = next(path for path in (root / "fxgraph").rglob("*") if path.is_file())
    path.rename(path.with_name(".nfs000000000012c5f800000001"))


def _own_type(root: Path) -> None:
    of = {"original_subclass_type": Object("mine.Two")}
    meta = Object("torch._functorch._aot_autograd.schemas.SubclassCreationMeta", of)
    entry(root, AOT, entry_bytes(Object(RESULT, {"guards_expr": None, "runtime_metadata": meta})))


PATHS = [".DS_Store", ".nfs000000000012c5f800000001", "README", "README.md", "CACHEDIR.TAG", "lost+found/x", ".gitkeep", ".gitignore",
         "Thumbs.db", "desktop.ini", "LICENSE", ".directory", ".Trash-0/files/x", "__MACOSX/._fxgraph", "notes.txt~", ".fuse_hidden01",
         "manifest.json", "checksums.txt", "empty"]  # fmt: skip
HARMLESS: dict[str, Callable[[Path], object]] = {
    "as it is": lambda root: None,
    **{f"{name} at the root": _file(name, b"" if name == "empty" else b"text\n") for name in PATHS},
    **{f"{name} among entries": _in_key(name) for name in PATHS if "/" not in name and name[0] in ".RCTL"},
    "deleted while open": _deleted_while_open,
    "a temporary file": _in_key(".123.456.tmp", b""),
    "an empty folder": lambda root: (root / "fxgraph" / "zz").mkdir(),
    "no folder of entries": lambda root: shutil.rmtree(root / "fxgraph"),
    "without generated code": lambda root: [shutil.rmtree(path) for path in root.glob("??")],
    "only readable": lambda root: [path.chmod(0o555 if path.is_dir() else 0o444) for path in root.rglob("*")],
    "a lock": _file("locks/x.lock", b""),
    "a link inside": lambda root: os.symlink("fxgraph", root / "fxgraph2"),
    "the best configuration of a kernel": _file(f"cc/{'0' * 64}.best_config", b'{"XBLOCK": 8, "num_warps": 2, "configs_hash": "9a"}'),
    "a type of the user's own": _own_type,
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_folders_are_no_danger(name: str, recording: Recording, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    shutil.copytree(recording("2.13.0", "training") / "cache", root)
    HARMLESS[name](root)
    rows = cachescope.audit(root)
    assert not rows["level"].isin(["danger", "warning"]).any(), rows[["rule", "path", "message"]].to_string()
    if name == "a type of the user's own":
        assert "user-module" in set(rows["rule"])


@pytest.mark.parametrize("how", ["zip", "tar", "gztar", "xztar", "mega-cache"])
def test_an_archive_is_read_as_the_folder(how: str, recording: Recording, tmp_path: Path) -> None:
    cache = recording("2.13.0", "training") / "cache"
    if how == "mega-cache":
        path = tmp_path / "mega.bin"
        one = next(path for path in (cache / "fxgraph").rglob("*") if path.is_file())
        path.write_bytes(mega_cache(("inductor", one.parent.name, one.read_bytes())))
    else:
        path = Path(shutil.make_archive(str(tmp_path / "x"), how, cache))
    assert against(path) == {"unproven"}
    if how == "zip":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{FX}/{'q' * 51}", pickle.dumps(Object, 4))
            archive.writestr("../outside", b"")
        assert {"danger", "warning"} <= against(path)


def test_there_are_enough_harmless_folders() -> None:
    assert len(HARMLESS) + 5 >= 40


def test_a_lock_vouches_for_its_files_and_for_no_other(recording: Recording, tmp_path: Path) -> None:
    root, lock = tmp_path / "cache", tmp_path / "cache.lock"
    shutil.copytree(recording("2.13.0", "training") / "cache", root)
    cachescope.lock(root, lock)
    assert against(root) == {"unproven"}
    assert set(cachescope.audit(root, lock=lock)["level"]) <= {"note"}
    code = next(root.rglob("*.cpp"), None) or next(root.rglob("*.py"))
    code.write_bytes(code.read_bytes() + b"# changed\n")
    assert not set(cachescope.audit(root, lock=lock)["level"]) <= {"note"}


def test_a_tensor_is_proven(tmp_path: Path) -> None:
    """torch pickles the storage of a constant as `torch.save` wrote it before it was a zip file."""
    torch = pytest.importorskip("torch")
    for protocol in (2, 4):
        audited = audit_pickle(pickle.dumps({"constants": torch.ones(3)}, protocol), Place("x", "fxgraph"))
        assert audited.findings == []


HEURISTIC = "@triton_heuristics.pointwise(size_hints=[64], filename=__file__, triton_meta={'signature': {'a': '*fp32'}}, inductor_meta={%s})"
SOUND_KERNEL = "    tl.store(a, tl_math.exp(tl.load(a)))"
# Triton is not installed here: of each kernel, what launches it, and what it does.
KERNELS = {
    "sound": (HEURISTIC % "'grid_type': 'Grid1D'", SOUND_KERNEL, set()),
    "the user's own": ("@triton_heuristics.user_autotune(configs=[])", "    mine.what(a)", {"unproven"}),
    "assembly": (HEURISTIC % "", "    tl.inline_asm_elementwise('mov', '=r', [a])", {"unproven"}),
    **{
        how: (HEURISTIC % how, SOUND_KERNEL, {"warning"})
        for how in ("'a': [\"__import__('os').mkdir('@')\"]", "**x", "'a': x", "'a': 'b' + chr(40)", "'a': f'{1}('", "'a': b'('")
    },
    **{
        how: (f"@triton_heuristics.{how}", SOUND_KERNEL, {"warning"})
        for how in ("cached_autotune(1)", "pointwise(filename='/tmp/x')", "os.mkdir('@')", "pointwise")
    },
    **{
        body: (HEURISTIC % "", f"    {body}", {"warning"})
        for body in ("torch.os.mkdir('@')", "eval('1')", "tl.core.builtins.eval('1')", "print.__self__", "libdevice.core.os.mkdir('@')",
                     "triton.runtime.cache.os.mkdir('@')", "triton_helpers.os", "x = tl", "triton_helpers = tl.load(a)", "a.os.mkdir('@')")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_in_wrappers(name: str, tmp_path: Path) -> None:
    launch, body, levels = KERNELS[name]
    text = (
        "import triton\nimport triton.language as tl\nfrom torch._inductor.runtime import triton_helpers, triton_heuristics\n"
        "from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math\n"
        f"{launch}\n@triton.jit\ndef k(a, XBLOCK: tl.constexpr):\n{body}\n"
    )
    call = f"k = async_compile.triton('k', {text!r}, device_str='cuda')\nasync_compile.wait"
    wrapper = attacks.HEADER.replace("async_compile.wait", call).encode()
    assert against(laid(tmp_path / "cache", "wrapper", wrapper)) == levels


def _with(**state: object) -> bytes:
    return entry_bytes(graph(**state))


_CLASS = found("torch._inductor.runtime.triton_heuristics", "CachingAutotuner")
_LAUNCHES = Object("torch._inductor.runtime.triton_heuristics.CachingAutotuner", {"inductor_meta": {}})
_META = "torch._functorch._aot_autograd.schemas.SubclassCreationMeta"
DEEP = {
    "bytes behind the pickle": (_with() + b"abc", "warning"),
    "a pickle behind the pickle": (_with() + attacks.RUNS, "danger"),
    "a zip that is compressed": (_loaded_storage(attacks.zipped(attacks.RUNS).replace(b"\0\0\0\0archive/v", b"\x08\0\0\0archive/v")), "danger"),
    "TorchScript": (_loaded_storage(attacks.zipped(b"\x80\x02N.", "archive/constants.pkl")), "warning"),
    "a comment behind a zip": (_loaded_storage(attacks.zipped(b"\x80\x02N.")[:-2] + b"\5\0abcde"), "warning"),
    "a class as a constant": (_with(constants={"c0": "@@"}).replace(b"\x8c\x02@@", _CLASS), "danger"),
    "a class as an opaque value": (_with(opaque_value_type_classes={"c0": "@@"}).replace(b"\x8c\x02@@", _CLASS), "danger"),
    "what launches a kernel": (_with(_triton_bundle=_LAUNCHES), "unproven"),
    "Python for a number": (_with(meta=Object(_META, {"arg_count": "0]; __import__('os')"})), "danger"),
    "bytes that rebuild a graph": (_with(graph="@@").replace(b"\x8c\x02@@", pickle.dumps(pickle.dumps("torch.fx._graph_pickler"), 3)[2:-1]), "unproven"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_what_torch_would_do_with_an_entry(name: str, tmp_path: Path) -> None:
    data, level = DEEP[name]
    assert level in against(laid(tmp_path / "cache", "pickle", data))


def test_a_partial_is_of_the_function_that_its_state_says(tmp_path: Path) -> None:
    sympys = found("torch.utils._sympy.functions", "FloorDiv")
    of_int = found("functools", "partial") + found("builtins", "int") + b"\x85R"
    data = _with(graph="@@").replace(b"\x8c\x02@@", of_int + b"(" + sympys + b"(I1\nt}Ntb")
    messages = cachescope.audit(laid(tmp_path / "cache", "pickle", data))["message"]
    assert messages.str.startswith("uses torch.utils._sympy.functions.FloorDiv in a way").any()


@pytest.mark.parametrize(("scope", "levels"), [(None, {"unproven"}), ({"x": 1}, {"danger", "unproven"})])
def test_a_kernel_has_what_triton_copies_of_its_code(scope: Any, levels: set[str], tmp_path: Path) -> None:
    """torch 2.8 pickles kernels without the function and its globals, and with the method that binds arguments."""
    copied = dict.fromkeys(("__doc__", "__module__", "__name__", "__qualname__"), "text")
    state = {**copied, "__globals__": scope, "fn": None, "arg_names": ["a"]}
    kernel = Object("triton.runtime.jit.JITFunction", state)
    state = {"fn": kernel, "binder": "@@"}
    autotuner = Object("torch._inductor.runtime.triton_heuristics.CachingAutotuner", state)
    data = _with(_triton_bundle=autotuner)
    names = found("builtins", "getattr") + found("triton.runtime.jit", "JITFunction")
    bound = names + b")\x81\x8c\x0dcreate_binder\x86R"
    assert against(laid(tmp_path / "cache", "pickle", data.replace(b"\x8c\x02@@", bound))) == levels
