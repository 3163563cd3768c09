"""What is replaced in torch during a pre-flight, each module as soon as the program imports it, and never before.

The symbols are those of torch 2.8 to 2.15.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final

from cachescope.capture.preflight import (
    cache_folder,
    children,  # noqa: F401 - the site begins with them
    notes,
    refusals,
    settings,
    skipped_work,
    stand_in,
    without_weights,
)
from cachescope.collector import no_collections

Replace = Callable[[Any, str, Any], None]
"""Replaces an attribute of a class or module by another value."""


PATCHES: Final[dict[str, tuple[Callable[[Any, Replace], None], ...]]] = {
    "torch": (settings.patch_torch, without_weights.patch_torch),
    "torch.compiler": (refusals.patch_compiler,),
    "torch._library.utils": (skipped_work.patch_library_utils,),
    "torch.library": (skipped_work.patch_library,),
    "torch._dynamo.aot_compile_types": (
        # torch/_dynamo/aot_compile.py, `save_compiled_function`.
        refusals.refusing(
            "BundledAOTAutogradSerializableCallable.serialize_compile_artifacts",
            "a function that was compiled ahead",
        ),
    ),
    "torch._logging._internal": (notes.patch_logging,),
    "torch._dynamo.callback": (skipped_work.patch_callback,),
    "torch._dynamo.package": (refusals.patch_package,),
    "torch._dynamo.pgo": (notes.patch_pgo,),
    "torch._dynamo.symbolic_convert": (skipped_work.patch_symbolic_convert,),
    "torch._dynamo.utils": (notes.patch_dynamo_utils,),
    "torch._dynamo.output_graph": (without_weights.patch_output_graph,),
    "torch._inductor.runtime.cache_dir_utils": (cache_folder.patch_cache_dir,),
    "torch._inductor.codecache": (notes.patch_codecache, without_weights.patch_codecache),
    "torch._functorch._aot_autograd.autograd_cache": (
        notes.patch_autograd_cache,
        without_weights.patch_autograd_cache,
    ),
    "torch._inductor.compile_fx": (
        stand_in.patch_compile_fx,
        settings.patch_compile_fx,
        refusals.refusing("compile_fx_aot", "an AOTInductor package"),
    ),
    "torch._inductor.codegen.common": (skipped_work.patch_common,),
    "torch._inductor.graph": (stand_in.patch_graph,),
    "torch._inductor.select_algorithm": (stand_in.patch_select_algorithm,),
    "torch._inductor.standalone_compile": (
        refusals.refusing("CacheCompiledArtifact.save", "CompiledArtifact.save"),
        # Up to 2.9 it is one class.
        refusals.refusing("CompiledArtifact.save", "CompiledArtifact.save"),
    ),
    "torch._inductor.async_compile": (skipped_work.patch_async_compile,),
    "torch._inductor.cpp_builder": (skipped_work.patch_cpp_builder,),
    "torch._inductor.cpu_vec_isa": (skipped_work.patch_cpu_vec_isa,),
}


class Patches(importlib.abc.MetaPathFinder):
    """The patches of this process, between `start` and `stop`; lets the other finders find a module, and patches it once it is loaded."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def start(self) -> None:
        """Patch what is imported, and whatever will be."""
        notes.forget_process()
        notes.note_beginning()
        sys.meta_path.insert(0, self)
        for name in PATCHES:
            if (module := sys.modules.get(name)) is not None:
                self._patch(module)

    def stop(self) -> None:
        """Put everything back."""
        sys.meta_path.remove(self)
        while self._before:
            owner, name, value = self._before.pop()
            setattr(owner, name, value)

    def _patch(self, module: ModuleType) -> None:
        for patch in PATCHES[module.__name__]:
            try:
                patch(module, self._replace)
            except (AttributeError, KeyError) as error:
                refusals.refuse(f"this torch is not as a pre-flight knows it, 2.8 to 2.15: {error}")

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        # As it stands there: a static method as one.
        before = vars(owner)[name] if hasattr(owner, "__dict__") else getattr(owner, name)
        self._before.append((owner, name, before))
        setattr(owner, name, value)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A module to patch, as another finder finds it."""
        if fullname not in PATCHES:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                loader: Any = spec.loader
                loader.exec_module = partial(self._load, loader, loader.exec_module)
                return spec
        return None

    def _load(self, loader: Any, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Load a module as its loader does, and patch it."""
        del loader.exec_module
        with no_collections():
            execute(module)
            if module.__name__ == "torch":
                # Its modules are no garbage as long as the program runs: they are not looked at again.
                gc.freeze()
        self._patch(module)
