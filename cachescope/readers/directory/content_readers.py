"""The reader of each sort of content, by the names that the tables of places give them, and of what is shipped by itself."""

from __future__ import annotations

from typing import Final

from cachescope.readers.cache_file import ReadFile
from cachescope.readers.directory.aotinductor import read_aotinductor
from cachescope.readers.directory.autotune import read_autotune, read_cutlass_configs
from cachescope.readers.directory.caching_package import (
    read_imc,
    read_memoized,
    read_memoizer_dump,
    read_on_disk,
)
from cachescope.readers.directory.dynamo_packages import read_aot_compile, read_precompile
from cachescope.readers.directory.entry_file import reader_of_hidden
from cachescope.readers.directory.generated_files import read_cpp_code, read_python_code
from cachescope.readers.directory.graph_entries import read_aotautograd_entry, read_fxgraph_entry
from cachescope.readers.directory.mega_cache import read_mega_cache
from cachescope.readers.directory.pgo import read_code_state
from cachescope.readers.directory.standalone import read_standalone
from cachescope.readers.directory.triton_files import (
    read_best_config,
    read_group,
    read_intermediate,
    read_kernel_metadata,
)
from cachescope.readers.directory.vllm import read_artifact, read_factors, read_handles, read_model
from cachescope.terms import (
    AOT_COMPILE,
    AOTAUTOGRAD,
    AOTINDUCTOR,
    AUTOTUNE,
    BEST_CONFIG,
    CACHING_PACKAGE,
    CUTLASS_CONFIGS,
    FXGRAPH,
    IMC,
    MEGA_CACHE,
    MEMOIZER_DUMP,
    ON_DISK_CACHE,
    PGO,
    PRECOMPILE,
    STANDALONE,
    VLLM_AOT,
    VLLM_ARTIFACT,
    VLLM_FACTORS,
    VLLM_HANDLES,
)

CONTENT_READERS: Final[dict[str, ReadFile]] = {
    FXGRAPH: read_fxgraph_entry,
    f"hidden {FXGRAPH}": reader_of_hidden(read_fxgraph_entry),
    AOTAUTOGRAD: read_aotautograd_entry,
    f"hidden {AOTAUTOGRAD}": reader_of_hidden(read_aotautograd_entry),
    "python code": read_python_code,
    "C++ code": read_cpp_code,
    BEST_CONFIG: read_best_config,
    "group of Triton": read_group,
    "kernel of Triton": read_kernel_metadata,
    "intermediate of Triton": read_intermediate,
    AUTOTUNE: read_autotune,
    CACHING_PACKAGE: read_memoized,
    ON_DISK_CACHE: read_on_disk,
    IMC: read_imc,
    MEMOIZER_DUMP: read_memoizer_dump,
    CUTLASS_CONFIGS: read_cutlass_configs,
    PRECOMPILE: read_precompile,
    PGO: read_code_state,
    VLLM_FACTORS: read_factors,
    VLLM_HANDLES: read_handles,
    VLLM_ARTIFACT: read_artifact,
    VLLM_AOT: read_model,
}

SHIPPED_READERS: Final[dict[str, ReadFile]] = {
    MEGA_CACHE: read_mega_cache,
    STANDALONE: read_standalone,
    AOT_COMPILE: read_aot_compile,
    AOTINDUCTOR: read_aotinductor,
}
