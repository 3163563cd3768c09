"""How far a fact walks: the functions and files of the package through whose arguments and results it passes, at run time.

    python tests/walks.py    three walks: a hash detail, a guard, and an option, each from where it is read to the screen

A function counts if one of its arguments or its result is a text with the fact, or a row, a list or the like with such a text.
What a file costs a reader is seen so: the fewer files a fact passes, the fewer have to be opened to follow or to change it.
"""

import contextlib
import dataclasses
import io
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import cachescope
from cachescope import cli

PACKAGE: Final = Path(cachescope.__file__).parent
# What is looked for, and the command on a sample that brings it to the screen.
WALKS: Final = {
    "a hash detail": ("epilogue_fusion", ["explain", "samples/config_flip"]),
    "a guard": ("L['t0']", ["explain", "samples/dynamic_guards"]),
    "an option": ("epilogue_fusion", ["what-if", "samples/config_flip", "--without", "inductor_config[epilogue_fusion]"]),
}  # fmt: skip
_DEEPEST: Final = 1
_MOST_MEMBERS: Final = 64


def holds(value: Any, fact: str, depth: int = _DEEPEST) -> bool:
    """Whether a value is a text with the fact, or has one among its first members, some steps down."""
    if isinstance(value, str):
        return fact in value
    if isinstance(value, bytes):
        return fact.encode() in value
    return depth > 0 and any(holds(one, fact, depth - 1) for one in islice(_members(value), _MOST_MEMBERS))


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)


class Walk:
    """The functions that a fact passes while a command runs, by file."""

    def __init__(self, fact: str) -> None:
        self._fact = fact
        self._passed: set[CodeType] = set()
        self.functions: dict[str, dict[str, None]] = {}

    def _look(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if (
            event not in ("call", "return")
            or code in self._passed
            or not code.co_filename.startswith(str(PACKAGE))
        ):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [result] if event == "return" else [frame.f_locals.get(name) for name in names]
        if any(holds(value, self._fact) for value in values):
            self._passed.add(code)
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            self.functions.setdefault(file, {})[code.co_name] = None

    def follow(self, arguments: list[str]) -> None:
        """Run a command, and note what the fact passes."""
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            sys.setprofile(self._look)
            try:
                cli.main(arguments)
            finally:
                sys.setprofile(None)
        assert self._fact in shown.getvalue()


def main() -> None:
    """Print the walks: of each the counts, and if asked the files with their functions."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="name the files and functions, too")
    is_long = parser.parse_args().files
    for name, (fact, arguments) in WALKS.items():
        walk = Walk(fact)
        walk.follow([str(PACKAGE / one) if one.startswith("samples/") else one for one in arguments])
        print(f"{name}: {sum(map(len, walk.functions.values()))} functions, {len(walk.functions)} files")
        for file, functions in walk.functions.items() if is_long else ():
            print(f"    {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
