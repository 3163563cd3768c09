"""Audits what torch does with an unpickled entry: it runs its code, evaluates its guards, writes its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from cachescope.auditing.arithmetic import is_arithmetic
from cachescope.auditing.findings import shown
from cachescope.auditing.generated_code import foreign_parts
from cachescope.auditing.known import is_own
from cachescope.keys.hashing import stored_code_hash
from cachescope.readers.directory.places import TRITON_KEY
from cachescope.readers.pickles.inert_pickle import Stub, global_name
from cachescope.readers.pickles.pickle_calls import Global, everything
from cachescope.terms import CODE_KEY, FX_KEY

# A rule, a message, and the value that breaks the rule: its text is searched to find the offset.
Judged = Iterator[tuple[str, str, object]]

_TRITON_KEY: Final = re.compile(TRITON_KEY)
_FILE_NAME: Final = re.compile(r"(?!\.)[^/\\\0]{1,255}")
_REDUCED: Final = "torch.fx.graph_module.reduce_graph_module"
# These run what they are given: as values, generated code could give them anything.
_NO_VALUES: Final = frozenset(
    {_REDUCED, "torch.storage._load_from_bytes", "functools.partial", "builtins.getattr"}
)
# torch makes Python of what is in objects of these modules (``torch/_functorch/_aot_autograd/codegen.py``, from 2.12).
_METADATA: Final = (
    "torch._functorch._aot_autograd.schemas",
    "torch._functorch._aot_autograd.runtime_wrappers",
)
_PLAIN: Final = re.compile(r"[\w.:/-]*")
# Classes whose objects make Python, or load a library, of what they are given.
_RUN_CODE: Final = {
    "CachingAutotuner": "launches a kernel by what it says itself",
    "CompiledAOTI": "loads a library",
}


def audit_object(values: list[object]) -> Judged:
    """Yield the findings in what a pickle holds and makes."""
    for one in everything(values):
        if isinstance(one, Stub):
            yield from _judged(one)
        elif not isinstance(one, bytes) and (global_name(one) or "builtins.getattr") in _NO_VALUES:
            message = f"holds {global_name(one) or 'getattr'} as a value, which no entry of torch's does"
            yield "pickle-computed-call", message, None


def _judged(stub: Stub) -> Judged:
    state = stub.state
    for field in ("guards_expr", "fx_graph_guard_expr"):
        text = state.get(field)
        if text is not None and not (isinstance(text, str) and is_arithmetic(text)):
            yield "guard-runs-code", f"{field} is {_short(text)}", text
    for one in (state.get("fx_graph_cache_info"), state.get("fx_graph_cache_key")):
        key = one[0] if isinstance(one, tuple) and one else one
        if key is not None and not (isinstance(key, str) and FX_KEY.fullmatch(key)):
            yield "path-escapes", f"its graph is loaded from the place {_short(key)}", key
    if stub.name == "Symbol" and not all(one.isidentifier() for one in stub.args if isinstance(one, str)):
        yield "code-not-as-torch", "a symbol that is no name", None
    told = [value for key, value in state.items() if "stack_trace" not in str(key)]
    metadata = (one for one in _leaves(told) if isinstance(one, str))
    if stub.module.startswith(_METADATA) and not all(map(_PLAIN.fullmatch, metadata)):
        yield "code-not-as-torch", f"a text in its metadata, of which torch makes Python ({stub.name})", None
    if (judge := _JUDGES.get(stub.name)) is not None:
        yield from judge(stub, state)
    if stub.name in _RUN_CODE:
        yield "native-code", f"an entry that {_RUN_CODE[stub.name]}", None


def _leaves(value: Any) -> Iterator[Any]:
    """What is in containers, and in those in them, each looked into once."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, Stub) and one.name == "OrderedSet":
            waiting += [one.args, one.items, one.raw_state]
        elif not isinstance(one, (list, tuple, dict, set, frozenset)):
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            waiting += [*one.keys(), *one.values()] if isinstance(one, dict) else one


def _short(value: object) -> str:
    return shown(value if isinstance(value, str) else f"a {type(value).__name__}")[:120]


