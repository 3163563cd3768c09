"""What is known by hand of the fields that are no options: one sentence each, true of torch 2.4 to 2.15."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A field of hash details, as its line names it.

    Parameters
    ----------
    field : str
        The field, with ``[*]`` where torch writes a number or a name of the program's.
    meaning : str
        One sentence.
    affects : str
        As in `field_sources.affects`; an option's own where ``python_name`` is one of Inductor's.
    python_name : str
        What sets it.
    environment : tuple of str
        Variables that it follows, beside those that the option's default reads.
    forms : tuple of str
        Context forms of ``torch/_inductor/runtime/caching/context.py`` that hold the same.
    basis : str
        What ``affects`` rests on.
    """

    field: str
    meaning: str
    affects: str = "unknown"
    python_name: str | None = None
    environment: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    basis: str | None = None
    option: str | None = None


_GRAPH = "follows from the program"
_INPUTS = "follows from the arguments"
_PASSES = "torch._inductor.config."

# Attributes of FxGraphHashDetails and AOTAutogradCacheDetails. A version that has another one stops the script.
ATTRIBUTES: dict[str, Known] = {
    "gm": Known("gm", "the graph: its code, constants and captured tensors", "graph", basis=_GRAPH),
    "example_inputs": Known("example_inputs[*]", "one input: type, shape, strides, device and more", "inputs", basis=_INPUTS),
    "inputs_to_check": Known("inputs_to_check[*]", "the number of an input whose alignment is checked", "inputs", basis=_INPUTS),
    "user_defined_triton_source": Known("user_defined_triton_source[*]", "source and constants of a Triton kernel of the program's",
        "graph", basis=_GRAPH),
    "triton_kernel_source_codes": Known("triton_kernel_source_codes[*]", "source of a Triton kernel behind an operator of the program's",
        "graph", basis=_GRAPH),
    "cache_key_tag": Known("cache_key_tag", "a text of the user's that keeps caches apart",
        python_name="torch.compiler.config.cache_key_tag"),
    "nested_inductor_config_patches": Known("nested_inductor_config_patches", "Inductor options set for regions within the graph"),
    "default_cuda_device_index": Known("default_cuda_device_index", "the current accelerator, where the graph has no tensor inputs",
        python_name="torch.cuda.set_device(…)"),
    "deterministic_algorithms_settings": Known("deterministic_algorithms_settings",
        "deterministic algorithms: on, warn only, and whether new memory is filled", "generated code",
        "torch.use_deterministic_algorithms(…) and torch.utils.deterministic.fill_uninitialized_memory",
        forms=("torch_determinism_configs",), basis="torch: can affect codegen via lowering"),
    "deterministic_algorithms": Known("deterministic_algorithms", "whether deterministic algorithms are on", "generated code",
        "torch.use_deterministic_algorithms(…)", forms=("torch_determinism_configs",), basis="as deterministic_algorithms_settings"),
    "cuda_matmul_settings": Known("cuda_matmul_settings", "matmul precision: fp32 precision (allow_tf32 up to 2.8), and reduced precision "
        "reductions of fp16 and bf16", "generated code",
        "torch.set_float32_matmul_precision(…), torch.backends.cuda.matmul.*, torch.backends.fp32_precision",
        forms=("cuda_matmul_precision_configs",), basis="torch: global settings affecting matmul codegen"),
    "cpp_runtime_thread_count": Known("cpp_runtime_thread_count", "number of threads that CPU kernels are made for", "generated code",
        "torch.set_num_threads(…)", ("OMP_NUM_THREADS", "MKL_NUM_THREADS"), basis="torch: CPU kernels specialize on it"),
    "provenance_tracking_level": Known("provenance_tracking_level", "how much is recorded of where kernels come from",
        python_name=_PASSES + "trace.provenance_tracking_level"),
    "provenance_tracking_to_timeline": Known("provenance_tracking_to_timeline", "whether provenance goes into a timeline",
        python_name=_PASSES + "trace.provenance_tracking_to_timeline"),
    "default_dtype": Known("default_dtype", "the default dtype", "generated code", "torch.set_default_dtype(…)",
        basis="torch: factory ops are lowered using it"),
    "compile_on_one_rank": Known("compile_on_one_rank", "whether one rank compiles for all, without a device baked in", "generated code",
        "torch.compiler.config.compile_on_one_rank", basis="torch: an entry without it is baked for one device"),
    "cudagraph_override": Known("cudagraph_override", "CUDA graphs switched for this graph by an annotation"),
    "cudagraph_annotation": Known("cudagraph_annotation", "CUDA graphs switched by an annotation, other in forward and backward"),
    "torch_version": Known("torch_version", "hash of torch's own sources and version", "generated code", "the torch that is installed",
        forms=("torch_version_hash",), basis="another torch makes other code"),
    "inductor_config": Known("inductor_config", ""),
    "inductor_config_comms": Known("inductor_config_comms", ""),
    "fx_kwargs": Known("fx_kwargs", ""),
    "system_info": Known("system_info", ""),
    "pre_grad_custom_pass": Known("pre_grad_custom_pass", "uuid() of the pass", python_name=_PASSES + "pre_grad_custom_pass"),
    "post_grad_custom_pre_pass": Known("post_grad_custom_pre_pass", "uuid() of the pass", python_name=_PASSES + "post_grad_custom_pre_pass"),
    "post_grad_custom_post_pass": Known("post_grad_custom_post_pass", "uuid() of the pass", python_name=_PASSES + "post_grad_custom_post_pass"),
    "joint_custom_pre_pass": Known("joint_custom_pre_pass", "uuid() of the pass", python_name=_PASSES + "joint_custom_pre_pass"),
    "joint_custom_post_pass": Known("joint_custom_post_pass", "uuid() of the pass", python_name=_PASSES + "joint_custom_post_pass"),
    "_pre_fusion_custom_pass": Known("_pre_fusion_custom_pass", "uuid() or name of the pass", python_name=_PASSES + "_pre_fusion_custom_pass"),
    "_post_fusion_custom_pass": Known("_post_fusion_custom_pass", "uuid() or name of the pass", python_name=_PASSES + "_post_fusion_custom_pass"),
    "_fuse_ddp_communication_passes": Known("_fuse_ddp_communication_passes[*]", "uuid() or name of one pass",
        python_name=_PASSES + "_fuse_ddp_communication_passes"),
    "_custom_partitioner_fn": Known("_custom_partitioner_fn", "uuid() of the function that parts forward from backward",
        "generated code", _PASSES + "custom_partitioner_fn", basis="it decides what the graphs are"),
    "custom_backend_passes": Known("custom_backend_passes", "uuid() of the pass of every registered backend",
        python_name="torch._inductor.codegen.common.register_backend_for_device(…)"),
    "custom_backend_codegen_configs": Known("custom_backend_codegen_configs[*]", "options of a registered backend",
        python_name="torch._inductor.codegen.common.register_backend_for_device(…)"),
    "custom_backend_codegen_implications": Known("custom_backend_codegen_implications[*]", "rules between the options of a registered backend",
        python_name="torch._inductor.codegen.common.register_backend_for_device(…)"),
    "precompile_enabled": Known("precompile_enabled", "whether AOTAutograd entries hold the compiled graphs themselves",
        python_name="torch._functorch.config.bundled_autograd_cache"),
    "var_to_hint_override": Known("var_to_hint_override[*]", "a size hint given for a symbol", "generated code",
        "torch._dynamo.mark_dynamic(…, hint_override=…)", basis="torch: only symbol names are hashed elsewhere"),
    # AOTAutogradCacheDetails
    "aot_config": Known("aot_config", "what AOTAutograd knows of the arguments: names, sources, dynamic shapes, static inputs", "graph",
        basis=_GRAPH),
    "act_input_paths": Known("act_input_paths", "which inputs held AsyncCollectiveTensors", "inputs", basis=_INPUTS),
    "grad_enabled": Known("grad_enabled", "whether gradients are on", "graph", "torch.set_grad_enabled(…), torch.no_grad(), torch.inference_mode()",
        basis="it decides whether there is a backward graph"),
    "disable_amp": Known("disable_amp", "whether autocast is on", "graph", "torch.autocast(…)", basis="it decides the dtypes of the graph"),
    "autocast_state": Known("autocast_state[*]", "autocast of one device type: on, and its dtype", "graph", "torch.autocast(…)",
        basis="it decides the dtypes of the graph"),
    "autograd_config": Known("autograd_config", "all options of torch._functorch.config, as one pickle", python_name="torch._functorch.config.*"),
    "code_hash": Known("code_hash", "hash of torch's own sources", "generated code", "the torch that is installed",
        forms=("torch_version_hash",), basis="another torch makes other code"),
    "saved_tensors_hooks_fx_wrap_cache_hashes": Known("saved_tensors_hooks_fx_wrap_cache_hashes", "hashes of hooks on saved tensors", "graph",
        "torch.autograd.graph.saved_tensors_hooks(…)", basis=_GRAPH),
    "sac_context_fn_hashes": Known("sac_context_fn_hashes", "hashes of the policies of selective activation checkpointing", "graph",
        "context_fn of torch.utils.checkpoint.checkpoint(…)", basis=_GRAPH),
    "region_activation_memory_budget": Known("region_activation_memory_budget", "activation memory budget of the graph", "graph", basis=_GRAPH),
    "region_activation_memory_budget_annotations": Known("region_activation_memory_budget_annotations",
        "activation memory budgets of nodes of the graph", "graph", basis=_GRAPH),
    "custom_estimator_solver_uuids": Known("custom_estimator_solver_uuids", "uuid() of the runtime estimator and solver of the partitioner",
        python_name="torch._functorch.config.activation_memory_budget_runtime_estimator and torch._functorch.config.activation_memory_budget_solver"),
}  # fmt: skip

