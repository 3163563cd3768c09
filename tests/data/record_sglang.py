"""Record the ``torch_compile_cache`` that SGLang writes: ``python record_sglang.py PYTHON WHEEL VERSION``.

PYTHON has torch and what SGLang imports, WHEEL is an unpacked wheel of SGLang. The steps share one SGLANG_CACHE_DIR, one after the
other; the result is sglang/<version>.tar.xz, with what SGLang itself says of each step. Compiled libraries are left out.
"""

import json
import sys

from packing import HERE, emptied, pack, placed, run

STUBS = "triton,IPython"
# Its compiler, and the layers of its model. SGLang's default is the compiler "eager".
STEPS = {
    "first": ("inductor", "1"),
    "again": ("inductor", "1"),
    "other_model": ("inductor", "2"),
    "eager": ("eager", "1"),
}


def main() -> None:
    """Run all steps, and pack what they left."""
    python, wheel, version = sys.argv[1:]
    work = emptied("sglang")
    program = placed("sglang", HERE / "sglang_program.py")
    own = {"SGLANG_CACHE_DIR": work / "cache", "PYTHONPATH": wheel, "STUBS": STUBS}
    said = {
        name: json.loads(run(python, program, compiler, LAYERS=layers, **own).splitlines()[-1])
        for name, (compiler, layers) in STEPS.items()
    }
    (work / "steps.json").write_text(json.dumps({"sglang": version, "steps": said}, indent=1))
    leave_out = ("*.so", "*.o", "*.gch", "program.py")
    pack(HERE / "sglang" / f"{version}.tar.xz", work, leave_out=leave_out)


if __name__ == "__main__":
    main()
