"""vLLM: a port of the NIXL connector is in the hash of the compile cache.

Each engine on a host needs a port of its own, and each then has a folder of its own, with the same code.

Expected: both processes use one folder of the cache.
Known as: the address of a pod in the hash
Not run: it needs vLLM. `tests/data/vllm` has recordings of 0.13.0 and 0.33.0 whose step `port` changes this variable alone, and makes another folder.
"""

import os
import sys

os.environ["VLLM_NIXL_SIDE_CHANNEL_PORT"] = sys.argv[1]  # 5600, then 5601

from vllm import LLM

LLM("facebook/opt-125m")  # its log names the folder: "Using cache directory: …"