# Arguments that torch.compile hands to Inductor. A version that has another one stops the script.
GRAPH_ARGUMENTS: dict[str, Known] = {
    "aot_mode": Known("aot_mode", "whether it is compiled ahead of time into a library", "generated code", basis="AOTInductor makes other code"),
    "boxed_forward_device_index": Known("boxed_forward_device_index", "the device of the forward graph, for CUDA graphs"),
    "cpp_wrapper": Known("cpp_wrapper", "whether the wrapper is C++", python_name=_PASSES + "cpp_wrapper"),
    "cudagraphs": Known("cudagraphs", "whether CUDA graphs are used", python_name=_PASSES + "triton.cudagraphs"),
    "extern_node_serializer": Known("extern_node_serializer", "how calls of other libraries are written down for AOTInductor"),
    "fx_wrapper": Known("fx_wrapper", "whether the wrapper is an FX graph", python_name=_PASSES + "fx_wrapper"),
    "get_decomp_fn": Known("get_decomp_fn", "the function that selects decompositions"),
    "graph_id": Known("graph_id", "number of the graph in its process"),
    "is_backward": Known("is_backward", "whether it is a backward graph", "graph", basis=_GRAPH),
    "is_inference": Known("is_inference", "whether no backward graph can follow", "graph", basis=_GRAPH),
    "layout_opt": Known("layout_opt", "whether convolutions were decided to be channels-last", "generated code", basis="layouts are baked in"),
    "static_input_idxs": Known("static_input_idxs", "which inputs keep their address", "inputs", basis=_INPUTS),
    "user_visible_outputs": Known("user_visible_outputs", "which outputs the program sees, whose strides are kept", "graph", basis=_GRAPH),
}  # fmt: skip

_GPU = ("runtime", "runtime_version")
SYSTEM_PARTS: dict[str, Known] = {
    "device": Known("device", "model of the current GPU", "generated code", "the machine", forms=("accelerator_properties",),
        basis="code is made for the GPU"),
    "version": Known("version", "versions of Triton and CUDA or ROCm", "generated code", "what is installed",
        forms=("triton_version_hash", *_GPU), basis="another compiler makes other code"),
    "device_interfaces": Known("device_interfaces", "what registered backends say of their devices", python_name="the machine"),
    "hash": Known("hash", "hash of the other parts of system_info", "generated code", "the machine and what is installed",
        forms=("triton_version_hash", *_GPU, "accelerator_properties"), basis="as the other parts"),
}  # fmt: skip
