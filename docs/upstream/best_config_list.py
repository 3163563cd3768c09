"""A .best_config that is JSON but no object stops the compile.

A file that is no JSON at all has been a warning and a miss since 2.13. One that holds a list ends in an AssertionError, in every later process.

Expected: a warning and a miss, as for any other file that is damaged.
Known as: a .best_config file that is JSON, but no object
"""

import os

from torch._inductor.runtime.autotune_cache import AutotuneCache

kernel = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "ab", "c1.py")
os.makedirs(os.path.dirname(kernel), exist_ok=True)
for text in ("no JSON", "[1, 2]"):
    best = AutotuneCache.create({}, kernel, "0" * 64)
    with open(best.local_cache[1], "w") as file:
        file.write(text)
    try:
        print(text, "→", best.read_best({}, []))
    except AssertionError:
        print(text, "→ AssertionError")
