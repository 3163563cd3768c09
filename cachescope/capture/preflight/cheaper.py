"""Work that decides no key and that a pre-flight need not do: a seventh of its processor time.

While torch is imported and compiles, Python runs its garbage collector again and again, and finds almost nothing. Inductor parses its
templates when it is imported, and a pre-flight renders hardly any.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def no_collections() -> Iterator[None]:
    """Let Python collect no garbage meanwhile; what the program itself asks for is done."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def patch_callback(module: Any, replace: Any) -> None:
    """Collect no garbage while torch compiles (torch/_dynamo/callback.py, `CompilationCallbackHandler`).

    A function in place of one of torch's would stand in the stacks that torch records; a context does not.
    """
    installed_by_torch = module.CompilationCallbackHandler.install_callbacks

    @contextmanager
    def install_callbacks(self: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        with no_collections(), installed_by_torch(self, *args, **kwargs):
            yield

    replace(module.CompilationCallbackHandler, "install_callbacks", install_callbacks)


def patch_common(module: Any, replace: Any) -> None:
    """Parse a template when it is rendered (torch/_inductor/codegen/common.py, `KernelTemplate`)."""
    parsed_by_torch = module.KernelTemplate._template_from_string

    class Template:
        """Stands for a parsed template; torch asks one for nothing else."""

        def __init__(self, source: str) -> None:
            self._source = source

        def render(self, *args: Any, **kwargs: Any) -> str:
            text: str = parsed_by_torch(self._source).render(*args, **kwargs)
            return text

    if module.jinja2_env() is not None:
        replace(module.KernelTemplate, "_template_from_string", staticmethod(Template))
