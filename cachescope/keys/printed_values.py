"""Reads back values that torch printed as text: never evaluated, never unpickled, and without warnings.

The compiler's warnings about the text (``invalid escape sequence``) would go to standard error and quote it unescaped.

torch pickles a dict of settings (torch/utils/_config_module.py, `save_config`, protocol 2) and prints the bytes decoded with
replacement characters, cut at 1,024 (torch/_inductor/codecache.py, `debug_lines`, 2.10 to 2.15). Names, texts and small numbers
are still there; ``True`` and ``False`` print alike. Nothing is unpickled: the text is followed as long as it has one reading.
"""

from __future__ import annotations

import ast
import contextlib
import re
import struct
import warnings
from collections.abc import Iterable, Iterator
from typing import Final

from cachescope.components import Detail
from cachescope.keys.detail_hash import detail_hashes
from cachescope.keys.json_values import UnsupportedValueError

_BYTE: Final = "\ufffd"
"""How any byte from 128 on is printed."""
_FORWARD: Final = re.compile(r"^def forward\((?P<rest>.*)", re.MULTILINE)
_FIRST: Final = f"{_BYTE}\x02}}"
FLAG: Final = "True or False"
NUMBER: Final = "a number"
_VALUES: Final = ("X", "N", "K", "M", "J", "G", "]", _BYTE)
_NUMBERS: Final = {"K": "<B", "M": "<H", "J": "<i", "G": ">d"}
_SYMBOL: Final = re.compile(r"\b[su]\d+\b")
# The types that torch gives a float where shapes are dynamic (torch/_dynamo/variables/builder.py, `wrap_symfloat`), and an integer.
FLOAT: Final = re.compile(r"TensorMetadata\(dtype=torch\.float64, shape=torch\.Size\(\[\]\), .*", re.DOTALL)
_INTEGER: Final = re.compile(r"\('[su]\d+',\)|[su]\d+")


def literal_value(text: str) -> object:
    """The value of a literal.

    >>> literal_value("{'a': (1, None)}")
    {'a': (1, None)}
    """
    try:
        return ast.literal_eval(parsed_expression(text.lstrip(" \t")))
    except (TypeError, MemoryError, RecursionError) as error:
        # A list as a dictionary key raises TypeError.
        raise ValueError(f"no literal: {error}") from error


def parsed_expression(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"no expression: {error}") from error


def arguments(text: str) -> Iterator[tuple[str, bool]]:
    """Each argument of a call, and whether the closing bracket follows; commas in quotes and brackets do not divide them."""
    start, depth, quote = 0, 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            if depth == 0:
                yield text[start:at].strip(), True
                return
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:at].strip(), False
            start = at + 1
    yield text[start:].strip(), False


def graph_inputs(code: str) -> list[str]:
    r"""The inputs of a printed graph with their annotations, without `self`; empty if its code does not show them.

    >>> graph_inputs("<lambda>()\n\n\n\ndef forward(self, p_0 : torch.Tensor, s : tuple[int, int]):")
    ['p_0 : torch.Tensor', 's : tuple[int, int]']
    """
    line = _FORWARD.search(code)
    found = [] if line is None else list(arguments(line["rest"]))
    if not found or not found[-1][1]:
        return []
    return [one for one, _ in found if one not in ("", "self") and not one.startswith("*")]


def printed_value(detail: Detail) -> object:
    """The value whose text torch printed, which its hash confirms; `NotImplemented` if none is confirmed.

    torch prints a text without quotes: ``1`` may be a number or a text.
    """
    for read in (literal_value, str):
        try:
            value = read(detail.value_text)
            if detail.detail_hash in detail_hashes(value):
                return value
        except (ValueError, UnsupportedValueError):
            continue
    return NotImplemented


