"""Names of best configurations equal torch's."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from cachescope.keys import best_config_name


@pytest.mark.parametrize("tag", ["", "nightly"])
def test_the_name_is_torchs(tag: str, codecache: ModuleType) -> None:
    autotune = importlib.import_module("torch._inductor.runtime.autotune_cache").AutotuneCache
    kernel = "c" + "a" * 51 + ".py"
    with importlib.import_module("torch.compiler.config").patch(cache_key_tag=tag):
        prepared = autotune._prepare_key(f"/folder/{kernel}")
        path = autotune._make_local_cache_key("/folder", prepared)
    assert path == f"/folder/{best_config_name(kernel, tag, codecache.torch_key())}"
    assert best_config_name(kernel, tag) == f"{prepared}.best_config"
