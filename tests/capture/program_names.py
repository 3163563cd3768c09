"""Which programs there are, read from their sources: importing them brings torch into every process of the tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).parent
_MODULES = sorted((_HERE / "programs").glob("*.py"))


def _registered(path: Path) -> Iterator[tuple[str, int]]:
    """The functions that are registered as programs, each with its number of ranks."""
    for node in ast.parse(path.read_bytes()).body:
        match node:
            case ast.AnnAssign(ast.Name("OPTIONS"), _, ast.Dict(names)):
                yield from ((ast.literal_eval(name), 1) for name in names if name is not None)
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            match decorator:
                case ast.Name("program"):
                    yield node.name, 1
                case ast.Call(ast.Name("of_ranks"), [ast.Constant(int(count))]):
                    yield node.name, count


PROGRAMS = {name: path.stem for path in _MODULES for name, _ in _registered(path)}
"""The module of each program."""
RANKS = {name: ranks for path in _MODULES for name, ranks in _registered(path) if ranks > 1}
"""How many processes torchrun starts of a program; of all others there is one."""
ALONE = [name for name, module in PROGRAMS.items() if module == "processes"]
"""Programs of several processes; all others can be run one after the other in one process."""
BYPASSED = [f"{name}_bypassed" for name, _ in _registered(_HERE.parent / "data" / "bypass_programs.py")]
"""Programs of which torch bypasses a cache, one for each of its reasons."""
