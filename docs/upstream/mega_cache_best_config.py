"""What torch.compiler.load_cache_artifacts writes of autotuning lies where nothing reads it.

torch 2.7 records .best_config files by their names alone. Loading writes them to the root of the directory instead of beside their kernels, so that every
kernel is tuned again. Twenty such files lie in a public cache of 2.7.

Expected: no file at the root; the file lies in the folder of its kernel.
Known as: autotuning that a mega-cache of 2.7 loses
Not run: kernels are tuned on a GPU. `python mega_cache_best_config.py save`, then without `save` with another directory.
"""

import os
import sys
from pathlib import Path

import torch

bundle = Path("bundle.bin")
if "save" in sys.argv:
    torch.compile(lambda x: x.softmax(-1), mode="max-autotune")(torch.ones(4096, 4096, device="cuda"))
    bundle.write_bytes(torch.compiler.save_cache_artifacts()[0])
else:
    torch.compiler.load_cache_artifacts(bundle.read_bytes())
    print("at the root:", len(list(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("*.best_config"))))
