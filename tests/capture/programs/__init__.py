"""Small programs, each of one kind of compile; run as ``python -m tests.capture.programs NAME,NAME… [COUNTERS]``.

`PREFLIGHT_PROGRAM_SIZES` gives those of dynamic programs other sizes, `PREFLIGHT_PROGRAM_CONFIG` names one setting of
Inductor that is switched off. What torch counted goes as JSON into the folder COUNTERS, one file for each process.
"""

from tests.capture.programs import (  # noqa: F401 - they register their programs
    caches,
    dynamic,
    layers,
    models,
    operators,
    optimizers,
    processes,
    shapes_of_code,
)
from tests.capture.programs.caches import BYPASSED
from tests.capture.programs.registry import PROGRAMS, RANKS

__all__ = ["BYPASSED", "PROGRAMS", "RANKS"]
