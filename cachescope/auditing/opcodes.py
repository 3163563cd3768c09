"""Follows a pickle: the effect of each opcode (CPython's Lib/pickle.py, protocols 0 to 5), and of what is called.

A pickle acts while it is read, so the acts of a broken pickle before the break count.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final

from cachescope.auditing.pickle_effects import (
    OTHER,
    Broken,
    Bytes,
    CallResult,
    Encoded,
    Global,
    Partial,
    Program,
    Run,
    Table,
)

_MOST_OPCODES: Final = 2_000_000
_FIXED: Final = {
    **dict.fromkeys(b"N\x88\x89", 0), **dict.fromkeys(b"K", 1), **dict.fromkeys(b"M", 2),
    **dict.fromkeys(b"J", 4), **dict.fromkeys(b"G", 8),
}  # fmt: skip
_TEXTS: Final = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x54: 4, 0x55: 1}
_BYTES: Final = {0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}


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


def _long_text(run: Run) -> None:
    line = run.line()
    run.stack.append(codecs.raw_unicode_escape_decode(line)[0])


def _quoted(run: Run) -> None:
    line = run.line().strip()
    run.stack.append(codecs.escape_decode(line[1:-1])[0].decode("latin-1"))


def _value_line(run: Run) -> None:
    run.line()
    run.stack.append(OTHER)


def _get(run: Run, index: int) -> None:
    if index not in run.memo:
        raise Broken(f"not a pickle: nothing was remembered as {index}")
    run.stack.append(run.memo[index])


def _global(run: Run) -> None:
    module, name = run.line().decode(), run.line().decode()
    run.stack.append(run.name(module, name))


def _stack_global(run: Run) -> None:
    name, module = run.stack.pop(), run.stack.pop()
    run.stack.append(run.name(module, name))


def _inst(run: Run) -> None:
    target = run.name(run.line().decode(), run.line().decode())
    taken = tuple(run.pop_mark())  # replaces the stack
    run.stack.append(call(run, target, taken))


def _obj(run: Run) -> None:
    taken = run.pop_mark()
    run.stack.append(call(run, taken[0], tuple(taken[1:])))


def _reduce(run: Run) -> None:
    arguments, target = run.stack.pop(), run.stack.pop()
    run.stack.append(call(run, target, arguments))


def _newobj_ex(run: Run) -> None:
    run.stack.pop()
    _reduce(run)


def _build(run: Run) -> None:
    state, target = run.stack.pop(), run.stack[-1]
    run.changed(target, "sets attributes of")
    if isinstance(target, Partial):
        function = state[0] if isinstance(state, tuple) and state else None
        if isinstance(function, Global):
            target.function = function
        else:
            run.act("computed", None, "sets the function of a partial to what it computed")
    for part in state if isinstance(state, tuple) else (state,):
        for key in sorted(part.keys) if isinstance(part, Table) else ():
            if key.startswith("__") and key.endswith("__"):
                run.act("computed", None, f"sets {key} of an object")


def _extension(size: int) -> Callable[[Run], None]:
    def step(run: Run) -> None:
        code = run.number(size)
        run.act("odd", None, f"a global by extension code {code}")
        run.stack.append(OTHER)

    return step


def _persistent_line(run: Run) -> None:
    run.line()
    run.act("odd", None, "a persistent id")
    run.stack.append(OTHER)


def _persistent(run: Run) -> None:
    run.stack.pop()
    run.act("odd", None, "a persistent id")
    run.stack.append(OTHER)


def _buffer(run: Run) -> None:
    run.act("odd", None, "a buffer from outside the pickle")
    run.stack.append(OTHER)


def _tuple_of(count: int) -> Callable[[Run], None]:
    def step(run: Run) -> None:
        if len(run.stack) < count:
            raise Broken("not a pickle: takes what is not there")
        taken = tuple(run.stack[len(run.stack) - count :])
        del run.stack[len(run.stack) - count :]
        run.stack.append(taken)

    return step


def _table(run: Run) -> None:
    table = Table()
    for key in run.pop_mark()[::2]:
        table.add(key)
    run.stack.append(table)


def _set_item(run: Run) -> None:
    run.stack.pop()
    key = run.stack.pop()
    _keep_keys(run, [key])


def _keep_keys(run: Run, keys: list[Any]) -> None:
    target = run.stack[-1]
    run.changed(target, "sets items of")
    if isinstance(target, Table):
        for key in keys:
            target.add(key)


def _put_into(run: Run) -> None:
    run.pop_mark()
    run.changed(run.stack[-1], "adds items to")


def _append(run: Run) -> None:
    run.stack.pop()
    run.changed(run.stack[-1], "adds items to")


def _mark(run: Run) -> None:
    run.below.append(run.stack)
    run.stack = []


def _pop(run: Run) -> None:
    if run.stack:
        run.stack.pop()
    else:
        run.pop_mark()


def _frame(run: Run) -> None:
    length = run.number(8)
    if run.frame_end:
        run.act("odd", None, "a frame inside a frame: unpicklers disagree on what follows")
    run.frame_end = run.at + length


def _of_mark(make: Callable[[list[Any]], Any]) -> Callable[[Run], None]:
    def step(run: Run) -> None:
        made = make(run.pop_mark())
        run.stack.append(made)

    return step


STEPS: Final[dict[int, Callable[[Run], Any]]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda run: run.number(1),
        "\x95": _frame,
        "V": _long_text,
        "S": _quoted,
        "F": _value_line,
        "I": _value_line,
        "L": _value_line,
        "\x8a": lambda run: (run.skip(1), run.stack.append(OTHER)),
        "\x8b": lambda run: (run.skip(4), run.stack.append(OTHER)),
        "c": _global,
        "i": _inst,
        "o": _obj,
        "\x93": _stack_global,
        "R": _reduce,
        "\x81": _reduce,
        "\x92": _newobj_ex,
        "b": _build,
        "\x82": _extension(1),
        "\x83": _extension(2),
        "\x84": _extension(4),
        "P": _persistent_line,
        "Q": _persistent,
        "\x97": _buffer,
        "\x98": lambda run: run.stack[-1],
        "(": _mark,
        "0": _pop,
        "1": lambda run: run.pop_mark(),
        "2": lambda run: run.stack.append(run.stack[-1]),
        ")": _tuple_of(0),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "t": _of_mark(tuple),
        "l": _of_mark(lambda _: OTHER),
        "\x91": _of_mark(lambda _: OTHER),
        "d": _table,
        "]": lambda run: run.stack.append(OTHER),
        "\x8f": lambda run: run.stack.append(OTHER),
        "}": lambda run: run.stack.append(Table()),
        "a": _append,
        "e": _put_into,
        "\x90": _put_into,
        "s": _set_item,
        "u": lambda run: _keep_keys(run, run.pop_mark()[::2]),
        "g": lambda run: _get(run, int(run.line())),
        "h": lambda run: _get(run, run.number(1)),
        "j": lambda run: _get(run, run.number(4)),
        "p": lambda run: run.memo.__setitem__(int(run.line()), run.stack[-1]),
        "q": lambda run: run.memo.__setitem__(run.number(1), run.stack[-1]),
        "r": lambda run: run.memo.__setitem__(run.number(4), run.stack[-1]),
    }.items()
}


def follow(data: bytes, start: int = 0) -> Program:
    """Follow a pickle from an offset; never raises, whatever the bytes are."""
    run = Run(data, start)
    try:
        _follow(run)
    except Broken as error:
        run.program.damage = str(error)
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        run.program.damage = "truncated" if run.at >= len(data) else f"not a pickle: {error}"
    run.program.end = run.at
    return run.program


def _follow(run: Run) -> None:
    """Follow every opcode up to STOP."""
    steps = STEPS
    for _ in range(_MOST_OPCODES):
        op = run.data[run.at]
        run.op_at = run.at
        if run.frame_end and run.at >= run.frame_end:
            run.at_frame_end()
        run.at += 1
        if op == 0x2E:  # STOP
            run.stack[-1]
            run.op_at = run.at
            if run.frame_end:
                run.at_frame_end()
            return
        if op in _TEXTS:
            run.stack.append(run.text_at(run.counted(_TEXTS[op])))
        elif op == 0x94:  # MEMOIZE
            run.memo[len(run.memo)] = run.stack[-1]
        elif op in _FIXED:
            run.take(_FIXED[op])
            run.stack.append(OTHER)
        elif op in _BYTES:
            run.push_bytes(_BYTES[op])
        elif op in steps:
            steps[op](run)
        else:
            raise Broken(f"not a pickle: no opcode 0x{op:02x}")
    run.program.is_cut = True
