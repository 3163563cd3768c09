"""No compiler is started: torch asks for one before it generates code, and starts processes that would compile."""

from __future__ import annotations

from typing import Any, Final

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
