"""Kernels in generated files, and their keys: against the names that torch gave their files, and against any text."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.keys import code_hash, stored_code_hash
from cachescope.readers.directory.generated_files import (
    compiled_from,
    cpp_kernel,
    defined_kernels,
    included_header,
    kernels_of,
    triton_kernel_name,
)
from tests.conftest import Directory, Recording
from tests.programs import python, ran

DEFINITIONS = ("async_compile.cpp_pybinding(", "async_compile.triton(", "CppWrapperCodeCache.load_pybinding(")
CODE = "c" + "d" * 51
CPU = [("torch_2.13.0", 19), ("torch_2.15.0", 15), ("torch_2.10.0", 15), ("torch_2.6.0", 11)]


@pytest.mark.parametrize(("name", "kernels"), CPU)
def test_every_kernel_of_every_wrapper_has_its_file(name: str, kernels: int, directory: Directory) -> None:
    cache = directory(name) / "cache"
    files = {cpp_kernel(file.read_text()) for file in cache.glob("??/c*.cpp")}
    count = 0
    for wrapper in cache.glob("??/c*.py"):
        text = wrapper.read_text()
        keys = defined_kernels(text)
        # One for each definition that torch wrote, counted by the calls alone.
        assert len(keys) == sum(text.count(definition) for definition in DEFINITIONS)
        assert set(keys) <= files
        count += len(keys)
    assert count == kernels


@pytest.mark.parametrize("venv", ["t2150", "t2100", "t260"])
def test_the_key_of_a_triton_kernel_is_the_name_of_its_file(venv: str, directory: Directory) -> None:
    cache = directory("triton_kernels") / f"cache_{venv}"
    texts = {file.stem: file.read_text() for file in cache.glob("??/c*.py")}
    kernels = {key for key, text in texts.items() if not defined_kernels(text)}
    assert {key for text in texts.values() for key in defined_kernels(text)} == kernels
    # Not only torch's own remark says so: without it the hash of the text leads to the same file.
    remarks = "# kernel path: "
    assert all(remarks in text for key, text in texts.items() if key not in kernels)
    without = [text.replace(remarks, "# ") for text in texts.values()]
    assert {key for text in without for key in defined_kernels(text)} == kernels
    for key in kernels:
        name = triton_kernel_name(texts[key])
        assert name is not None
        assert any(f"{name} = async_compile.triton('{name}'" in text for text in texts.values())


@given(
    st.text(st.characters(exclude_characters="'\0", exclude_categories=["Cs"])),
    st.sampled_from(["cpp", "triton"]),
)
def test_any_text_is_hashed_as_python_reads_the_string(text: str, kind: str) -> None:
    # A file that torch reads has no "\r": Python turns it into a newline, in strings of source as well.
    text = text.replace("\r", "").replace("\\", "")
    raw = f"name = async_compile.{kind}('name', r'''\n{text}\\t\n''')\n"
    assert defined_kernels(raw) == (stored_code_hash(f"{text}\\t"),)
    escaped = f"name = async_compile.{kind}('name', '''\n\\\\{text}\\t\\x41\n''')\n"
    assert defined_kernels(escaped) == (stored_code_hash(f"\\{text}\tA"),)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["async_compile.x(" * 100_000, "async_compile.x((a" * 100_000, "'''\"\"\"" * 100_001, "a = (" * 200_000],
)
def test_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    start = time.process_time()
    defined_kernels(text + "'''x'''")
    assert time.process_time() - start < 5


def test_a_file_without_bindings_is_all_source() -> None:
    assert cpp_kernel("\nint x;\n") == code_hash("\nint x;\n")
    assert cpp_kernel("\nint x;\n\n// Python bindings to call kernel():\nrest") == code_hash("int x;")


def test_the_header_in_the_cache_directory_is_known(directory: Directory) -> None:
    cache = directory("torch_2.6.0") / "cache"
    named = {included_header(file.read_text()) for file in cache.glob("??/c*.cpp")}
    headers = {file.stem for file in cache.glob("??/c*.h")}
    assert headers
    assert headers <= named
    (one, *_) = headers
    assert included_header(f'#include "{one}.h"') == one
    assert included_header('#include "/usr/include/stdio.h"\n#include <c10/util/Unroll.h>') is None


@pytest.mark.parametrize("venv", ["t2150", "t2100", "t260"])
def test_an_intermediate_form_names_the_file_it_was_made_from(venv: str, directory: Directory) -> None:
    cache = directory("triton_kernels") / f"cache_{venv}"
    forms = list(cache.glob("triton/0/*/*.ttir"))
    assert len(forms) == 5
    for form in forms:
        key = compiled_from(form.read_text())
        assert key is not None
        (kernel,) = cache.glob(f"??/{key}.py")
        assert triton_kernel_name(kernel.read_text()) == form.stem


@pytest.mark.parametrize("text", ["", "#loc = loc(unknown)", '#loc = loc("/x/mine.py":1:0)', "module {"])
def test_a_kernel_of_ones_own_has_no_key(text: str, tmp_path: Path) -> None:
    assert compiled_from(text) is None


def test_a_text_with_half_a_character_is_no_kernel() -> None:
    # torch cannot encode it, so it made no file of it.
    for half in ("\\ud800", "\ud800"):
        assert defined_kernels(f"k = async_compile.triton('k', '''{half} def kernel(): pass''')") == ()


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_an_mlp_has_its_matrix_products_and_fused_kernels(version: str, recording: Recording) -> None:
    kernels = cachescope.read(recording(version, "training") / "cache").kernels
    forward = kernels[kernels["kernel"] == "addmm"]
    assert set(forward["kind"]) == {"extern"}
    assert {op for ops in forward["aten_ops"] for op in ops} <= {"aten.addmm", "aten.t"}
    assert set(forward["source_nodes"]) == {("input_1",), ("input_3",)}
    fused = kernels[kernels["kernel"] == "cpp_fused_relu_0"]
    assert set(fused["kind"]) == {"cpp"}
    # The backward makes its products with mm.
    assert {op for ops in kernels.loc[kernels["kernel"] == "mm", "aten_ops"] for op in ops} >= {"aten.mm"}


def test_every_kernel_belongs_to_an_entry_that_is_there(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "four_graphs") / "cache")
    fx = scope.entries[(scope.entries["cache"] == "fxgraph") & (scope.entries["status"] == "ok")]
    assert set(scope.kernels["entry"]) == set(fx["entry"])


@given(st.text())
def test_any_text_gives_kernels_or_none(text: str) -> None:
    assert all(kernel.kernel and kernel.kind for kernel in kernels_of(text))


COMMENT = "# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add, aten.mul]\n"


@pytest.mark.parametrize(("text", "wanted"), [
    (f"{COMMENT}k0 = async_compile.cpp_pybinding([], '''", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
    (f"{COMMENT}# more\n\nk0 = async_compile.triton('k0', '''", [("k0", "triton", ("x", "y"), ("aten.add", "aten.mul"))]),
    (f"{COMMENT}other\nk0 = async_compile.triton('k0', '''", [("k0", "triton", (), ())]),
    # As torch/_inductor/codegen/wrapper.py of 2.13 writes it: a GPU is needed to record one.
    (f"# kernel path: /x.py\n{COMMENT}# more\n#   x => x\nk0 = async_compile.triton('k0', '''\nx = 1\n''', device_str='cuda')\n    k0.run(a)\n", [("k0", "triton", ("x", "y"), ("aten.add", "aten.mul"))]),
    # The comment of a C++ kernel is above its call.
    (f"k0 = async_compile.cpp('''\n{COMMENT}k0(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
    (f"k0 = async_compile.cpp('''\n{COMMENT}k0.run(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
    (f"{COMMENT}k0 = async_compile.cpp('''\n{COMMENT.replace('x', 'z')}k0(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
    (f"{COMMENT}unknown(a)", []),
    (f"{COMMENT}extern_kernels.mm(a)", [("mm", "extern", ("x", "y"), ("aten.add", "aten.mul"))]),
    ("extern_kernels.mm(a)", [("mm", "extern", (), ())]),
    ("torch.ops.aten.add.Tensor(a)", [("aten.add.Tensor", "extern", (), ())]),
    # A C++ wrapper calls the runtime for other purposes, too.
    ("aoti_torch_empty(a)", []),
    (f"{COMMENT}aoti_torch_mm(a)", [("aoti_torch_mm", "extern", ("x", "y"), ("aten.add", "aten.mul"))]),
    ("// Source Nodes: [x], Original ATen: []\naoti_torch_mm(a)", [("aoti_torch_mm", "extern", ("x",), ())]),
    ("// Source Nodes: [], Original ATen: [a]\naoti_torch_mm(a)", [("aoti_torch_mm", "extern", (), ("a",))]),
    ("// Source Nodes: [x, , y], Original ATen: []\nextern_kernels.mm(a)", [("mm", "extern", ("x", "y"), ())]),
])  # fmt: skip
def test_kernels_and_the_comments_above_them(text: str, wanted: list[tuple[object, ...]]) -> None:
    found = [(one.kernel, one.kind, one.source_nodes, one.aten_ops) for one in kernels_of(text)]
    assert found == wanted


def test_the_sources_of_kernels_in_a_wrapper() -> None:
    one = "async_compile.cpp_pybinding([], '''\nint x;\n''')"
    (key,) = defined_kernels(f"k = {one}")
    assert defined_kernels(f"k = {one}\nk2 = {one}") == (key,)
    raw = "k = async_compile.triton('k', r'''a\\x41''')"
    escaped = "k = async_compile.triton('k', '''a\\x41''')"
    plain = "k = async_compile.triton('k', '''aA''')"
    assert defined_kernels(escaped) == defined_kernels(plain) != defined_kernels(raw)
    assert defined_kernels("\nk = async_compile.triton('k', '''aA''')") == defined_kernels(plain)
    assert defined_kernels("'''text.'''\nk = async_compile.triton('k', '''aA''')") == defined_kernels(plain)
    for nothing in (
        "def f():\n    '''text'''\n",
        "async_compile.triton('k', '''never closed",
        "k = 3 + '''aA'''",
    ):
        assert defined_kernels(nothing) == ()
    assert defined_kernels("k = async_compile.triton('k', '''\\N{no such name}''')") == ()
    assert defined_kernels("kernel_src = (r'''aA'''") == defined_kernels(plain)
    assert defined_kernels(f"# kernel path: /cache/dd/{CODE}.py\n") == (CODE,)
    assert included_header(f'#include "/cache/dd/{CODE}.h"\n') == CODE


@pytest.mark.parametrize(("part", "loads"), [(1.0, True), (0.5, False), (0.002, False), (0.0, False)])
def test_a_library_that_was_cut_is_damaged(part: float, loads: bool, tmp_path: Path) -> None:
    """One that g++ made, with constants as a kernel has; whether it loads, another process tries: it may crash."""
    (tmp_path / "dd").mkdir()
    file = tmp_path / "dd" / f"{CODE}.main.so"
    code = 'int values[20000] = {1}; extern "C" int f(int i) { return values[i]; }'
    command = ["g++", "-x", "c++", "-shared", "-fPIC", "-o", str(file), "-"]
    ran(command, input=code)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * part)])
    said = python(f"import ctypes; ctypes.CDLL({str(file)!r}).f(9)", status=None)
    # It may still be linked.
    assert cachescope.read(tmp_path).entries["status"].tolist() == ["ok"]
    os.utime(file, (1_700_000_000, 1_700_000_000))
    (status,) = cachescope.read(tmp_path).entries["status"]
    assert (said.returncode == 0, status) == (loads, "ok" if loads else "damaged")
