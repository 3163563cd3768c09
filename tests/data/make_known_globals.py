"""Makes `cachescope/auditing/known_globals.json`: which globals torch itself writes into entries of each kind.

    python tests/data/make_known_globals.py SITE-PACKAGES…

Two sources, each named beside what it gave. Recordings: what the pickles of every recording and directory of
`tests/data` name, how they call it and with what (the letters of `Call` of `cachescope/readers/pickles/pickle_calls.py`), with the versions of
torch that wrote them. Sources: the dataclasses, enums and named tuples of the modules in `MODULES`, of each torch named
(parsed, never imported), because recordings hold no more than what their programs needed. Nothing of what torch writes is
here that runs what its arguments say; see `known.py`.
"""

import ast
import io
import json
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from cachescope.readers.pickles.pickle_calls import everything, follow

DATA = Path(__file__).parent
TARGET = DATA.parents[1] / "cachescope" / "auditing" / "known_globals.json"
HEADER = bytes.fromhex("5feceb66")
MAGIC = b"PT2AOT\x01"
# torch/serialization.py, `_legacy_save`: five pickles in a row, of which the first is this.
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# By kind, module and name: the forms of its calls, and its sources.
Known = dict[str, dict[str, dict[str, tuple[set[str], set[str]]]]]

# What the sources of a module may add to the entries of a kind: data, of which an object is made and no more.
MODULES = {
    "fxgraph": (
        "torch/_inductor/output_code.py:CompiledFxGraph,CompiledFxGraphConstants,CompiledFxGraphConstantsWithGm",
        "torch/_inductor/codecache.py:CompiledFxGraph",
        "torch/_inductor/metrics.py:CachedMetricsDeltas",
        "torch/_inductor/triton_bundler.py:TritonKernelArtifact,TritonKernelArtifacts,TritonBundle",
        "torch/_inductor/cudagraph_utils.py:CudagraphCachedInfo,PlaceholderInfo,CudagraphMetadata,BoxedDeviceIndex",
        "torch/_inductor/utils.py:BoxedBool,GraphPartitionMap",
    ),
    "aotautograd": (
        "torch/_functorch/_aot_autograd/schemas.py",
        "torch/_functorch/_aot_autograd/descriptors.py",
        "torch/_functorch/_aot_autograd/aot_autograd_result.py",
        "torch/_functorch/_aot_autograd/aot_autograd_result.py:SerializedGraphModule",
        "torch/_functorch/_aot_autograd/autograd_cache.py",
        "torch/_functorch/_aot_autograd/autograd_cache.py:SerializedGraphModule,BundledAOTAutogradCacheEntry,"
        "BundledCompiledForward,BundledCompiledBackward,GenericCompiledBackward,GenericAOTAutogradCacheEntry",
        "torch/_functorch/_aot_autograd/functional_utils.py:MetadataKey,ViewMetaSequence",
        "torch/_functorch/_aot_autograd/runtime_wrappers.py:AOTDedupeWrapper,AOTDispatchSubclassWrapper,"
        "AOTSyntheticBaseWrapper,EffectTokensWrapper,FakifiedOutWrapper,FunctionalizedRngRuntimeWrapper,RuntimeWrapper",
        "torch/_dynamo/source.py",
    ),
    "pgo": ("torch/_dynamo/pgo.py:CodeId,CodeState,FrameStateSizeEntry,AutoDynamic,AutoUnset,InferStride",),
    "precompile": (
        "torch/_dynamo/package.py",
        "torch/_dynamo/guards.py:GuardsState,ShapeCodeParts",
        "torch/_guards.py",
    ),
}