def shown_settings(text: str) -> dict[str, str]:
    r"""Each setting and its value in words, as far as the text shows them; empty for any other text.

    >>> import pickle
    >>> printed = pickle.dumps({"cse": True, "budget": 2.5, "solver": "dp"}, protocol=2).decode(errors="replace")
    >>> shown_settings(printed)
    {'cse': 'True or False', 'budget': '2.5', 'solver': "'dp'"}
    """
    if not text.startswith(_FIRST):
        return {}
    # What is cut ends with an ellipsis; a whole pickle never does.
    reader = _Reader(text.removesuffix("..."), len(_FIRST))
    found: dict[str, str] = {}
    with contextlib.suppress(_NotReadError):
        reader.memo()
        while reader.take(1) in ("(", "u"):
            while reader.next == "X":
                name = reader.name()
                found[name] = reader.value()
    return found


def sizes_became(inputs: Iterable[tuple[str, str]]) -> str:
    """``symbolic`` if printed inputs have more symbols than before, ``fixed`` if they have fewer; ``unbacked`` or ``backed`` if that alone changed; else empty.

    Inputs whose type changed do not count.
    """
    same = [pair for pair in inputs if not type_became(*pair)]
    old, new = ({symbol for pair in same for symbol in _SYMBOL.findall(pair[side])} for side in (0, 1))
    if len(old) != len(new):
        return "symbolic" if len(new) > len(old) else "fixed"
    before, after = (sum(symbol.startswith("u") for symbol in side) for side in (old, new))
    return "unbacked" if after > before else "backed" if after < before else ""


def type_became(before: str, after: str) -> str:
    """The type of the argument behind a printed input, if it is another than before; else empty."""
    if FLOAT.fullmatch(before) and _INTEGER.fullmatch(after):
        return "an integer where it was a float"
    if _INTEGER.fullmatch(before) and FLOAT.fullmatch(after):
        return "a float where it was an integer"
    return ""


class _NotReadError(Exception):
    """The text ends, or could be read in more than one way."""


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at

    @property
    def next(self) -> str:
        return self._text[self._at : self._at + 1]

    def take(self, count: int) -> str:
        taken = self._text[self._at : self._at + count]
        if len(taken) < count:
            raise _NotReadError
        self._at += count
        return taken

    def memo(self) -> None:
        """Skip a number under which the last object is remembered."""
        if self.next in ("q", "r"):
            self.take(2 if self.next == "q" else 5)

    def name(self) -> str:
        self.take(1)
        text = self.take(self._number("<I", 4))
        # Lengths count bytes.
        if not text.isascii():
            raise _NotReadError
        self.memo()
        return text

    def value(self) -> str:
        match self.next:
            case "X":
                return repr(self.name())
            case "N":
                self.take(1)
                return "None"
            case "K" | "M" | "J" | "G" as kind:
                self.take(1)
                return self._number_text(_NUMBERS[kind])
            case "]":
                return self._list()
            case _ if self.next == _BYTE:
                self.take(1)
                return FLAG
        raise _NotReadError

    def _list(self) -> str:
        self.take(1)
        self.memo()
        if self.next == "X":
            # A list of one, which APPEND ends; or an empty list, then the next name and its value.
            before = self._at
            item = self.value()
            if self.next == "a":
                self.take(1)
                return f"[{item}]"
            if self.next not in _VALUES:
                raise _NotReadError
            self._at = before
            return "[]"
        if self.next == "u":
            return "[]"
        if self.take(1) != "(":
            raise _NotReadError
        items = []
        while self.next != "e":
            items.append(self.value())
        self.take(1)
        return f"[{', '.join(items)}]"

    def _number_text(self, form: str) -> str:
        """A number; one with bytes from 128 on is not known, and is passed where a name or the end follows it."""
        before = self._at
        try:
            return repr(self._number(form, struct.calcsize(form)))
        except _NotReadError:
            self._at = before
            self.take(struct.calcsize(form))
            if self.next not in ("X", "u"):
                raise
            return NUMBER

    def _number(self, form: str, count: int) -> int:
        taken = self.take(count)
        if not taken.isascii():
            raise _NotReadError
        (number,) = struct.unpack(form, taken.encode())
        return number  # type: ignore[no-any-return]
