"""What each bypass means and what lifts it: written by hand, from torch's sources 2.4 to 2.15 and from trying it.

Advice names what was tried with a real torch (`bypass_programs.py`), or says only what the sources say.
"""

from dataclasses import dataclass

SOURCES = "torch's sources"


@dataclass(frozen=True)
class Known:
    """What is known of one reason.

    Parameters
    ----------
    meaning : str
        When torch gives it.
    advice : str
        What lifts it, or that nothing does.
    program : str, optional
        The program of `bypass_programs.py` that was compiled with and without what the advice says.
    versions : tuple of str
        The versions of torch that it was compiled with.
    of_fx_alone : bool
        Whether the advice is about the FX graph cache alone.
    """

    meaning: str
    advice: str
    program: str | None = None
    versions: tuple[str, ...] = ("2.13.0",)
    of_fx_alone: bool = False

    @property
    def basis(self) -> str:
        """What the advice rests on."""
        return f"tried with torch {', '.join(self.versions)}" if self.program else SOURCES


_GRAPH_PASS = (
    "Make each pass an object of a module-level subclass of torch._inductor.custom_graph_pass.CustomGraphPass whose uuid() returns "
    "something that changes whenever the pass does, such as get_hash_for_files((__file__,)), and never None."
)
_SCHEDULER_PASS = (
    "From torch 2.13 on, make it an object of a module-level subclass of torch._inductor.custom_graph_pass.CustomSchedulerPass with "
    "a uuid()"
)
_NO_PICKLE = (
    "A value in the key cannot be pickled, often a lambda or a local class in an option of Inductor. The warning just before it in "
    "torch's log has the error; give the option a function or class of a module, or leave it out."
)
_ESTIMATORS = "torch._inductor.custom_graph_pass.Custom{} (torch 2.11 and later) whose uuid() returns something that changes with it"
_UNSAFE = (
    'Torch 2.8 and later cache it if torch._inductor.config.unsafe_marked_cacheable_functions = {{"{}": "1"}} names it. '
    "You then answer for it: change the value whenever what it does changes."
)
_SHAPES = (
    "It was compiled without a ShapeEnv, as torch._inductor.compile does with a graph. torch.compile has one."
)
_FREEZE = "Leave torch._inductor.config.freezing off: the AOTAutograd cache takes no frozen graph in any torch up to 2.15."
_FOLDING = "Leave torch._inductor.config.aot_inductor.use_runtime_constant_folding off where torch.compile is to cache."
_METHOD = "No option lifts it. Call the method on a tensor, or do what it does outside of the compiled function; the reason names it."