OBJECT = ("call ", "build dlt")
ENUM = ("call is",)
# What rebuilds a tensor may be given: everything but a text.
TENSOR = ("call nbiftldgyo?",)
EXPRESSION = ("call nbifgyt", "build dltn")
STATIC = "torch/_inductor/triton_bundler.py, StaticallyLaunchedAutotuner"
# By group and source: a module, names in it, and the forms of their calls.
BY_HAND: dict[str, dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]]] = {
    # How a tensor and its storage are pickled; each only makes the tensor, and the bytes that the last takes are looked at.
    "tensors": {
        "torch/_weights_only_unpickler.py, _get_allowed_globals": (
            ("torch", "Size", ("call tiyo",)),
            ("torch", "device", ("call si",)),
            ("torch", "Tensor nn.parameter.Parameter storage.TypedStorage storage.UntypedStorage", ()),
            ("torch.nn.parameter", "Parameter", ()),
            ("torch.storage", "TypedStorage UntypedStorage", ()),
            ("torch.serialization", "_get_layout", ("call s",)),
            ("torch._utils", "_rebuild_parameter _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3",
             TENSOR),
            ("torch._utils", "_rebuild_meta_tensor_no_storage _rebuild_sparse_tensor", TENSOR),
            ("torch._utils", "_rebuild_qtensor _rebuild_nested_tensor", TENSOR),
            ("torch", "BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage", ()),
            ("torch",
             "HalfStorage IntStorage LongStorage ShortStorage ComplexDoubleStorage ComplexFloatStorage", ()),
        ),
        "torch/storage.py, UntypedStorage.__reduce__": (("torch.storage", "_load_from_bytes", ("call xo",)),),
    },
    # Given expressions and numbers, and no text: most functions of sympy evaluate one as Python.
    "symbols": {
        "torch/fx/experimental/symbolic_shapes.py": (
            ("torch.fx.experimental.symbolic_shapes", "SymIntEqByExpr", ("call ", "build dt")),
        ),
        "torch/__init__.py": (("torch", "SymBool SymFloat SymInt", OBJECT),),
        "torch/csrc/functionalization/Module.cpp": (
            ("torch._C._functionalization", "InverseReturnMode", ENUM),
        ),
        "sympy/core: strict sympify": (
            ("sympy.core.add", "Add", EXPRESSION),
            ("sympy.core.mul", "Mul", EXPRESSION),
            ("sympy.core.power", "Pow", EXPRESSION),
            ("sympy.core.numbers",
             "Integer Rational Float Half NegativeOne One Zero Infinity NegativeInfinity", EXPRESSION),
            ("sympy.core.symbol", "Symbol", ("call sbdn", "build dltn")),
            ("sympy.core.relational",
             "Equality Unequality GreaterThan LessThan StrictGreaterThan StrictLessThan", EXPRESSION),
            ("sympy.logic.boolalg", "And Or Not BooleanTrue BooleanFalse", EXPRESSION),
        ),
        "torch/utils/_sympy/functions.py": (
            (
                "torch.utils._sympy.functions",
                "BitwiseFn_bitwise_and BitwiseFn_bitwise_or BitwiseFn_bitwise_xor CeilDiv CeilToInt CleanDiv FloatPow FloatTrueDiv "
                "FloorDiv FloorToInt Identity IntTrueDiv IsNonOverlappingAndDenseIndicator LShift Max Min Mod ModularIndexing "
                "PowByNatural PythonMod RShift RoundDecimal RoundToInt ToFloat TruncToFloat TruncToInt Where",
                EXPRESSION,
            ),
            ("torch.utils._sympy.numbers", "IntInfinity NegativeIntInfinity", EXPRESSION),
            ("torch.utils._sympy.value_ranges", "ValueRanges", ("call ", "build d")),
        ),
    },
    # What launches a kernel of Triton, and makes Python for it: known, and never proven (`torch_side_effects.py`).
    "kernels": {
        STATIC: (
            ("torch._inductor.triton_bundler", "StaticallyLaunchedAutotuner", OBJECT),
            ("torch._inductor.runtime.triton_heuristics",
             "CachingAutotuner DebugAutotuner StaticTritonCompileResult _ConstRepr", OBJECT),
            ("torch._inductor.runtime.static_cuda_launcher", "StaticallyLaunchedCudaKernel", OBJECT),
            ("torch._inductor.runtime.static_triton_launcher",
             "StaticallyLaunchedCudaKernel StaticallyLaunchedXpuKernel StaticallyLaunchedTritonKernel",
             OBJECT),
            ("torch._inductor.runtime.hints", "AutotuneHint HeuristicType ReductionHint TileHint", ENUM),
            ("torch._inductor.runtime.hints", "DeviceProperties", ("call nbis",)),
            ("torch._inductor.runtime.coordinate_descent_tuner", "CoordescTuner", OBJECT),
            ("triton.runtime.jit", "JITFunction KernelParam", OBJECT),
            # Bound methods, which are pickled by name.
            ("triton.runtime.jit", "JITFunction.create_binder", ()),
            ("triton.language.core", "constexpr", OBJECT),
            ("torch._guards", "CompileId", OBJECT),
            ("torch._inductor.runtime.autotune_cache",
             "AutotuneCache LocalAutotuneCache _LocalAutotuneCacheBackend", OBJECT),
            ("torch._inductor.runtime.autotune_cache", "AutotuneCache.save", ()),
            ("torch._inductor.remote_cache", "RemoteCacheJsonSerde", OBJECT),
            ("triton.runtime.autotuner", "Config", OBJECT),
            ("triton.backends.compiler", "AttrsDescriptor GPUTarget", OBJECT),
            ("triton.compiler.compiler", "AttrsDescriptor", (*OBJECT, "call tn")),
            ("inspect", "Signature Parameter", ("call dltnsog", "build dt")),
            ("inspect", "_ParameterKind", ENUM),
            ("inspect", "_empty", ()),
            ("_thread", "RLock", ()),
        )
    },
    "common": {
        "Lib/pickle.py and Lib/copyreg.py: containers and members of enums": (
            ("builtins", "complex", ("call f",)),
            ("builtins", "dict frozenset list set tuple", ("call nbifsxtldegyo",)),
            ("builtins", "range slice", ("call nbi",)),
            ("builtins", "getattr", ()),
            ("collections", "Counter OrderedDict defaultdict", ("call nbifsxtldegyo",)),
            ("_codecs", "encode", ("call s",)),
        )
    },
}  # fmt: skip


