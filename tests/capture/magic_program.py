"""What test_magic.py runs: a shell, and cells with the magic. Needs torch and IPython.

Prints one JSON list: of each cell its output and whether it succeeded.
"""

import json
import sys
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

SETUP = """
import torch
@torch.compile
def f(x): return torch.relu(x).sum() + 1
x = torch.randn(8, 8)
f(x); torch._dynamo.reset()
"""
CONFIG = "torch._dynamo.reset(); torch._inductor.config.epilogue_fusion = False; f(x); 'the value'"
CELLS = {
    "load": "%load_ext cachescope",
    "setup": SETUP,
    "hit": "%%cachescope\nf(x);",
    "changed": f"%%cachescope\n{CONFIG}",
    "predicted": "%%cachescope --preflight\nf(x); 'the value'",
    "predicted_changed": "%%cachescope --preflight\nwith torch._inductor.config.patch(max_fusion_size=3): f(x);",
    "predicted_nowhere": "%%cachescope --preflight --against no-such-folder\nf(x);",
    "predicted_left": "print(len(_cachescope.lookups), torch.__name__, _cachescope.runs['is_preflight'].all())",
    "predicted_error": "%%cachescope --preflight\n1 / 0",
    "both": "%%cachescope --preflight --fresh\nprint('ran')",
    "fresh": "%%cachescope --fresh\nimport os; where = os.environ['TORCHINDUCTOR_CACHE_DIR']; f(x);",
    "after": "import os.path; print(os.path.exists(where), len(_cachescope.lookups) > 0)",
    "valued": "%%cachescope\nx = 1; ';'; 'the value'",
    "silenced": "%%cachescope\n!true\n'the value';  # at the end;\n\n",
    "valued_again": "%%cachescope\n'the value' # at the end;",
    "unknown": "%%cachescope --frsh\nprint('ran')",
    "quote": "%%cachescope --against 'x\nprint('ran')",
    "error": "%%cachescope\n1 / 0",
    "error_fresh": "%%cachescope --fresh\n1 / 0",
    "syntax": "%%cachescope\nif",
    "awaited": "%%cachescope\nimport asyncio; print(await asyncio.sleep(0, 'awaited'))",
}


def run(shell: Any, cell: str) -> dict[str, object]:
    with capture_output() as captured:
        result = shell.run_cell(cell)
    shown = [dict(output.data) for output in captured.outputs]
    return {"text": captured.stdout + captured.stderr, "shown": shown, "success": result.success}


if __name__ == "__main__":
    shell = InteractiveShell.instance(colors="NoColor")
    print(json.dumps({name: run(shell, cell) for name, cell in CELLS.items()}), file=sys.__stdout__)
