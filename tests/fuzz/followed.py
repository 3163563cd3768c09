"""What a pickle does, by Python's own unpicklers and stand-ins that only note it: the measure of what an audit calls proven.

Nothing of it is shared with the audit but the table of what torch itself names and calls, which is data.
"""

import io
import json
import pickle
import re
from contextlib import redirect_stderr
from importlib.resources import files
from typing import Any

_TABLE = json.loads(files("cachescope.auditing").joinpath("known_globals.json").read_text())
KNOWN: dict[str, dict[str, set[str]]] = {}
for _group in _TABLE.values():
    for _module, _names in _group.items():
        for _name, (_forms, _) in _names.items():
            for _how, _letters in (form.split(" ") for form in _forms):
                KNOWN.setdefault(f"{_module}.{_name}", {}).setdefault(_how, set()).update(_letters)
            KNOWN.setdefault(f"{_module}.{_name}", {})
"""By global and by how it is used, what torch's own entries give it."""
# Members of enums and operators' views stand in no list: torch/csrc/functionalization/Module.cpp.
_OF_A_KIND = re.compile(
    r"torch\._C\._functionalization\.\w+_ViewMeta|torch\.nn\.modules\.\w+\.\w+|"
    r"torch\._functorch\._aot_autograd\.schemas\.(?:Mutation|Output)Type\.\w+|"
    r"torch\._dynamo\.source\.TensorProperty\.\w+|torch\._guards\.GuardSource\.\w+|torch\._dynamo\.guards\.GuardBuilder\.\w+"
)
_LETTERS = {bool: "b", int: "i", float: "f", str: "s", bytes: "x", bytearray: "x", tuple: "t", list: "l", dict: "d", set: "e", frozenset: "e"}  # fmt: skip
_DEEPEST = 6


class _Noted:
    """What a global made; the class that derives from this one is the global."""

    of = ""
    follower: Any

    def __new__(cls, *given: Any, **named: Any) -> Any:
        if cls.of == "builtins.getattr":
            owner, name = given
            owner = owner if isinstance(owner, type) else type(owner)
            return cls.follower.named(f"{owner.of}.{name}")
        made = object.__new__(cls)
        cls.follower.used(cls.of, "call", [*given, *named.values()])
        return made

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.follower.used(self.of, "build", [state])

    def __call__(self, *given: Any) -> Any:
        if self.of != "functools.partial":
            self.follower.wrong.append(f"calls what {self.of} made")
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, *given: Any) -> None:
        pass

    add = extend = append


class Followed:
    """One pickle and all pickles in it, followed by one unpickler."""

    def __init__(self, data: bytes, unpickler: type, *, depth: int = 0) -> None:
        self.wrong: list[str] = []
        self.is_whole = False
        self._bytes: list[bytes] = []
        follower = self

        class Inert(unpickler):  # type: ignore[misc]
            def find_class(self, module: str, name: str) -> Any:
                return follower.named(f"{module}.{name}")

            def persistent_load(self, pid: Any) -> Any:
                return _Noted.__new__(follower.stand_in("persistent id"))

        source = io.BytesIO(data)
        try:
            follower._look_into(Inert(source).load())
            self.is_whole = True
        except Exception:  # what is broken is not loaded; what it did before counts
            pass
        if self.is_whole and source.tell() != len(data):
            self.wrong.append("more bytes behind it")
        for inner in self._bytes if depth < _DEEPEST else ():
            # What C's unpickler refuses, torch does not load: Python's goes on behind a frame that is cut.
            inside = Followed(inner, pickle.Unpickler, depth=depth + 1)
            if inside.is_whole and unpickler is not pickle.Unpickler:
                inside = Followed(inner, unpickler, depth=depth + 1)
            self.wrong += inside.wrong if inside.is_whole else []

    def stand_in(self, name: str) -> type:
        return type("StandIn", (_Noted,), {"of": name, "follower": self})

    def named(self, name: str) -> type:
        if name not in KNOWN and not _OF_A_KIND.fullmatch(name):
            self.wrong.append(f"imports {name}")
        return self.stand_in(name)

    def used(self, name: str, how: str, given: list[Any]) -> None:
        """How, with what kinds of values at the top: of those inside the table knows, too, so these are some of them."""
        letters = {_LETTERS[type(one)] for one in given if type(one) in _LETTERS}
        forms = KNOWN.get(name, {})
        may = forms.get(how)
        if how == "call" and name in ("functools.partial", "builtins.getattr", "persistent id"):
            may = set(_LETTERS.values())
        if name in KNOWN and name != "functools.partial" and (may is None or not letters <= may):
            self.wrong.append(f"uses {name} by {how} with {''.join(sorted(letters))}")
        self._look_into(given)

    def _look_into(self, value: Any) -> None:
        waiting, seen = [value], set()
        while waiting:
            one = waiting.pop()
            if isinstance(one, bytes | bytearray):
                self._bytes.append(bytes(one))
            elif isinstance(one, list | tuple | set | frozenset | dict) and id(one) not in seen:
                seen.add(id(one))
                waiting += [*one, *one.values()] if isinstance(one, dict) else one


def wrongs_of(data: bytes) -> list[str]:
    """What a pickle does that no pickle of torch's does, by C's unpickler and, if it is whole, by Python's, which sees frames differently."""
    # Of a cut bytearray, Python prints that it does not know what to do with it.
    with redirect_stderr(io.StringIO()):
        by_c = Followed(data, pickle.Unpickler)
    return by_c.wrong + (Followed(data, pickle._Unpickler).wrong if by_c.is_whole else [])  # type: ignore[attr-defined]