def add(known: Known, kind: str, name: tuple[str, str], source: str, *forms: str) -> None:
    found = known[kind][name[0]].setdefault(name[1], (set(), set()))
    found[0].update(forms)
    found[1].add(source)


def uses_of(data: bytes) -> Iterator[tuple[tuple[str, str], str | None]]:
    """Of each pickle, and of those in it: a global, and the form of a call of it, None where it is named."""
    start = len(HEADER) if data.startswith(HEADER) else 0
    for _ in range(5 if data.startswith(LEGACY) else 1):
        program = follow(data, start, persistent_ids=True)
        if program.damage is not None:
            return  # one of the recordings holds a truncated entry
        assert not program.odd and not program.not_read, program
        yield from ((tuple(target), None) for target in program.named)
        yield from ((tuple(call.target), f"{call.how} {call.letters}") for call in program.calls())
        for inner in everything([program.value, *program.made]):
            inner = inner.removeprefix(MAGIC) if isinstance(inner, bytes) else b""
            if inner[:1] == b"\x80" and inner[1:2] in (b"\2", b"\4", b"\5"):
                yield from uses_of(inner)
        start = program.end


def kind_of(path: str) -> str | None:
    parts = path.split("/")
    if "fxgraph" in parts:
        return "fxgraph"
    if "aotautograd" in parts:
        return "aotautograd"
    if path.endswith(".pkl"):
        return "pgo"
    if path.endswith(".pt"):
        return "aot_compile"
    if parts[-1] == "model" and "torch_aot_compile" in parts:
        return "vllm_aot"
    return "precompile" if parts[-1] == "entry" and "dynamo" in parts else None


