"""Follows a pickle: every global that it names, calls or changes, with the offset.

A pickle acts while it is read, so the acts of a broken pickle before the break count.
"""

from __future__ import annotations

from typing import Final

from cachescope.auditing.acts import OTHER, Broken, Program, Run
from cachescope.auditing.opcodes import STEPS

_MOST_OPCODES: Final = 2_000_000
_FIXED: Final = {
    **dict.fromkeys(b"N\x88\x89", 0), **dict.fromkeys(b"K", 1), **dict.fromkeys(b"M", 2),
    **dict.fromkeys(b"J", 4), **dict.fromkeys(b"G", 8),
}  # fmt: skip
_TEXTS: Final = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x54: 4, 0x55: 1}
_BYTES: Final = {0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}


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
