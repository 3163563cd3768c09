"""The vector instructions of the CPU are in no key: a cache that was made with more of them does not run with fewer.

A directory that is shared by machines, or shipped in an image, is found by a process whose CPU has fewer vector instructions. Here its code is not even
compiled; elsewhere it ends with SIGILL, or computes wrong numbers.

Expected: the second process misses, and compiles for its own instructions.
Known as: the vector instructions of the CPU are in no key
"""

import torch
from torch._dynamo.utils import counters

print("instructions", torch.backends.cpu.get_cpu_capability())
x = torch.linspace(0, 1, 1000)
try:
    print("right", torch.allclose(torch.compile(lambda x: torch.exp(x) * 2)(x), torch.exp(x) * 2))
except Exception as error:
    print(type(error).__name__, "CppCompileError" in str(error))
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