def from_recordings(known: Known) -> None:
    for archive in sorted(DATA.glob("*/**/*.tar.xz")):
        # The name of the folder, or of the archive, says which torch wrote it; else the entry is of several.
        found = re.search(r"\d+\.\d+\.\d+", archive.parent.name + " " + archive.name)
        version = found[0] if found else "several versions"
        with tarfile.open(archive) as members:
            for member in members:
                if not member.isfile():
                    continue
                stream = members.extractfile(member)
                assert isinstance(stream, io.BufferedReader)
                data = stream.read()
                kind = kind_of(member.name)
                if data.startswith(HEADER):
                    kind, data = "versioned", data[len(HEADER) :]
                data = data.removeprefix(MAGIC)
                engine = {"vllm": "vLLM ", "sglang": "SGLang "}.get(archive.parent.name, "")
                for name, form in uses_of(data) if kind is not None and data[:1] == b"\x80" else ():
                    if name[0] == "__main__":
                        continue  # the program's own
                    add(
                        known,
                        str(kind),
                        name,
                        f"recording {engine}{version}",
                        *([] if form is None else [form]),
                    )


def from_sources(known: Known, site: Path) -> None:
    version = re.search(
        r'^__version__ = "?\'?([\d.]+)', (site / "torch/version.py").read_text(), re.MULTILINE
    )
    assert version is not None
    for kind, places in MODULES.items():
        for place in places:
            path, _, only = place.partition(":")
            if not (site / path).exists():
                continue
            module = path.removesuffix(".py").replace("/", ".")
            for node in ast.parse((site / path).read_text()).body:
                if isinstance(node, ast.ClassDef) and (
                    node.name in only.split(",") if only else is_data(node)
                ):
                    add(known, kind, (module, node.name), f"source {version[1]}", *forms_of(node))
    for name in re.findall(
        r"^(\w+): (?:dtype|layout|memory_format|qscheme) = ",
        (site / "torch/_C/__init__.pyi").read_text(),
        re.MULTILINE,
    ):
        add(known, "tensors", ("torch", name), f"source {version[1]}")


def forms_of(node: ast.ClassDef) -> tuple[str, ...]:
    """How a pickler makes an object of a class: an enum of its value, a named tuple of its parts, all others without any."""
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    if "Enum" in bases or "IntEnum" in bases:
        return ("call is",)
    if "NamedTuple" in bases:
        return ("call nbifstldeyo",)
    # A source names where an input comes from, and is pickled by the arguments that made it.
    return ("call ", "build dlt", *(("call bifnsogt",) if bases and bases[0].endswith("Source") else ()))


def is_data(node: ast.ClassDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    bases = [ast.unparse(base) for base in node.bases]
    return any("dataclass" in text for text in decorators) or any(
        text.rpartition(".")[2] in ("Enum", "IntEnum", "NamedTuple") for text in bases
    )


def main() -> None:
    known: Known = defaultdict(lambda: defaultdict(dict))
    from_recordings(known)
    for kind, sources in BY_HAND.items():
        for source, rows in sources.items():
            for module, names, forms in rows:
                for name in names.split():
                    add(known, kind, (module, name), f"source {source}", *forms)
    for site in sys.argv[1:]:
        from_sources(known, Path(site))
    lines = []
    for kind, modules in sorted(known.items()):
        inner = []
        for module, names in sorted(modules.items()):
            each = ",\n".join(
                f"   {json.dumps(name)}: {json.dumps([merged(forms), ', '.join(sorted(sources))])}"
                for name, (forms, sources) in sorted(names.items())
            )
            inner.append(f"  {json.dumps(module)}: {{\n{each}\n  }}")
        lines.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(inner) + "\n }")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def merged(forms: set[str]) -> list[str]:
    """One form for each way of calling, with the letters of all."""
    letters: dict[str, set[str]] = defaultdict(set)
    for form in forms:
        how, _, given = form.partition(" ")
        letters[how] |= set(given)
    return [f"{how} {''.join(sorted(given))}" for how, given in sorted(letters.items())]


if __name__ == "__main__":
    main()
