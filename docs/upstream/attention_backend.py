"""The backend of attention is in no key: who asks for another one runs the first one's.

Expected: the second process runs the backend that it asks for.
Known as: the backend of attention is in no key
"""

import sys

import torch
from torch._dynamo.utils import counters
from torch.nn.attention import SDPBackend, sdpa_kernel

query = torch.rand(1, 2, 8, 8)
attention = torch.compile(torch.nn.functional.scaled_dot_product_attention)
with torch.no_grad(), sdpa_kernel(getattr(SDPBackend, sys.argv[1])):
    attention(query, query, query)
    with torch.profiler.profile() as profile:
        attention(query, query, query)
ran = {event.key for event in profile.key_averages()}
print("flash ran:", "aten::_scaled_dot_product_flash_attention_for_cpu" in ran)
counted = {**counters["aot_autograd"], **counters["inductor"]}
print({name: n for name, n in sorted(counted.items()) if "cache_" in name})
