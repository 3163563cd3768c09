"""What an option affects, judged by who reads it. What is not certain is ``unknown``."""

from collections.abc import Iterable

GENERATED = "generated code"
HOST = "host"
UNKNOWN = "unknown"

_INDUCTOR = "torch._inductor."
# They decide what code is made and how it is compiled: packages with all they hold, and single modules.
_MAKE_CODE = (
    "choices", "codegen", "comm_lowering", "comms", "cpp_builder", "cpu_vec_isa", "decomposition", "freezing",
    "fx_passes", "graph", "heuristics", "ir", "kernel", "lookup_table", "loop_body", "lowering", "memory",
    "mkldnn_lowerings", "pattern_matcher", "quantized_lowerings", "runtime.coordinate_descent_tuner", "runtime.hints",
    "runtime.triton_heuristics", "scheduler", "select_algorithm", "sizevars", "template_heuristics",
)  # fmt: skip
# They watch compile workers, or write files for a person to read.
_SERVE_THE_HOST = ("compile_worker", "debug", "metrics")
# Also read by modules that do more; what they do with these was looked up (2.13 and 2.15).
_LOOKED_UP = {
    "compile_threads": ("async_compile",),
    "compile_worker_wait_timeout": ("async_compile",),
    "developer_warnings": ("utils",),
    "disable_progress": ("async_compile",),
    "file_lock_timeout": ("codecache",),
    "log_tlparse": ("compile_fx",),
    "quiesce_async_compile_pool": ("async_compile",),
    "quiesce_async_compile_time": ("async_compile",),
    "verbose_progress": ("async_compile",),
    "worker_start_method": ("async_compile",),
    "triton.cudagraph_trees_history_recording": ("cudagraph_trees",),
    "triton.cudagraph_trees_objgraph": ("cudagraph_trees",),
}


def affects(option: str, readers: Iterable[str]) -> str:
    """``generated code``, ``host`` or ``unknown``, from the modules that read an option."""
    names = [name.removeprefix(_INDUCTOR) for name in readers]
    if any(_is_in(name, _MAKE_CODE) for name in names):
        return GENERATED
    served = (*_SERVE_THE_HOST, *_LOOKED_UP.get(option, ()))
    if names and all(_is_in(name, served) for name in names):
        return HOST
    return UNKNOWN


def basis(option: str, judged: str) -> str | None:
    """Why an option is said to describe the host only."""
    if judged != HOST:
        return None
    if option in _LOOKED_UP:
        return (
            "who reads it starts workers, waits, shows progress or logs by it, and does nothing else with it"
        )
    return "who reads it watches workers or writes files to look at"


def _is_in(name: str, places: Iterable[str]) -> bool:
    return any(name == place or name.startswith(place + ".") for place in places)