def _compiled_graph(stub: Stub, state: dict[str, object]) -> Judged:
    """``CompiledFxGraph``: its source is written to ``<kk>/<cache_key>.py`` and imported, its constants become names in it."""
    for field in ("constants", "torchbind_constants", "opaque_value_type_classes"):
        held = state.get(field)
        if held is not None and not (isinstance(held, dict) and all(map(_is_constant, held.values()))):
            yield "pickle-computed-call", f"its {field} are neither tensors nor own classes", None
    for stride in _leaves(state.get("output_strides")):
        # Evaluated with the sizes of a call (`set_tracing_context_output_strides`, torch/_inductor/utils.py).
        if stride is not None and not (isinstance(stride, str) and is_arithmetic(stride, any_name=True)):
            yield "guard-runs-code", f"a stride of its results is {_short(stride)}", stride
    key, source = state.get("cache_key"), state.get("source_code")
    if key is not None and not (isinstance(key, str) and CODE_KEY.fullmatch(key)):
        yield "path-escapes", f"its code is written to, and run from, the place {_short(key)}", key
    if source is None:
        return
    if not isinstance(source, str):
        yield "code-not-as-torch", f"its code is {_short(source)}", source
        return
    # torch cannot hash half of a surrogate pair.
    written = source.encode("utf-8", "replace").decode()
    if isinstance(key, str) and (written != source or stored_code_hash(source) != key):
        yield "code-changed", "its code is not that of the hash in its cache_key", source
    yield from _foreign("its code", source)


def _is_constant(value: object) -> bool:
    own = isinstance(value, type) and issubclass(value, Stub) and is_own(Global(value.module, value.name))
    return own or isinstance(value, Stub)


def _foreign(what: str, source: str) -> Judged:
    return ((rule, f"{what} {message}", source) for rule, message in foreign_parts(source))


def _graph_module(stub: Stub, state: dict[str, object]) -> Judged:
    """``SerializedGraphModule``: calls the function that it contains, which must be `reduce_graph_module`."""
    if state and global_name(state.get("fn")) != _REDUCED:
        yield "pickle-computed-call", "a graph that is made by a function which does not make graphs", None
    given = state.get("args")
    if state:
        yield from _graph_code(given if isinstance(given, tuple) else ())


def _graph_code(given: tuple[object, ...]) -> Judged:
    """``reduce_graph_module(body, imports)``: runs both as Python, one behind the other."""
    body = given[0] if len(given) == 2 else None
    code = (body.get("_code") or body.get("code", "")) if isinstance(body, dict) else None
    if not isinstance(code, str) or not isinstance(given[1], str):
        yield "code-not-as-torch", "a graph without its code", None
        return
    for rule, message, _ in _foreign("the code of its graph", given[1] + code):
        yield rule, message, code or given[1]


def _bundled_kernel(stub: Stub, state: dict[str, object]) -> Judged:
    """``TritonKernelArtifacts``: written to the folder named by its hash (``TritonBundler.read_and_emit``)."""
    key, device = _field(stub, state, "kernel_hash"), state.get("device", (*stub.args, None, None)[1])
    if not isinstance(device, int | None):
        yield "path-escapes", f"its kernels are written for the device {_short(device)}", device
    if not isinstance(key, str) or not _TRITON_KEY.fullmatch(key):
        yield "path-escapes", f"its kernels are written to the folder {_short(key)}", key


def _bundled_file(stub: Stub, state: dict[str, object]) -> Judged:
    """``TritonKernelArtifact``: one file of a bundled kernel."""
    name = _field(stub, state, "filename")
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        yield "path-escapes", f"a file of its kernels is written as {_short(name)}", name
    yield "native-code", "holds kernels of machine code", name


def _field(stub: Stub, state: dict[str, object], name: str) -> object:
    """The first field of an object, however it was given."""
    if name in state:
        return state[name]
    return stub.args[0] if stub.args else stub.keywords.get(name)


_JUDGES: Final[dict[str, Callable[[Stub, dict[str, object]], Judged]]] = {
    "CompiledFxGraph": _compiled_graph, "SerializedGraphModule": _graph_module,
    "reduce_graph_module": lambda stub, state: _graph_code(stub.args), "TritonKernelArtifacts": _bundled_kernel,
    "TritonKernelArtifact": _bundled_file,
}  # fmt: skip
