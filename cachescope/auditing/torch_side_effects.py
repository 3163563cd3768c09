"""Audits what torch does with an unpickled entry: it runs its code, evaluates its guards, writes its files.

`ShapeEnv.evaluate_guards_expression` does so (torch/fx/experimental/symbolic_shapes.py, 2.6 to 2.15), with access to
the modules ``math`` and ``torch`` and to Python's builtins.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

from cachescope.auditing.findings import shown
from cachescope.auditing.generated_code import foreign_parts, rule_of
from cachescope.keys.hashing import stored_code_hash
from cachescope.readers.directory.places import TRITON_KEY
from cachescope.readers.pickles.inert_pickle import Stub, global_name
from cachescope.terms import CODE_KEY

_MOST_CHARACTERS: Final = 1_000_000
_CALLS: Final = re.compile(
    r"max|min|abs|round|int|float|bool|cast_symbool_to_symint_guardless|IsNonOverlappingAndDenseIndicator|"
    r"torch\.sym_(?:float|int|max|min|not|ite|sum)|torch\._sym_\w+|math\.\w+"
)
_CONSTANTS: Final = re.compile(r"math\.(?:inf|nan|pi|e)")
_NODES: Final = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Compare,
    ast.cmpop, ast.IfExp, ast.expr_context,
)  # fmt: skip

Judged = Iterator[tuple[str, str, object]]
"""A rule, a message, and the value that breaks the rule: its text is searched to find the offset."""

_MOST_OBJECTS: Final = 5_000_000
_TRITON_KEY: Final = re.compile(TRITON_KEY)
_FILE_NAME: Final = re.compile(r"(?!\.)[^/\\\0]{1,255}")
# Names with which byte code could do more than a compiled function does.
_BYTE_CODE: Final = frozenset(
    "__import__ eval exec compile open system popen Popen getattr setattr __builtins__ __class__ __subclasses__ "  # noqa: SIM905
    "__globals__ import_module load_library os subprocess socket shutil ctypes importlib builtins pickle".split()
)


def is_arithmetic(text: str) -> bool:
    """Whether an expression can only compute and compare numbers."""
    if not text:
        return True
    if len(text) > _MOST_CHARACTERS:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            waiting: list[ast.AST] = [ast.parse(text.strip(), mode="eval")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while waiting:
        match waiting.pop():
            case node if isinstance(node, _NODES):
                waiting += ast.iter_child_nodes(node)
            case ast.Call(func=func, args=args, keywords=[]) if _CALLS.fullmatch(ast.unparse(func)):
                waiting += args
            case ast.Attribute() as node if _CONSTANTS.fullmatch(ast.unparse(node)):
                pass
            case ast.Constant(value=int() | float()):
                pass
            # The size ``L['t0']``.
            case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=str())):
                pass
            case _:
                return False
    return True


def audit_object(value: object) -> Judged:
    """Yield the findings in the object of an entry, as `loads_inert` returns it."""
    for stub in _stubs(value):
        state = stub.state
        for field in ("guards_expr", "fx_graph_guard_expr"):
            text = state.get(field)
            if text is not None and not (isinstance(text, str) and is_arithmetic(text)):
                yield "guard-runs-code", f"{field} is {_short(text)}", text
        judge = _JUDGES.get(stub.name)
        if judge is not None:
            yield from judge(stub, state)


def _stubs(value: object) -> Iterator[Stub]:
    seen: set[int] = set()
    waiting: list[Any] = [value]
    while waiting and len(seen) < _MOST_OBJECTS:
        one = waiting.pop()
        if isinstance(one, (str, bytes, int, float, bool, type(None))) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Stub):
            yield one
            waiting += [one.args, one.items, one.pairs, one.raw_state, dict(one.keywords)]
        elif isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one


def _short(value: object) -> str:
    return shown(value if isinstance(value, str) else f"a {type(value).__name__}")[:120]


def _compiled_graph(stub: Stub, state: dict[str, object]) -> Judged:
    """``CompiledFxGraph``: its source is written to ``<kk>/<cache_key>.py`` and imported (``write_to_disk``)."""
    key, source = state.get("cache_key"), state.get("source_code")
    if key is not None and not (isinstance(key, str) and CODE_KEY.fullmatch(key)):
        yield "path-escapes", f"its code is written to, and run from, the place {_short(key)}", key
    if source is None:
        return
    if not isinstance(source, str):
        yield "code-foreign-call", f"its code is {_short(source)}", source
        return
    # torch cannot hash half of a surrogate pair.
    written = source.encode("utf-8", "replace").decode()
    if isinstance(key, str) and (written != source or stored_code_hash(source) != key):
        yield "code-changed", "its code is not that of the hash in its cache_key", source
    yield from _foreign("its code", source)


def _foreign(what: str, source: str) -> Judged:
    return ((rule_of(part), f"{what} {part}", source) for part in foreign_parts(source))


def _graph_module(stub: Stub, state: dict[str, object]) -> Judged:
    """``SerializedGraphModule``: calls the function that it contains, which must be `reduce_graph_module`."""
    if state and global_name(state.get("fn")) != "torch.fx.graph_module.reduce_graph_module":
        yield "pickle-computed-call", "a graph that is made by a function which does not make graphs", None
    given = state.get("args")
    yield from _graph_code(given if isinstance(given, tuple) else ())


def _reduced_graph(stub: Stub, state: dict[str, object]) -> Judged:
    """``reduce_graph_module(body, imports)``: runs both as Python."""
    yield from _graph_code(stub.args)


def _graph_code(given: tuple[object, ...]) -> Judged:
    body = given[0] if given else None
    texts = [body.get("_code") if isinstance(body, dict) else None, given[1] if len(given) > 1 else None]
    for text in texts:
        if isinstance(text, str):
            yield from _foreign("the code of its graph", text)
        elif text is not None:
            yield "code-foreign-call", f"the code of its graph is {_short(text)}", text


def _bundled_kernel(stub: Stub, state: dict[str, object]) -> Judged:
    """``TritonKernelArtifacts``: written to the folder named by its hash (``TritonBundler.read_and_emit``)."""
    key = _field(stub, state, "kernel_hash", 0)
    if not isinstance(key, str) or not _TRITON_KEY.fullmatch(key):
        yield "path-escapes", f"its kernels are written to the folder {_short(key)}", key


def _bundled_file(stub: Stub, state: dict[str, object]) -> Judged:
    """``TritonKernelArtifact``: one file of a bundled kernel."""
    name = _field(stub, state, "filename", 0)
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        yield "path-escapes", f"a file of its kernels is written as {_short(name)}", name


def _field(stub: Stub, state: dict[str, object], name: str, place: int) -> object:
    if name in state:
        return state[name]
    return stub.args[place] if len(stub.args) > place else stub.keywords.get(name)


def _byte_code(stub: Stub, state: dict[str, object]) -> Judged:
    """``SerializedCode``: byte code, which torch runs unchanged (torch/_dynamo/package.py)."""
    names = state.get("co_names")
    for name in names if isinstance(names, (tuple, list)) else ():
        if isinstance(name, str) and name in _BYTE_CODE:
            yield "code-foreign-call", f"its byte code uses {name}", name


_JUDGES: Final = {
    "CompiledFxGraph": _compiled_graph, "SerializedGraphModule": _graph_module,
    "reduce_graph_module": _reduced_graph, "TritonKernelArtifacts": _bundled_kernel,
    "TritonKernelArtifact": _bundled_file, "SerializedCode": _byte_code,
}  # fmt: skip
