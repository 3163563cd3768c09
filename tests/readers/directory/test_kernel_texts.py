"""Keys of the kernels in generated files, against the names that torch gave their files, and against any text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys import code_hash, stored_code_hash
from cachescope.readers.directory.generated_files import (
    compiled_from,
    cpp_kernel,
    defined_kernels,
    included_header,
    triton_kernel_name,
)
from tests.conftest import Directory

DEFINITIONS = ("async_compile.cpp_pybinding(", "async_compile.triton(", "CppWrapperCodeCache.load_pybinding(")
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


def test_a_string_that_defines_nothing_is_no_kernel() -> None:
    kernel = "x = async_compile.triton('n', '''\nk\n''')\n"
    assert defined_kernels(f"'''text.'''\n{kernel}") == defined_kernels(kernel) == (stored_code_hash("k"),)
    assert defined_kernels("def f():\n    '''text'''\n") == ()
    assert defined_kernels("async_compile.triton('name', '''never closed") == ()
    assert defined_kernels("x = async_compile.triton('n', '''\\N{no such name}''')") == ()


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
