"""What cachescope says of caches that strangers made on GPUs, beside what is true: ``python tests/strangers.py FOLDER``.

Public repositories hold them by accident. Nothing of them is part of this one: check each out below FOLDER, as OWNER/REPOSITORY or, where an older
commit has it, as OWNER/REPOSITORY@COMMIT. What is not there is named and left out. The exit status is 1 if an answer differs. The same forms, made of
recordings, are in `tests/test_strangers.py`.
"""

import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cachescope.cli import main

NO_DANGER = ("no danger", "audit", r"danger 0\b|\b0 dangers")
IN_PLACE = (
    "all of Triton's files lie where their lists say",
    "entries",
    r"^(?!.*are those of another directory)",
)
SOUND = ("nothing is damaged", "entries", r"^(?!.* damaged:)")
MIG = "a MIG slice of an H100: 60 of its 132 SMs"

# By folder: what is true, the command that is asked, and what its answer must match, lines and spaces apart.
TRUTHS = {
    "hkust-nlp/COMP4901B-LLMs@b52a38a/assignment2/ifeval/.vllm_cache": [
        ("11,655 files of 2.1 GB", "entries", r"11,655 entries of 2\.1 GB in 993 directories"),
        ("992 FX files are 21 contents: 4 alone, 988 copies of 17", "entries", r"fxgraph: 988 files of which 17 would"),
        ("21 contents under 3 keys: 18 compiled again", "explain", r"18 entries were made although .*1 one key, equal guards"),
        ("32 folders, without their factors", "explain", r"vLLM: 32 folders .* and 29 more: no cache_key_factors"),
        ("best configurations belong to kernels in wrappers", "entries", r"^(?!.*best_config: )"),
        IN_PLACE, SOUND,
        ("RTX 2080 Ti, 68 SMs", "devices", r"1 device 0 NVIDIA GeForce RTX 2080 Ti cuda, sm_75 68 SMs, warps of 32"),
        ("616 GB/s", "devices", r"fp16 53\.8, int8 215\.2 TOPS; 616 GB/s"),
        ("torch 2.8", "lock", r"made by torch 2\.8 "),
        NO_DANGER,
    ],
    "FredLiu876/torch-compile-caching/llama_test/local_cache": [
        ("20 .best_config at the root are never read", "entries", r"20 best_config: torch 2\.7 writes it here when it loads a mega-cache"),
        IN_PLACE, SOUND, (MIG, "devices", r"cuda sm_90 60 SMs.*with 60 it is a part of one, as MIG makes"),
        ("torch 2.7 stores no fields", "lock", r"a torch whose version nothing says"),
        NO_DANGER,
    ],
    **{
        f"FredLiu876/torch-compile-caching@1c1eae9/compiled_model_cache{number}": [
            ("a mega-cache of torch 2.7 with one FX entry", "entries", r"mega_cache; cuda; inductor 1; torch 2\.7 alone"),
            (MIG, "devices", r"cuda sm_90 60 SMs"), SOUND, NO_DANGER,
        ]
        for number in (0, 3, 4, 6)
    },
    **{
        f"mapcrafter2048/semacomm/flowmo/results/{name}/torchinductor_cache_0": [
            ("a training cache, whole but for what a store of large files keeps", "entries", rf"{files} entries of"),
            ("answers of pad_mm are sound and name the RTX 3090", "devices", r"RTX 3090 cuda, sm_86 82 SMs.*answers of pad_mm \(Triton 3\.3\.0"),
            IN_PLACE, SOUND, NO_DANGER,
        ]
        for name, files in (("memory_optimized_experiment", "130"), ("my_experiment", "2,66[45]"))
    },
    "mayank31398/ladder-residual-inference@f229b80/torchinductor_charlie": [
        ("736 files of eight ranks", "entries", r"736 entries of"),
        ("one device model, eight indices", "devices", r"1 device 0 cuda sm_90 132 SMs.*cuda:0,.*cuda:7 .*with as many SMs: NVIDIA H100 SXM"),
        SOUND, NO_DANGER,
    ],
    "EdoardoBotta/RQ-VAE-Recommender@111065b~1/tl_out": [
        ("2 FX hits", "explain", r"2 lookups in 1 run: 2 hit, 0 missed"),
        ("12 of 17 compiles failed: gcc could not build Triton's cuda_utils", "explain", r"12 of 17 compiles failed.*gcc could not build cuda_utils"),
        ("L4", "devices", r"0 NVIDIA L4 cuda"),
    ],
    "vipulSharma18/Getting-Started-with-Quantization@24f321c~1/tl_out": [
        ("RTX A6000", "devices", r"0 NVIDIA RTX A6000 cuda"),
        ("3 compiles", "compiles", r"3 compiles.*: 2 first compiles, 1 recompile"),
        ("FX bypass: post-grad custom pass", "explain", r"Unsupported post grad custom pass"),
        ("AOTAutograd bypass: FunctionCtx", "explain", r"Unsupported call_function target .*FunctionCtx"),
    ],
    "ezyang/tlparse-scope/tests/fixtures": [
        ("1 compile", "compiles", r"1 compile in"),
        ("FX miss, AOTAutograd miss", "explain", r"2 lookups in 1 run: 0 hit, 2 missed"),
    ],
}  # fmt: skip


@cache
def answer(command: str, path: Path) -> str:
    """What a command prints, lines and spaces apart."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        tempfile.TemporaryDirectory() as made,
    ):
        extra = ["-o", str(Path(made) / "lock")] if command == "lock" else []
        main([command, *(["--no-index"] if command != "audit" else []), str(path), *extra])
    return " ".join(out.getvalue().split())


def checks(folder: Path) -> Iterator[tuple[str, str, bool | None, str]]:
    """Each truth, whether the answer agrees (None if the folder is not there), and what the answer says."""
    for name, truths in TRUTHS.items():
        for truth, command, wanted in truths:
            if not (folder / name).exists():
                yield name, truth, None, "not there"
                continue
            said = answer(command, folder / name)
            match = re.search(wanted, said)
            yield name, truth, match is not None, f"{command}: {(match[0] if match else '') or said}"[:160]


if __name__ == "__main__":
    found = list(checks(Path(sys.argv[1])))
    before = ""
    for name, truth, agrees, said in found:
        print(*([] if name == before else [f"\n{name}\n"]), end="")
        print(
            f"  {({True: 'agrees ', False: 'DIFFERS', None: '-------'})[agrees]}  {truth}\n           {said}"
        )
        before = name
    agreed = [agrees for *_, agrees, _ in found]
    print(f"\n{agreed.count(True)} agree, {agreed.count(False)} differ, {agreed.count(None)} not there")
    sys.exit(agreed.count(False) > 0)
