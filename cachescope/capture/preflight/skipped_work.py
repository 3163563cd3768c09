"""Work that decides no key and that a pre-flight need not do.

While torch is imported and compiles, Python runs its garbage collector again and again, and finds almost nothing. Inductor parses its
templates when it is imported, and a pre-flight renders hardly any. To say where an operator was registered, torch has Python go through
the files of all modules. For a log, Dynamo parses the files of the program. When a process ends, Python takes apart what it imported and compiled.
Before it generates code, torch asks for a compiler, and starts processes that would compile.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, ModuleType
from typing import Any, Final

from cachescope.collector import no_collections

_MANY: Final = 100_000
"""That many new objects are worth a collection at once; where parts of torch are imported, there are more."""
_BUFFERED: Final = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


def patch_callback(module: Any, replace: Any) -> None:
    """Collect no garbage while torch compiles (torch/_dynamo/callback.py, `CompilationCallbackHandler`).

    A function in place of one of torch's would stand in the stacks that torch records; a context does not.
    """
    installed_by_torch = module.CompilationCallbackHandler.install_callbacks

    @contextmanager
    def install_callbacks(self: Any, *args: Any, **kwargs: Any) -> Iterator[None]:
        was_on = gc.isenabled()
        with no_collections(), installed_by_torch(self, *args, **kwargs):
            yield
            if was_on and gc.get_count()[0] > _MANY:
                # At once into the oldest generation: Python would go through them a second time.
                gc.collect(1)

    replace(module.CompilationCallbackHandler, "install_callbacks", install_callbacks)


def end_quickly() -> None:
    """When a process with torch ends, do not take its reference cycles apart; what their files still hold is written."""
    # Registered before the program registers anything, so it is called last.
    atexit.register(_leave_cycles)


def _leave_cycles() -> None:
    if "torch" not in sys.modules:
        return
    # A library prints what is left at the end (nanobind; libtriton of Triton 3.9, which comes with torch 2.15). Not `__module__`, which
    # may be a property.
    if any(vars(kind).get("__module__") == "nanobind" for kind in type.__subclasses__(type)):
        gc.unfreeze()
        return
    for one in gc.get_objects():
        # Not isinstance, which asks objects that stand for others what they are.
        if issubclass(type(one), _BUFFERED):
            with suppress(Exception):
                one.flush()
    gc.freeze()


def patch_symbolic_convert(module: Any, replace: Any) -> None:
    """Name no functions in the log of what is traced (torch/_dynamo/symbolic_convert.py, `get_line_of_code_header`)."""
    replace(module, "get_funcname", lambda filename, lineno: None)


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


def patch_library_utils(module: Any, replace: Any) -> None:
    """Say where an operator is registered without its lines of code (torch/_library/utils.py, `get_source`)."""

    def get_source(stacklevel: int) -> str:
        frame = inspect.getframeinfo(sys._getframe(stacklevel), context=0)
        return f"{frame.filename}:{frame.lineno}"

    replace(module, "get_source", get_source)


def patch_library(module: Any, replace: Any) -> None:
    """Know which module registers an operator without the files of all modules (torch/library.py, `_register_fake`)."""
    replace(module, "inspect", _Inspect())


class _Inspect:
    """Python's `inspect`, for which a frame is of the module that it names, if that is of the same file."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def getmodule(self, of: Any, filename: str | None = None) -> ModuleType | None:
        if isinstance(of, FrameType):
            module = sys.modules.get(of.f_globals.get("__name__", ""))
            # What runs as __main__ may have been imported as well.
            is_main = module is sys.modules.get("__main__")
            file = getattr(module, "__file__", None)
            if module is not None and not is_main and file == of.f_code.co_filename:
                return module
        return inspect.getmodule(of, filename)


_KINDS: Final = ("is_clang", "is_apple_clang", "is_intel_compiler", "is_msvc_cl")


def patch_async_compile(module: Any, replace: Any) -> None:
    """Start no processes that compile (torch/_inductor/async_compile.py)."""
    for name in ("warm_pool", "wakeup"):
        if name in vars(module.AsyncCompile):
            replace(module.AsyncCompile, name, classmethod(lambda cls: None))


def patch_cpu_vec_isa(module: Any, replace: Any) -> None:
    """Compile nothing to try out which instructions the compiler knows (torch/_inductor/cpu_vec_isa.py, `VecISA`)."""
    replace(module.VecISA, "_VecISA__bool__impl", lambda self, vec_isa_ok: vec_isa_ok is not False)
    replace(module.VecISA, "check_build", lambda self, code: True)


def patch_cpp_builder(module: Any, replace: Any) -> None:
    """Take it that the compiler is g++, which decides how code is written (torch/_inductor/cpp_builder.py)."""
    replace(module, "get_cpp_compiler", lambda *args, **kwargs: "g++")
    replace(module, "is_gcc", lambda: True)
    for name in _KINDS:
        if name in vars(module):
            replace(module, name, lambda: False)
