"""What a pre-flight leaves out to take less time, and what it looks at: nothing that the program could notice later."""

import gc
import importlib
import inspect
import os
import pickle
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from cachescope.capture.preflight import cache_folder, notes, skipped_work
from cachescope.capture.preflight.cache_folder import INDUCTOR_DIR, OWN_FOLDER, meant_cache_dir
from cachescope.capture.preflight.stand_in import patch_compile_fx
from cachescope.collector import no_collections
from tests.programs import ran


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("is_on", [True, False])
def test_collections_are_as_before_afterwards(is_on: bool) -> None:
    gc.enable() if is_on else gc.disable()
    with no_collections():
        with suppress(ValueError), no_collections():
            raise ValueError
        assert not gc.isenabled()
    assert gc.isenabled() is is_on


def test_none_runs_while_torch_compiles_and_its_callbacks_are_called() -> None:
    class Handler:
        told: list[str] = []  # noqa: RUF012

        @contextmanager
        def install_callbacks(self, trigger: str, compile_id: str) -> Iterator[None]:
            self.told.append(f"begins {trigger} {compile_id}")
            yield
            self.told.append("ends")

    skipped_work.patch_callback(SimpleNamespace(CompilationCallbackHandler=Handler), setattr)
    with Handler().install_callbacks("dynamo", compile_id="0/0"):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert Handler.told == ["begins dynamo 0/0", "ends"]


_ENDS = """
import sys
from cachescope.capture.preflight import skipped_work
skipped_work.end_quickly()
sys.modules[sys.argv[1]] = sys
class Logger:
    def __init__(self):
        self.file = open(sys.argv[2], "w")
        self.write = self.file.write
        self.itself = self
    def __del__(self):
        print("taken apart")
logger = Logger()
logger.write("loss 0.5")
"""
_NANOBIND = """
class Meta(type):
    __module__ = "nanobind"
"""


@pytest.mark.parametrize(("code", "imported", "printed"), [
    (_ENDS, "torch", ""),
    (_ENDS, "other", "taken apart\n"),
    # A library that reports what is left.
    (_NANOBIND + _ENDS, "torch", "taken apart\n"),
])  # fmt: skip
def test_what_files_hold_is_kept_at_the_end(tmp_path: Path, code: str, imported: str, printed: str) -> None:
    log = tmp_path / "log"
    done = ran([sys.executable, "-c", code, imported, log], os.environ)
    assert log.read_text() == "loss 0.5"
    assert done.stdout == printed and not done.stderr


@pytest.mark.parametrize("has_jinja", [True, False])
def test_a_template_is_parsed_when_it_is_rendered(has_jinja: bool) -> None:
    parsed: list[str] = []

    class KernelTemplate:
        @staticmethod
        def _template_from_string(source: str) -> object:
            parsed.append(source)
            return SimpleNamespace(render=source.format) if has_jinja else None

    jinja = object() if has_jinja else None
    module = SimpleNamespace(KernelTemplate=KernelTemplate, jinja2_env=lambda: jinja)
    skipped_work.patch_common(module, setattr)
    template: Any = KernelTemplate._template_from_string("{0} of {size}")
    if not has_jinja:
        assert template is None
        return
    # torch asserts that there is one.
    assert template
    assert not parsed
    assert template.render("block", size=8) == "block of 8"
    assert parsed == ["{0} of {size}"]


@pytest.mark.torch
def test_the_place_where_an_operator_is_registered_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    utils: Any = importlib.import_module("torch._library.utils")

    def places() -> list[str]:
        return [get_source(level) for get_source in (torchs_own, utils.get_source) for level in (1, 2)]

    torchs_own = utils.get_source
    skipped_work.patch_library_utils(utils, monkeypatch.setattr)
    assert utils.get_source is not torchs_own
    own, own_above, ours, ours_above = places()
    assert own == ours
    assert own_above == ours_above
    assert own.startswith(__file__)


def _frame(**names: object) -> FrameType:
    """A frame of code that calls itself as its globals say."""
    code = compile("import sys; frame = sys._getframe()", __file__, "exec")
    given: dict[str, Any] = dict(names)
    exec(code, given)
    frame: FrameType = given["frame"]
    return frame


def test_what_a_release_lacks_is_not_replaced() -> None:
    """torch 2.8 has no `fx_compile_progressive`."""

    class Compiles:
        def codegen_and_compile(self) -> None: ...

    names = {"_InProcessFxCompile": Compiles, "FxCompileMode": SimpleNamespace(NORMAL=0)}
    module = SimpleNamespace(**names, fx_compile_mode=1, fx_compile_async=True)
    patch_compile_fx(module, setattr)
    assert module.fx_compile_async is False and not hasattr(module, "fx_compile_progressive")


def test_the_module_of_a_frame_is_what_python_says() -> None:
    module = SimpleNamespace(inspect=inspect)
    skipped_work.patch_library(module, setattr)
    frames = [
        sys._getframe(), _frame(__name__=__name__), _frame(__name__="json"), _frame(__name__="of no module"),
        _frame(__name__="__main__"), _frame(),
    ]  # fmt: skip
    for of in (*frames, sys, gc.collect, skipped_work.patch_library):
        assert module.inspect.getmodule(of) is inspect.getmodule(of), of
    assert module.inspect.getmodule(frames[0]) is sys.modules[__name__]
    assert module.inspect.signature is inspect.signature


@pytest.mark.parametrize(("named", "meant", "folder"), [
    ("/own", "/cache", "/cache"),
    ("/chosen", "/cache", "/chosen"),
    ("/own/rank0", "/cache", "/cache/rank0"),
    ("/own/rank0", "/cache/", "/cache/rank0"),
    ("/own_rank0", "/cache", "/cache_rank0"),
    # What the program takes where the variable is not set, it does not say.
    ("/own/rank0", None, None),
])  # fmt: skip
def test_what_a_program_makes_of_the_variable_is_known(
    named: str, meant: str | None, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cache_folder.ours, OWN_FOLDER, "/own")
    monkeypatch.setenv(INDUCTOR_DIR, named)
    if meant is not None:
        monkeypatch.setitem(cache_folder.meant, INDUCTOR_DIR, meant)
    assert meant_cache_dir() == folder


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(notes, "_counts_read", [])
    module = SimpleNamespace(counters=defaultdict(Counter, inductor=Counter(hit=1)))
    notes.patch_dynamo_utils(module, setattr)
    return module.counters


def test_torch_counts_as_before_and_that_is_no_reading(counters: Any) -> None:
    code = "counters['inductor']['hit'] += 1; counters['aot']['miss'] += 1; counters['inductor'].clear()"
    exec(code, {"__name__": "torch._inductor.codecache", "counters": counters})
    assert not notes._counts_read
    assert counters["aot"] == {"miss": 1}


@pytest.mark.parametrize("read", [
    lambda counts: counts["hit"], lambda counts: counts.get("hit"), lambda counts: sum(counts.values()),
    lambda counts: dict(counts)["hit"], lambda counts: pickle.loads(pickle.dumps(counts))["hit"],
    lambda counts: dict(counts.items())["hit"],
])  # fmt: skip
def test_a_program_that_reads_them_is_noticed(read: Any, counters: Any) -> None:
    assert read(counters["inductor"]) == 1
    assert notes._counts_read
