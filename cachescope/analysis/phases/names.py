"""The phase of each event: every event name in torch 2.5, 2.6, 2.8, 2.10, 2.13 and 2.15.

From the calls of `dynamo_timed` and `log_event_start` in torch's source; if a call has a ``phase_name``, that is the event's name (2.5 has
an event of either name).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple


class Phase(NamedTuple):
    """A part of a compile."""

    name: str  # its name
    is_skipped_by_hit: bool  # whether a hit in the AOTAutograd cache leaves it out
    events: tuple[str, ...]  # patterns of the names of its events


REST: Final = "no event covers"
"""The self time of events that contain all others."""
WAITING_FOR_RANKS: Final = "waiting for other ranks"
"""The time in events in which ranks synchronize: each waits until the last has arrived."""
VECTOR_TEST: Final = "vector instruction test"
"""The compiler runs with which torch tests what vector instructions the CPU has (torch/_inductor/cpu_vec_isa.py, `VecISA.check_build`)."""


WAITING_FOR_TEST: Final = "waiting for a vector test"
"""Code generation while a process waits for another to finish that test: torch runs it under a lock, once a folder."""
WAITING_FOR_BUILD: Final = "waiting for another's compile"
"""Loading while a process waits for another to compile the same code: torch compiles under a lock (torch/_inductor/codecache.py)."""
HEADERS: Final = "precompiled headers"
"""The headers that torch 2.8 and later precompile before a kernel for the CPU (torch/_inductor/codecache.py, `_precompile_header`)."""
ONCE_A_FOLDER: Final = (VECTOR_TEST, HEADERS)
"""The phases that only the first graph in a folder of code has: the next start has none of them."""
BACKENDS: Final = "importing backends"
"""
Once a process, after the first frame is compiled, by torch 2.11 and later. To see whether the backend is a registered one, all
of them are imported (torch/_dynamo/backends/registry.py, `_is_registered_backend`).
"""
LOADING: Final = "loading"
"""Loads code, also that of the vector test: every process does, each file in a child process, which imports torch up to 2.12."""
AUTOTUNING: Final = "autotuning"
LOADING_GRAPH: Final = "AOTAutogradCache.inductor_load"
"""What torch does after an AOTAutograd hit, and with every graph of a package (which is not looked up)."""
LOADING_CODE: Final = "PyCodeCache.load_by_key_path"
WAITING_FOR_CODE: Final = "async_compile.wait"
COMPILER: Final = "compile_file"
CODE_GENERATION: Final = "Scheduler.codegen"
ENTIRE_FRAME: Final = "entire_frame_compile"
GUARDS: Final = "build_guards"
BACKEND: Final = "backend_compile"
"""What any backend does with one graph."""
INDUCTOR: Final = "inductor_compile"
"""What Inductor does with one graph, including its lookup."""


def _phase(name: str, is_skipped_by_hit: bool, *events: str) -> Phase:
    return Phase(name, is_skipped_by_hit, events)


# fmt: off
PHASES: Final = (
    # The self time of an attempt: it puts the graph together, and writes the bytecode that calls it.
    _phase("Dynamo tracing", False, r"compile_attempt_\d+", r"bytecode_tracing", r"insert_deferred_runtime_asserts", r"bytecode_hooks_\d+",
        r"fullgraph_capture", r"compiled_autograd", r"invoke_subgraph_\w+", r"TranslationValidator\.validate",
        r"debug_insert_nops"),
    _phase("guards", False, GUARDS, r"precompile_(?:build|load)_guards"),
    _phase("AOTAutograd", True, r"create_aot_dispatcher_function", r"aot_collect_metadata",
        r"aot_trace_joint_graph", r"min_cut_rematerialization_partition",
        r"compile_fx\.<locals>\.(?:fw_compiler_base|bw_compiler)"),
    _phase("torch's own key", False, r"inductor_codecache_torch_key", r"CacheBase\.get_system\.triton_key"),
    # Making the key of a graph and looking it up have no event of their own: they are the self time of these.
    _phase("keys and lookups", False, BACKEND, INDUCTOR, r"fx_codegen_and_compile", r"compile_fx_inner",
        r"OutputGraph\.call_user_compiler"),
    _phase(LOADING, False, r"AOTAutogradCache\.inductor_load", r"PyCodeCache\.load_by_key_path",
        r"TritonBundler\.(?:read_and_emit|load_cached_static_autotuners)",
        r"StaticAutotunerFuture\.warm_precompile", r"CompiledArtifact\.load", r"GraphPickler\.loads",
        r"reload_kernel_in_parent", r"offload_constants_restore"),
    _phase("storing", True, r"TritonBundler\.collect", r"CompiledArtifact\.save", r"offload_constants_spill"),
    # Before the lookup of AOTAutograd in torch before 2.13.
    _phase("passes before the lookup", False, r"_recursive_pre_grad_passes", r"pass\.pre_grad_passes\..+"),
    _phase("Inductor passes", True, r"_recursive_(?:joint_graph|post_grad)_passes",
        r"pass\.(?!pre_grad_passes\.).+", r"additional_fake_tensor_prop", r"fx\.bucketing\..+",
        r"convert_conv_weights_to_channels_last"),
    _phase("Inductor lowering", True, r"GraphLowering\.(?:run|compile_to_fn)"),
    _phase("code generation", True, r"code_gen", r"GraphLowering\.(?:codegen(?:_subgraph)?|compile_to_module)",
        r"Scheduler\.(?:__init__|codegen|fused_nodes|simple_overlap|create_combo_kernel_nodes)",
        r"(?:PythonWrapperCodegen|CppWrapper[CG]pu|WrapperCodeGen)\.generate", r"generate_kernel_code_from_nodes",
        r"aoti_serialize_constants"),
    # Once a folder of code, by the first graph. A hit asks for the instructions, too.
    _phase(VECTOR_TEST, False),
    _phase(WAITING_FOR_TEST, False),
    # Once a folder of code, too. But every process puts together and hashes what they are made of.
    _phase(HEADERS, False),
    _phase("C++ compiler", True, r"compile_file", r"run_command_and_check", r"AotCodeCompiler\.compile",
        r"cpp_wrapper_compile", r"aoti_(?:compile_fatbin|precompile_header)"),
    _phase("Triton compiler", True, r"async_compile\.precompile", r"CachingAutotuner\.slow_precompile_config",
        r"\w+_template_precompiling"),
    _phase("waiting for compilers", True, r"async_compile\.wait"),
    _phase(WAITING_FOR_BUILD, True),
    _phase(AUTOTUNING, True,
        r"CachingAutotuner\.(?:benchmark_all_configs|coordinate_descent_tuning|combo_sequential_autotune|synchronize)",
        r"\w+_template_autotuning", r"benchmark_(?:fused_nodes|codegened_module)",
        r"pad_mm_benchmark(?:_get_do_bench)?", r"\w*Benchmarker\.benchmark\w*", r"collective_compute_do_bench",
        r"CUTLASSGemmTemplate\.maybe_(?:append_choice|fetch_ops)", r"cutlass_utils\.gen_ops"),
    _phase("CUDA graphs", False, r"cudagraphify(?:\.get_container)?", r"CUDAGraphNode\.record",
        r"CUDAGraphTreeManager\.(?:record_function|run_eager)"),
    _phase(WAITING_FOR_RANKS, False, r"compiler_collective", r"guard_collective"),
    _phase("automatic dynamic shapes (PGO)", False, r"pgo\.\w+"),
    _phase("garbage collection", False, r"gc"),
    _phase("importing Inductor", False, r"inductor_import"),
    _phase(BACKENDS, False),
    _phase(REST, False, r"dynamo", ENTIRE_FRAME, r"entire_backward_compile", r"compile_fx_aot", r"_compile\.compile_inner"),
)
# fmt: on
_PATTERNS: Final = [(re.compile("|".join(phase.events)), phase) for phase in PHASES if phase.events]
_LONGEST: Final = 200
_INFERRED: Final = {phase.name: phase for phase in PHASES}


def inferred_phase(event: str, above: str) -> str:
    """The phase of a run of the compiler for the vector test, by the event that it is in; of any other event none.

    Kernels and headers are compiled when the generated code is loaded; while the scheduler generates it, torch asks for
    vector instructions and compiles nothing else. So it is in the traces of torch 2.6 to 2.15.
    """
    return VECTOR_TEST if event == COMPILER and above == CODE_GENERATION else ""


@lru_cache(4096)
def phase_of(event: str, inferred: str = "") -> Phase | None:
    """The phase of an event by its name, or the inferred one; None if no known version of torch writes it."""
    if inferred:
        return _INFERRED[inferred]
    if len(event) > _LONGEST:
        return None
    return next((phase for pattern, phase in _PATTERNS if pattern.fullmatch(event)), None)
