"""Makes `cachescope/auditing/known_globals.json`: which globals torch itself writes into entries of each kind.

    python tests/data/make_known_globals.py SITE-PACKAGES…

Two sources, each named beside what it gave. Recordings: what `pickletools` finds in the pickles of every recording and
directory of `tests/data`, with the versions of torch that wrote them. Sources: the dataclasses, enums and named tuples
of the modules in `MODULES`, of each torch named (parsed, never imported), because recordings hold no more than what
their programs needed. Nothing of what torch writes is here that runs what its arguments say; see `known.py`.
"""

from __future__ import annotations

import ast
import io
import json
import pickletools
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent
TARGET = DATA.parents[1] / "cachescope" / "auditing" / "known_globals.json"
HEADER = bytes.fromhex("5feceb66")
MAGIC = b"PT2AOT\x01"
Known = dict[str, dict[str, dict[str, set[str]]]]

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


def _of(module: str, names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names.split())


# How a tensor and its storage are pickled; each only makes the tensor, and the bytes that the last takes are looked at.
BY_HAND = {
    "tensors": {
        "torch/_weights_only_unpickler.py, _get_allowed_globals": (
            *_of(
                "torch",
                "Size Tensor device nn.parameter.Parameter storage.TypedStorage storage.UntypedStorage",
            ),
            "torch.serialization._get_layout",
            *_of("torch._utils", "_rebuild_parameter _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3"),
            *_of("torch._utils", "_rebuild_meta_tensor_no_storage _rebuild_sparse_tensor"),
            *_of("torch._utils", "_rebuild_qtensor _rebuild_nested_tensor"),
            *_of("torch", "BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage"),
            *_of(
                "torch",
                "HalfStorage IntStorage LongStorage ShortStorage ComplexDoubleStorage ComplexFloatStorage",
            ),
        ),
        "torch/storage.py, UntypedStorage.__reduce__": ("torch.storage._load_from_bytes",),
    },
    # Those that take a text for no expression: most functions of sympy evaluate one as Python, and are not known.
    "symbols": {
        "torch/fx/experimental/symbolic_shapes.py": ("torch.fx.experimental.symbolic_shapes.SymIntEqByExpr",),
        "torch/__init__.py": ("torch.SymBool", "torch.SymFloat", "torch.SymInt"),
        "torch/csrc/functionalization/Module.cpp": ("torch._C._functionalization.InverseReturnMode",),
        "sympy/core: strict sympify": _of(
            "sympy.core",
            "add.Add mul.Mul numbers.Integer numbers.NegativeOne numbers.One numbers.Zero symbol.Symbol",
        ),
    },
    "common": {
        "Lib/pickle.py and Lib/copyreg.py: containers and members of enums": (
            *_of("builtins", "complex dict frozenset getattr list range set slice tuple"),
            *_of("collections", "Counter OrderedDict defaultdict"),
            "_codecs.encode",
        )
    },
}


def add(known: Known, kind: str, name: tuple[str, str], source: str) -> None:
    known[kind][name[0]][name[1]].add(source)


def globals_of(data: bytes) -> Iterator[tuple[str, str]]:
    """As `pickletools` tells them; the two texts before a STACK_GLOBAL, from the memo where they were met before."""
    memo: dict[int, str | None] = {}
    texts: list[str] = []
    before: str | None = None
    try:
        for opcode, argument, _ in pickletools.genops(data):
            text = argument if opcode.name.endswith("BINUNICODE") else None
            if opcode.name == "GLOBAL":
                module, _, name = str(argument).partition(" ")
                yield module, name
            elif opcode.name == "STACK_GLOBAL":
                yield texts[-2], texts[-1]
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                text = memo.get(argument)
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = before
            elif "BYTES" in opcode.name:
                inner = argument.removeprefix(MAGIC)
                if inner[:1] == b"\x80" and inner[1:2] in (b"\4", b"\5"):
                    yield from globals_of(inner)
            if text is not None:
                texts.append(text)
            before = text
    except ValueError:
        return  # one of the recordings holds a truncated entry


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
                for name in globals_of(data) if kind is not None and data[:1] == b"\x80" else ():
                    if name[0] == "__main__":
                        continue  # the program's own
                    engine = {"vllm": "vLLM ", "sglang": "SGLang "}.get(archive.parent.name, "")
                    add(known, str(kind), name, f"recording {engine}{version}")


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
                    add(known, kind, (module, node.name), f"source {version[1]}")
    for name in re.findall(
        r"^(\w+): (?:dtype|layout|memory_format|qscheme) = ",
        (site / "torch/_C/__init__.pyi").read_text(),
        re.MULTILINE,
    ):
        add(known, "tensors", ("torch", name), f"source {version[1]}")


def is_data(node: ast.ClassDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    bases = [ast.unparse(base) for base in node.bases]
    return any("dataclass" in text for text in decorators) or any(
        text.rpartition(".")[2] in ("Enum", "IntEnum", "NamedTuple") for text in bases
    )


def main() -> None:
    known: Known = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    from_recordings(known)
    for kind, sources in BY_HAND.items():
        for source, names in sources.items():
            for whole in names:
                module, _, name = whole.rpartition(".")
                add(known, kind, (module, name), f"source {source}")
    for site in sys.argv[1:]:
        from_sources(known, Path(site))
    shown = {
        kind: {
            module: {name: ", ".join(sorted(sources)) for name, sources in sorted(names.items())}
            for module, names in sorted(modules.items())
        }
        for kind, modules in sorted(known.items())
    }
    TARGET.write_text(json.dumps(shown, indent=1) + "\n")


if __name__ == "__main__":
    main()
