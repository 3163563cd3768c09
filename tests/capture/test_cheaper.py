"""What a pre-flight leaves out to take less time: nothing that the program could notice later."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from cachescope.capture.preflight import cheaper


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("is_on", [True, False])
def test_collections_are_as_before_afterwards(is_on: bool) -> None:
    gc.enable() if is_on else gc.disable()
    with cheaper.no_collections():
        with suppress(ValueError), cheaper.no_collections():
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

    cheaper.patch_callback(SimpleNamespace(CompilationCallbackHandler=Handler), setattr)
    with Handler().install_callbacks("dynamo", compile_id="0/0"):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert Handler.told == ["begins dynamo 0/0", "ends"]


@pytest.mark.parametrize("has_jinja", [True, False])
def test_a_template_is_parsed_when_it_is_rendered(has_jinja: bool) -> None:
    parsed: list[str] = []

    class KernelTemplate:
        @staticmethod
        def _template_from_string(source: str) -> object:
            parsed.append(source)
            return SimpleNamespace(render=source.format) if has_jinja else None

    module = SimpleNamespace(
        KernelTemplate=KernelTemplate, jinja2_env=lambda: object() if has_jinja else None
    )
    cheaper.patch_common(module, setattr)
    template = KernelTemplate._template_from_string("{0} of {size}")
    if not has_jinja:
        assert template is None
        return
    # torch asserts that there is one.
    assert template
    assert not parsed
    assert template.render("block", size=8) == "block of 8"
    assert parsed == ["{0} of {size}"]
