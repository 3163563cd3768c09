"""One pass over a pickle's opcodes that refuses a harmful program before the C unpickler runs it.

The unpickler trusts its input: it allocates any declared length, grows its memo to any index, and hashes keys
however nested they are. So a program is first followed with a stack of numbers in place of objects.
Opcodes as in CPython's Modules/_pickle.c and Lib/pickletools.py, protocols 0 to 5.
"""

from __future__ import annotations

from cachescope.readers.pickles.pickle_state import LEVEL, STEPS, Limits, State, UnreadablePickle, inst

_KIB = 10
_SIZE = [0] * 256
for _code, _bytes in {b"N": 1, b"\x88": 1, b"\x89": 1, b"K": 2, b"M": 3, b"J": 5, b"G": 9}.items():
    _SIZE[_code[0]] = _bytes
_EMPTY = {**dict.fromkeys(b"]}\x8f", LEVEL), ord(")"): LEVEL + 1}
_LENGTH_BYTES = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8}
_REFUSED = {
    **dict.fromkeys(b"PQ", "persistent id"),
    **dict.fromkeys(b"\x82\x83\x84", "extension code"),
    **dict.fromkeys(b"\x97\x98", "buffer from outside the pickle"),
    **dict.fromkeys(b"STU", "string of Python 2"),
}


def check_program(data: bytes, limits: Limits) -> list[int]:
    """Follow the opcodes of a pickle; raise `UnreadablePickle` at the first that must not run.

    A pickle that passes has its STOP inside the bytes, declares no length beyond them, keeps memo indexes dense,
    and neither hashes nor copies more than `limits`. Faults that the unpickler itself refuses without harm (an
    item taken below a mark, bad UTF-8) are not checked here.
    """
    program = Program(data, limits)
    try:
        program.run()
    except IndexError:
        if program.pos >= len(data) or data[program.pos :] == b"\x8c":
            raise UnreadablePickle("truncated", len(data), is_truncated=True) from None
        raise UnreadablePickle("not a pickle: takes what is not there", program.pos) from None
    return [] if frames_fit(data, program.frames, program.pos + 1) else program.frames


def frames_fit(data: bytes, frames: list[int], end: int) -> bool:
    """Whether each frame ends where the next one begins, and the last at the end, as picklers write them."""
    for at, after in zip(frames, [*frames[1:], end], strict=False):
        if int.from_bytes(data[at + 1 : at + 9], "little") != after - at - 9:
            return False
    return True


class Program(State):
    """A pickle whose opcodes are followed.

    Attributes
    ----------
    frames : list of int
        The offsets of the FRAME opcodes.
    """

    def __init__(self, data: bytes, limits: Limits) -> None:
        super().__init__(limits)
        self.data = data
        self.frames: list[int] = []

    def run(self) -> None:
        """Follow the opcodes up to STOP; raise IndexError if one takes an item that does not exist."""
        # Eight of ten opcodes are strings and their MEMOIZE, so the loop is optimized for them.
        data, pos, sizes, steps = self.data, 0, _SIZE, STEPS
        stack, marks, memo, size_of_all = self.stack, self.marks, self.memo, len(data)
        push, remember = stack.append, memo.append
        try:
            for _ in range(self.limits.opcodes):
                op = data[pos]
                if op == 0x8C:  # SHORT_BINUNICODE
                    pos += 2 + data[pos + 1]
                    push(0)
                    if data[pos] == 0x94:
                        remember(0)
                        pos += 1
                elif op == 0x94:  # MEMOIZE
                    remember(stack[-1])
                    pos += 1
                elif size := sizes[op]:
                    push(0)
                    pos += size
                elif op in _EMPTY:
                    push(_EMPTY[op])
                    pos += 1
                elif op == 0x28:  # MARK
                    marks.append(len(stack))
                    pos += 1
                elif op == 0x6A and pos + 5 <= size_of_all:  # LONG_BINGET
                    push(memo[int.from_bytes(data[pos + 1 : pos + 5], "little")])
                    pos += 5
                elif op in steps:
                    self.pos = pos
                    steps[op](self)
                    pos += 1
                elif op == 0x2E:  # STOP
                    stack[-1]
                    return
                else:
                    self.pos = pos
                    pos = self.argument(op, pos + 1)
        finally:
            self.pos = pos
        raise self.beyond(f"more than {self.limits.opcodes} opcodes")

    def argument(self, op: int, pos: int) -> int:
        """Follow an opcode with an argument; return the offset of the next opcode."""
        data, push = self.data, self.stack.append
        if op in b"hj":  # BINGET, LONG_BINGET
            end = pos + (1 if op == 0x68 else 4)
            push(self.memo[self.number(pos, end)])
            return end
        if op in _LENGTH_BYTES:
            start = pos + _LENGTH_BYTES[op]
            end = start + self.number(pos, start)
            if end > len(data):
                self.pos = len(data)
                raise UnreadablePickle("truncated", len(data), is_truncated=True)
            push((end - start) >> _KIB)
            return end
        if op in b"qr":  # BINPUT, LONG_BINPUT
            end = pos + (1 if op == 0x71 else 4)
            self.put(self.number(pos, end))
            return end
        if op in b"\x8a\x8b":  # LONG1, LONG4
            start = pos + (1 if op == 0x8A else 4)
            length = self.number(pos, start)
            if length > self.limits.int_bytes:
                raise self.beyond(f"an int of {length} bytes")
            push(length // 8)
            return start + length
        if op == 0x95:  # FRAME
            self.frames.append(pos - 1)
            end = pos + 8
            # Like `pickle.loads`, which torch calls: it only requires that the whole frame is there.
            if self.number(pos, end) > len(data) - end:
                raise UnreadablePickle("truncated", len(data), is_truncated=True)
            return end
        if op == 0x80:  # PROTO
            return pos + 1
        if op in b"VFILgpci":
            return self.line(op, pos)
        if op in _REFUSED:
            raise self.refuse(_REFUSED[op])
        raise self.refuse(f"not a pickle: no opcode 0x{op:02x}")

    def number(self, start: int, end: int) -> int:
        """The unsigned number in the bytes from `start` to `end`."""
        if end > len(self.data):
            raise UnreadablePickle("truncated", len(self.data), is_truncated=True)
        return int.from_bytes(self.data[start:end], "little")

    def line(self, op: int, pos: int) -> int:
        """Follow a text opcode, whose argument ends with the line; GLOBAL and INST take two lines."""
        end = self.end_of_line(pos)
        length = end - pos
        if op == 0x56:  # UNICODE
            self.stack.append(length >> _KIB)
        elif length > self.limits.line_bytes:
            raise self.beyond(f"a line of {length} bytes")
        elif op in b"gp":  # GET, PUT
            digits = self.data[pos:end]
            if not digits.isdigit() or length > 10:
                raise self.refuse("a memo index that is no number")
            if op == 0x67:
                self.stack.append(self.memo[int(digits)])
            else:
                self.put(int(digits))
        elif op in b"FIL":
            self.stack.append(length // 20)
        else:
            second = self.end_of_line(end + 1)
            if second - end > self.limits.line_bytes:
                raise self.beyond(f"a line of {second - end} bytes")
            self.stack.append(0) if op == 0x63 else inst(self)
            end = second
        return end + 1

    def end_of_line(self, pos: int) -> int:
        """The offset of the newline that ends the line."""
        end = self.data.find(b"\n", pos)
        if end < 0:
            raise UnreadablePickle("truncated", len(self.data), is_truncated=True)
        return end
