"""What cannot be pre-flown: the process ends there, and says why in the folder of the pre-flight.

Code that was not compiled is not saved: a file of the user would be replaced by one that nothing can load.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
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
    outside = [frame for frame in frames if not frame.filename.startswith((here, "<"))]
    own = [frame for frame in outside if not any(other in frame.filename for other in others)]
    return f" (at {own[-1].filename}:{own[-1].lineno})" if own else ""


def patch_compiler(module: Any, replace: Any) -> None:
    """Make no mega-cache for the program (torch/compiler/__init__.py); torch itself makes them of artifacts."""
    made_by_torch = module.save_cache_artifacts

    def save_cache_artifacts() -> Any:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            return made_by_torch()
        refuse("the program saves what was not compiled: torch.compiler.save_cache_artifacts")

    replace(module, "save_cache_artifacts", save_cache_artifacts)


def refusing(name: str, what: str) -> Callable[[Any, Callable[[Any, str, Any], None]], None]:
    """Makes a function of a module refuse, or a method of a class, if they are there."""
    kind, _, method = name.rpartition(".")

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"the program saves what was not compiled: {what}")

    def patch(module: Any, replace: Callable[[Any, str, Any], None]) -> None:
        owner = getattr(module, kind, None) if kind else module
        if method in vars(owner or object):
            replace(owner, method, refused)

    return patch


def patch_package(module: Any, replace: Any) -> None:
    """Save no package but in torch's own cache, which is not the user's here (torch/_dynamo/package.py)."""
    written_by_torch = module.DiskDynamoStore.write

    def write(self: Any, *args: Any) -> None:
        if not isinstance(self, module.DiskDynamoCache):
            refuse("the program saves what was not compiled: DiskDynamoStore.save_package")
        written_by_torch(self, *args)

    replace(module.DiskDynamoStore, "write", write)
