"""The results of calls in a pickle, and the few calls whose arguments decide what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cachescope.auditing.acts import OTHER, Bytes, CallResult, Encoded, Global, Partial, Run


def _attribute(run: Run, target: Global, given: tuple[Any, ...]) -> Any:
    """The global that ``getattr`` of a global and a name returns: pickle.py writes enum members and nested classes so."""
    if len(given) == 2 and isinstance(given[0], Global) and isinstance(given[1], str):
        return run.name(given[0].module, f"{given[0].name}.{given[1]}")
    run.act("computed", target, f"calls {target} with what it computed")
    return OTHER


def _partial(run: Run, target: Global, given: tuple[Any, ...]) -> Any:
    """Check that the function of a ``partial``, which is called later, is a named global."""
    if given and isinstance(given[0], Global):
        return Partial(given[0])
    run.act("computed", target, f"calls {target} with what it computed")
    return CallResult()


def _nested(run: Run, target: Global, given: tuple[Any, ...]) -> Any:
    """Check that bytes which torch unpickles in turn are in the pickle, where they can be audited."""
    if not given or not isinstance(given[0], (Bytes, Encoded)):
        run.act("computed", target, f"calls {target} with what it computed")
    return CallResult()


def _encode(run: Run, target: Global, given: tuple[Any, ...]) -> Any:
    """Note bytes that are encoded from a text, as protocols 0 to 2 write them."""
    text = given[0] if given else None
    if isinstance(text, Bytes):
        text = run.data[text.start : text.end].decode("utf-8", "surrogatepass")
    if not isinstance(text, str):
        run.act("computed", target, f"calls {target} with what it computed")
        return OTHER
    is_latin = len(given) < 2 or given[1] in ("latin1", "latin-1")
    run.program.texts_inside.append((text.encode("latin-1" if is_latin else "utf-8", "replace"), run.op_at))
    return Encoded()


# Calls whose arguments decide what they do.
WATCHED: Final[dict[tuple[str, str], Callable[[Run, Global, tuple[Any, ...]], Any]]] = {
    ("builtins", "getattr"): _attribute,
    ("__builtin__", "getattr"): _attribute,
    ("functools", "partial"): _partial,
    ("torch.storage", "_load_from_bytes"): _nested,
    ("_codecs", "encode"): _encode,
}


def call(run: Run, target: Any, arguments: Any) -> Any:
    """Follow a call and return its result."""
    if isinstance(target, Partial) and (target.function.module, target.function.name) not in WATCHED:
        return CallResult()
    if not isinstance(target, Global):
        run.act("computed", None, "calls what it computed")
        return CallResult()
    given = arguments if isinstance(arguments, tuple) else (arguments,)
    watched = WATCHED.get((target.module, target.name))
    return CallResult() if watched is None else watched(run, target, given)