KNOWN: dict[str, Known] = {
    "Unsupported post grad custom pass": Known(
        "post_grad_custom_pre_pass or post_grad_custom_post_pass is set to something without uuid(), or its uuid() returns nothing",
        _GRAPH_PASS, "post_grad_pass"),
    "Unsupported joint custom pass": Known(
        "joint_custom_pre_pass or joint_custom_post_pass is set to something without uuid(), or its uuid() returns nothing",
        _GRAPH_PASS, "joint_pass"),
    "Unsupported pre grad custom pass": Known(
        "pre_grad_custom_pass is no CustomGraphPass with a uuid(), and pre-grad passes run after the lookup",
        f"{_GRAPH_PASS} With torch._inductor.config.pre_grad_pass_timing left at its default, a pass without one runs before the lookup "
        "and is no reason.",
    ),
    "Unsupported _pre_fusion_custom_pass": Known(
        "_pre_fusion_custom_pass is a plain function", f"{_SCHEDULER_PASS}; torch 2.8 to 2.12 want a CustomGraphPass.",
        "pre_fusion_pass"),
    "Unsupported _post_fusion_custom_pass": Known(
        "_post_fusion_custom_pass is a plain function", f"{_SCHEDULER_PASS}.", "post_fusion_pass"),
    "Unsupported _fuse_ddp_communication_pass": Known(
        "_fuse_ddp_communication_passes has a plain function in it", _GRAPH_PASS, "ddp_pass"),
    "Uncacheable nested region config '…': callable value": Known(
        "options of a nested compile region have a function, class or pass as a value",
        "No value that can be called may be among the options of a nested compile region: set it for the whole graph."),
    "Uncacheable nested region config '…': custom pass": Known(
        "options of a nested compile region have a custom pass",
        "Set custom passes for the whole graph, not for a nested compile region."),
    "Cannot cache a graph with freezing enabled": Known(
        "torch._inductor.config.freezing is on (TORCHINDUCTOR_FREEZING=1)", _FREEZE, "freezing"),
    "mkldnn tensors unpickleable": Known(
        "freezing on a CPU packed weights into mkldnn tensors, which cannot be pickled",
        "Leave torch._inductor.config.freezing off; or set torch._inductor.config.cpp.weight_prepack = False, and the FX graph cache "
        "takes the frozen graph (the AOTAutograd cache does not), which may then run slower.",
        "freezing_without_prepacking",
        of_fx_alone=True,
    ),
    "Skipping graph with frozen constants": Known(
        "freezing made constants of weights, and Meta's switch pytorch/inductor:allow_freezing_with_caching is off",
        "Leave torch._inductor.config.freezing off. Outside of Meta the switch is always on."),
    "Freezing may introduce constants that aren't static across runs": Known(
        "freezing or aot_inductor.use_runtime_constant_folding is on",
        "Leave both options off, or use torch 2.6 or later, whose FX graph cache takes frozen graphs without mkldnn tensors."),
    "Runtime constant folding can introduce constants that aren't static across runs": Known(
        "torch._inductor.config.aot_inductor.use_runtime_constant_folding is on", _FOLDING, "runtime_constant_folding"),
    "FX graph cache is not enabled": Known(
        "the AOTAutograd cache is on and the FX graph cache that it needs is off",
        "Leave the FX graph cache on: TORCHINDUCTOR_FX_GRAPH_CACHE=1, torch._inductor.config.fx_graph_cache = True.",
        "fx_cache_off"),
    "Cannot cache a graph with compiled autograd enabled": Known(
        "the graph was compiled by compiled autograd",
        "From torch 2.7 on this is no reason any more. Before, nothing lifts it but leaving compiled autograd off."),
    "Cannot cache a graph with functional tensor": Known(
        "an output is a view of an input and view_replay_for_aliased_outputs is on, as it is by default",
        "Use torch 2.9 or later, where this is no reason any more; before, set torch._functorch.config.view_replay_for_aliased_outputs "
        "= False.",
    ),
    "Won't cache a graph with fakify_first_call enabled": Known(
        "DDP splits the graph into one for each bucket of gradients",
        "torch._dynamo.config.optimize_ddp = False leaves the graph whole; all-reduces then wait for the whole backward pass."),
    "AOTAutogradCache requires triton 3.2.0": Known(
        "an older Triton is installed", "Use Triton 3.2.0 or later: torch 2.6 and later come with it."),
    "Failed to reload cache entry from disk": Known(
        "an AOTAutograd entry was found, and the generated code of its graph could not be loaded",
        "The graph is compiled anew. The log of the FX graph cache may say what failed."),
    "Unsupported call_function target …. \n Function module: …, \nFunction name: …": Known(
        "the graph calls a function that torch does not know to be safe: one that torch.compiler.allow_in_graph or torch.fx.wrap left "
        "in it, a higher-order operator, or one of torch's own functions",
        f"{_UNSAFE.format('MODULE.NAME')} torch names the first such function of the graph alone. Or make the function an operator "
        "with torch.library.custom_op, which is always cached.",
        "own_function",
    ),
    "Unsupported call_function target …": Known(
        "the graph calls a function that torch does not know to be safe",
        "Make the function an operator with torch.library.custom_op, which is always cached."),
    "Unsupported call_method target …": Known("the graph calls a method of something that is no tensor", _METHOD),
    "Unsupported call_method target …. \nMethod module: …, \nMethod name: …": Known(
        "the graph calls a method of something that is no tensor", _METHOD),
    "Unsupported call_method … on receiver …, which has no example_value and so is not known to be a Tensor": Known(
        "the graph calls a method of something that is not known to be a tensor", _METHOD),
    "Unsupported call_method method …": Known("the graph calls something that is no method by name", _METHOD),
    "Unsupported call_method method …: …": Known("the graph calls something that is no method by name", _METHOD),
    "Unsupported node op …": Known(
        "the graph has a node of a kind that torch does not know", "Nothing lifts it: Dynamo's graphs have no such nodes."),
    "Can't cache HigherOrderOperator: …": Known(
        "the graph has a higher-order operator that torch does not cache", _UNSAFE.format("torch.ops.higher_order.NAME"),
        "higher_order_operator"),
    "Can't cache HigherOrderOperators": Known(
        "the graph has a higher-order operator, such as activation checkpointing or a Triton kernel of the program's",
        "Nothing lifts it in torch 2.5. Torch 2.6 and later cache graphs with some of them."),
    "Can't cache torchbind objects": Known(
        "the graph holds a torchbind object (torch.ScriptObject)",
        "Nothing lifts it: keep the object out of the compiled function."),
    "Reduce unsupported": Known(
        "the graph has a BackwardState, as a tensor hook registered within a compiled function makes under compiled autograd",
        "Register the hook outside of the compiled function, or leave compiled autograd off.", "hook_with_compiled_autograd"),
    "Failed to pickle cache key": Known("something in the key cannot be pickled", _NO_PICKLE, "unpicklable_option"),
    "Config options may be unpickleable": Known("something in the key cannot be pickled", _NO_PICKLE),
    "Cannot produce stable cache key for unpicklable type …": Known(
        "something of this type is in the key: in the graph, its inputs or an option",
        "Keep objects of the type that the reason names out of the graph and of options: they cannot be pickled, and nothing else in them "
        "is known to stay the same.",
    ),
    "No shape env": Known("compiled without a ShapeEnv", _SHAPES, "no_shape_env"),
    "compiler bisector enabled": Known(
        "torch's compiler bisector runs", "It is only so while torch._inductor.compiler_bisector runs; it goes away with it.",
        "bisector"),
    "SAC context_fn does not have a cache_hash attribute. To enable caching with selective activation checkpointing, add a 'cache_hash' "
    "attribute to your context_fn. This can be a string or any hashable value that uniquely identifies the checkpointing behavior (e.g., "
    "based on source code hash and closed-over globals). For functools.partial objects, set cache_hash on the partial itself": Known(
        "selective activation checkpointing has a policy that torch cannot put into the key",
        "Set cache_hash on the context_fn that is given to torch.utils.checkpoint.checkpoint, on the functools.partial itself if it is "
        "one: a text that changes whenever the policy does.",
        "selective_checkpoint",
    ),
    "CustomRuntimeEstimator.uuid() returned None, bypassing cache": Known(
        "torch._functorch.config.activation_memory_budget_runtime_estimator has no uuid",
        "Let its uuid() return something that changes whenever the estimator does."),
    "CustomKnapsackSolver.uuid() returned None, bypassing cache": Known(
        "torch._functorch.config.activation_memory_budget_solver has no uuid",
        "Let its uuid() return something that changes whenever the solver does."),
    "activation_memory_budget_runtime_estimator is a raw callable without uuid() method, bypassing cache. Use CustomRuntimeEstimator for "
    "cache support": Known(
        "torch._functorch.config.activation_memory_budget_runtime_estimator is a plain function",
        f"Make it an object of a subclass of {_ESTIMATORS.format('RuntimeEstimator')}.",
        "runtime_estimator",
    ),
    "activation_memory_budget_solver is a raw callable without uuid() method, bypassing cache. Use CustomKnapsackSolver for cache "
    "support": Known(
        "torch._functorch.config.activation_memory_budget_solver is a plain function",
        f"Make it an object of a subclass of {_ESTIMATORS.format('KnapsackSolver')}.",
        "knapsack_solver",
    ),
    "Unable to pickle non-standard op: …": Known(
        "a graph is sent to another process to be compiled or stored, with an operator that is not torch's own",
        "No option lifts it. It concerns compiling in another process and precompiled packages, not the lookups of torch.compile."),
}  # fmt: skip
# Bypasses for which torch gives no reason, by cache.
NO_REASON: dict[str, Known] = {
    "fxgraph": Known(
        "torch gives no reason: 2.4 never does, 2.6 to 2.12 do not where the compiler bisector runs",
        "Torch 2.6 to 2.12 are silent only while torch._inductor.compiler_bisector runs. Torch 2.4 always is: a later one says why.",
    ),
    "aotautograd": Known(
        "torch up to 2.7 does not pass on the reason of the FX graph cache",
        "The FX graph lookup of the same compile was bypassed too, and its reason is the one; from torch 2.8 on both say it.",
    ),
}
