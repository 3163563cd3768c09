"""What cannot be pre-flown: the process ends there, and says why in the folder of the pre-flight.

Code that was not compiled is not saved: a file of the user would be replaced by one that nothing can load.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Final, NoReturn

from cachescope.capture.preflight.cache_folder import OWN_FOLDER, ours

REFUSED: Final = "refused"
"""The file with the reasons."""
UNREACHED: Final = "unreached"
"""The file with the commands whose processes are not reached."""


def tell(file: str, text: str) -> None:
    """Add a line to a file in the folder of the pre-flight."""
    path = os.path.join(ours[OWN_FOLDER], file)
    with open(path, "a", encoding="utf-8", errors="backslashreplace") as lines:
        lines.write(f"{' '.join(text.split())}\n")


def refuse(what: str) -> NoReturn:
    """End this process, and say why."""
    tell(REFUSED, f"{what}{place_of(traceback.extract_stack())}")
    raise SystemExit(2)


def place_of(frames: traceback.StackSummary) -> str:
    """The line of the program, which is the last one outside of installed packages, of Python and of this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = ("site-packages", os.path.dirname(os.__file__))
    own = [
        frame
        for frame in frames
        if not any(other in frame.filename for other in others) and not frame.filename.startswith((here, "<"))
    ]
    return f" (at {own[-1].filename}:{own[-1].lineno})" if own else ""


def patch_compiler(module: Any, replace: Any) -> None:
    """Make no mega-cache for the program (torch/compiler/__init__.py); torch itself makes them of artifacts."""
    made_by_torch = module.save_cache_artifacts

    def save_cache_artifacts() -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            return made_by_torch()
        refuse("the program saves what was compiled: torch.compiler.save_cache_artifacts")

    replace(module, "save_cache_artifacts", save_cache_artifacts)


def _refused(what: str) -> Any:
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"the program saves what was compiled: {what}")

    return refused


def patch_standalone_compile(module: Any, replace: Any) -> None:
    """Save no artifact (torch/_inductor/standalone_compile.py; 2.10 has one class)."""
    for name in ("CacheCompiledArtifact", "CompiledArtifact"):
        if name in vars(module):
            replace(getattr(module, name), "save", _refused("CompiledArtifact.save"))


def patch_aot_compile_types(module: Any, replace: Any) -> None:
    """Save no function (torch/_dynamo/aot_compile_types.py)."""
    kind = module.BundledAOTAutogradSerializableCallable
    replace(kind, "serialize_compile_artifacts", classmethod(_refused("a function that was compiled ahead")))


def patch_compile_fx(module: Any, replace: Any) -> None:
    """Build no AOTInductor package (torch/_inductor/compile_fx.py)."""
    replace(module, "compile_fx_aot", _refused("an AOTInductor package"))


def patch_package(module: Any, replace: Any) -> None:
    """Save no package but in torch's own cache, which is not the user's here (torch/_dynamo/package.py)."""
    written_by_torch = module.DiskDynamoStore.write

    def write(self: Any, *args: Any) -> None:
        if not isinstance(self, module.DiskDynamoCache):
            refuse("the program saves what was compiled: DiskDynamoStore.save_package")
        written_by_torch(self, *args)

    replace(module.DiskDynamoStore, "write", write)
