"""The CPU that generated code was made for: real code of one machine limited to three capabilities (see compile_for_cpus.py)."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from cachescope.analysis.contexts.cpu_code import fits_all, vector_code

CODE: dict[str, dict[str, str]] = json.loads(
    lzma.decompress((Path(__file__).parents[2] / "data" / "cpu_code.json.xz").read_bytes())
)
WIDTHS = {"avx512": 512, "avx2": 256, "default": 0}
# What gave right numbers where entries made under AVX512 were loaded under AVX2, the two compared with eager
# execution; all other numbers were wrong (nan, errors from 1.0 to 7e+289).
RIGHT_ALL_THE_SAME = {"five_floats", "int8", "mm"}
# Vectors of 16 bits may be half full: 16 of them are one of AVX2 or a half of AVX512.
NOT_TOLD = {"bfloat16_transposed", "bfloat16_cat", "two_types"}


@pytest.mark.parametrize("name", CODE["avx512"])
@pytest.mark.parametrize("capability", CODE)
def test_code_fits_the_cpu_that_it_was_made_for(capability: str, name: str) -> None:
    fits = fits_all(vector_code(CODE[capability][name]), WIDTHS[capability])
    assert fits is (None if capability == "avx2" and name in NOT_TOLD else True)


@pytest.mark.parametrize("name", CODE["avx512"])
def test_code_of_wider_vectors_is_blamed_only_where_it_was_wrong(name: str) -> None:
    fits = fits_all(vector_code(CODE["avx512"][name]), 256)
    assert (fits is False) == (name not in RIGHT_ALL_THE_SAME)


@pytest.mark.parametrize("name", CODE["avx512"])
def test_code_without_vectors_fits_every_cpu(name: str) -> None:
    assert vector_code(CODE["default"][name]) == ()
    assert fits_all((), 512) is True


@pytest.mark.parametrize("capability", ["avx512", "avx2"])
def test_code_with_vectors_fits_no_cpu_without(capability: str) -> None:
    assert {name for name, code in CODE[capability].items() if fits_all(vector_code(code), 0)} == {"mm"}


def test_code_of_tiles_may_be_right_wherever_there_are_vectors() -> None:
    """Made by hand: which CPU has tiles is nothing that the width of its vectors tells."""
    for name in ("_tile_loadd", "amx_kernel"):
        (code,) = vector_code(f'extern "C" void kernel(float* p) {{ {name}_(0, p, 64); }}')
        assert [code.fits(width) for width in (0, 128, 256, 512)] == [False, None, None, None]
