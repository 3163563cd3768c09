"""The reader of each sort of content, by the names that the tables of places give them, and of what is shipped by itself."""

from __future__ import annotations

from typing import Final

from cachescope.readers.cache_file import ReadFile, content_reader
from cachescope.readers.directory.aotinductor import read_aotinductor
from cachescope.readers.directory.autotune import fill_autotune, fill_cutlass_configs
from cachescope.readers.directory.bundles import fill_mega_cache, fill_standalone
from cachescope.readers.directory.caching_package import (
    fill_imc,
    fill_memoized,
    fill_memoizer_dump,
    fill_on_disk,
)
from cachescope.readers.directory.dynamo_packages import fill_code_state, fill_precompile, read_aot_compile
from cachescope.readers.directory.entry_file import reader_of_hidden
from cachescope.readers.directory.generated_files import fill_cpp_code, fill_python_code
from cachescope.readers.directory.graph_entries import read_aotautograd_entry, read_fxgraph_entry
from cachescope.readers.directory.triton_files import (
    fill_best_config,
    fill_group,
    fill_intermediate,
    read_kernel_metadata,
)
from cachescope.readers.directory.vllm import fill_artifact, fill_factors, fill_handles, read_model
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
    "python code": content_reader(fill_python_code),
    "C++ code": content_reader(fill_cpp_code),
    BEST_CONFIG: content_reader(fill_best_config),
    "group of Triton": content_reader(fill_group),
    "kernel of Triton": read_kernel_metadata,
    "intermediate of Triton": content_reader(fill_intermediate),
    AUTOTUNE: content_reader(fill_autotune),
    CACHING_PACKAGE: content_reader(fill_memoized),
    ON_DISK_CACHE: content_reader(fill_on_disk),
    IMC: content_reader(fill_imc),
    MEMOIZER_DUMP: content_reader(fill_memoizer_dump),
    CUTLASS_CONFIGS: content_reader(fill_cutlass_configs),
    PRECOMPILE: content_reader(fill_precompile),
    PGO: content_reader(fill_code_state),
    VLLM_FACTORS: content_reader(fill_factors),
    VLLM_HANDLES: content_reader(fill_handles),
    VLLM_ARTIFACT: content_reader(fill_artifact),
    VLLM_AOT: read_model,
}

SHIPPED_READERS: Final[dict[str, ReadFile]] = {
    MEGA_CACHE: content_reader(fill_mega_cache),
    STANDALONE: content_reader(fill_standalone),
    AOT_COMPILE: read_aot_compile,
    AOTINDUCTOR: read_aotinductor,
}
