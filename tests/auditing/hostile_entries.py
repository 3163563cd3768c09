"""Caches made by hand to run something, or to let others do so: each with the rule that has to find it, and where.

Nothing here was written by torch. Each case is a function that makes a cache in a folder and says what must be found:
the rule, the file or folder, and a text at whose beginning in the file the finding has to point, where there is one.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import marshal
import operator
import os
import pickle
import socket
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachescope.keys.hashing import entry_name, stored_code_hash
from tests.hostile_pickles import Object, entry_bytes, found, hostile, line, plain

FX_KEY = "f" + "a" * 51
AOT_KEY = "a" + "b" * 51
TRITON_KEY = "A" * 52
HEADER = bytes.fromhex("5feceb66")
FX = f"fxgraph/{FX_KEY[1:3]}/{FX_KEY}"
AOT = f"aotautograd/{AOT_KEY}"
GRAPH = "torch._inductor.output_code.CompiledFxGraph"
RESULT = "torch._functorch._aot_autograd.aot_autograd_result.AOTAutogradResult"
SENTINEL = "executed-by-the-audit"


@dataclass(frozen=True)
class Wanted:
    """What has to be found: a rule, below the cache a path, and what stands at the place in the file."""

    rule: str
    path: str
    at: bytes | None = None


Make = Callable[[Path], Wanted]
CASES: dict[str, Make] = {}


def case(name: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        assert name not in CASES
        CASES[name] = make
        return make

    return register


def write(root: Path, path: str, data: bytes) -> str:
    """A file of a cache, its folders with the rights that torch gives them."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return path


def entry(root: Path, folder: str, data: bytes) -> str:
    return write(root, f"{folder}/{entry_name(data)}", data)


def graph(**state: Any) -> Object:
    return Object(GRAPH, {"_fx_graph_cache_key": FX_KEY, **state})


def mega_cache(*items: tuple[str, str, bytes]) -> bytes:
    def sized(data: bytes) -> bytes:
        return struct.pack(">Q", len(data)) + data

    def text(value: str) -> bytes:
        return sized(base64.b64encode(value.encode()))

    groups = [text(kind) + struct.pack(">Q", 1) + text(key) + sized(content) for kind, key, content in items]
    body = struct.pack(">Q", 1) + b"".join(groups)
    return struct.pack(">I", zlib.crc32(body)) + body


# Pickles that Python itself makes of an object, in every protocol: `__reduce__` is how they are made in the wild.
class Runs:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self) -> Any:
        return self.made


REDUCED: dict[str, Any] = {
    "os.system": Runs(os.system, f"touch {SENTINEL}"),
    "os.mkdir": Runs(os.mkdir, SENTINEL),
    "subprocess.Popen": Runs(subprocess.Popen, ["touch", SENTINEL]),
    "builtins.eval": Runs(eval, f"open('{SENTINEL}', 'w')"),
    "builtins.exec": Runs(exec, f"open('{SENTINEL}', 'w')"),
    "builtins.open": Runs(open, SENTINEL, "w"),
    "builtins.__import__": Runs(__import__, "antigravity"),
    "socket.create_connection": Runs(socket.create_connection, ("127.0.0.1", 9)),
    "operator.methodcaller": operator.methodcaller("system", f"touch {SENTINEL}"),
    "operator.attrgetter": operator.attrgetter("system"),
    "functools.partial": functools.partial(os.system, f"touch {SENTINEL}"),
}
# Where torch unpickles whole files, and how they are called there.
CONTAINERS: dict[str, Callable[[Path, bytes], str]] = {
    "FX entry": lambda root, data: entry(root, FX, data),
    "AOTAutograd entry": lambda root, data: entry(root, AOT, data),
    "AOTAutograd entry of 2.6": lambda root, data: write(root, f"{AOT}/entry", data),
    "PGO state": lambda root, data: write(root, "dynamo/code_state_job_0.pkl", data),
    "precompile package": lambda root, data: write(root, f"dynamo/{'e' * 64}/entry", data),
    "memoized result": lambda root, data: write(root, f"cache/should_pad/{'1' * 32}", HEADER + data),
    "result without a folder": lambda root, data: write(root, f"cache/{'2' * 32}", HEADER + data),
    "on-disk cache": lambda root, data: write(
        root, f"cache/inductor_on_disk_cache/{'3' * 32}", HEADER + data
    ),
    "FX entry in a mega-cache": lambda root, data: write(
        root, "mega.bin", mega_cache(("inductor", FX_KEY, data))
    ),
    "AOTAutograd entry in a mega-cache": lambda root, data: write(
        root, "mega.bin", mega_cache(("aot_autograd", AOT_KEY, data))
    ),
    "PGO state in a mega-cache": lambda root, data: write(
        root, "mega.bin", mega_cache(("pgo", "job:0", data))
    ),
    "precompile package in a mega-cache": lambda root, data: write(
        root, "mega.bin", mega_cache(("precompile", "e" * 64, data))
    ),
}


def _in_container(name: str, data: bytes, at: bytes) -> Make:
    def make(root: Path) -> Wanted:
        return Wanted("pickle-dangerous-global", CONTAINERS[name](root, data), at)

    return make


for _protocol in range(6):
    for _place, _name in enumerate(REDUCED):
        _container = list(CONTAINERS)[(_protocol * 5 + _place) % len(CONTAINERS)]
        _data = pickle.dumps(REDUCED[_name], protocol=_protocol)
        CASES[f"{_name}, protocol {_protocol}, {_container}"] = _in_container(_container, _data, b"")
for _container in CONTAINERS:
    _data = pickle.dumps(REDUCED["os.system"], protocol=4)
    CASES[f"os.system in {_container}"] = _in_container(_container, _data, b"\x93")

# Programs that no pickler writes: see hostile_pickles.py.
_PROGRAMS = {
    "reduce": "pickle-dangerous-global",
    "reduce with stack_global": "pickle-dangerous-global",
    "dotted name": "pickle-dangerous-global",
    "inst": "pickle-dangerous-global",
    "obj": "pickle-dangerous-global",
    "newobj": "pickle-dangerous-global",
    "newobj_ex": "pickle-dangerous-global",
    "nested reduce": "pickle-dangerous-global",
    "result called": "pickle-computed-call",
    "build with __setstate__": "pickle-computed-call",
    "build a class": "pickle-computed-call",
    "build a class with a call": "pickle-computed-call",
    "build __class__": "pickle-computed-call",
    "extension code 1": "pickle-odd-program",
    "extension code 2": "pickle-odd-program",
    "extension code 4": "pickle-odd-program",
    "persistent id": "pickle-odd-program",
    "binary persistent id": "pickle-odd-program",
    "out-of-band buffer": "pickle-odd-program",
    "state given twice": "pickle-dangerous-global",
    "frame that hides a program": "pickle-odd-program",
    "memo bomb": "entry-not-read",
    "10,000 lists deep": "entry-not-read",
    "hash bomb": "entry-not-read",
    "wide arguments again and again": "pickle-dangerous-global",
    "many globals": "pickle-unknown-global",
    "big ints that collide": "entry-not-read",
}


def _program(name: str, rule: str) -> Make:
    def make(root: Path) -> Wanted:
        return Wanted(rule, entry(root, FX, hostile(SENTINEL)[name]))

    return make


for _name, _rule in _PROGRAMS.items():
    CASES[f"program: {_name}"] = _program(_name, _rule)


# Names that look like torch's, and torch's own that run what they are given.
_NAMES = {
    "a space without width": ("torch.foo\u200b", "bar"),
    "another alphabet": ("tоrch._inductor.output_code", "CompiledFxGraph"),
    "a module in a module": ("torch._inductor.codecache", "os"),
    "a walk through a module": ("torch._inductor.codecache", "os.system"),
    "a walk from torch itself": ("torch", "os.system"),
    "a walk from a class": (GRAPH.rpartition(".")[0], "CompiledFxGraph.__init__.__globals__"),
    "a walk through a known class": ("collections", "OrderedDict.__reduce__"),
    "a known name elsewhere": ("torch_inductor.output_code", "CompiledFxGraph"),
    "torch.load": ("torch", "load"),
    "torch.hub": ("torch.hub", "load"),
    "torch.ops": ("torch", "ops.load_library"),
    "a compiler": ("torch.utils.cpp_extension", "load_inline"),
    "a function of sympy": ("sympy.core.sympify", "sympify"),
    "another rebuilder": ("torch._utils", "_rebuild_from_type_v2"),
    "a code cache": ("torch._inductor.codecache", "PyCodeCache.load"),
    "a worker": ("torch._inductor.compile_worker.subproc_pool", "SubprocPool"),
    "copyreg": ("copyreg", "_reconstructor"),
    "Python 2's": ("__builtin__", "eval"),
    "Python 2's commands": ("commands", "getoutput"),
    "posix": ("posix", "system"),
    "types": ("types", "FunctionType"),
    "code": ("types", "CodeType"),
    "marshal": ("marshal", "loads"),
    "pickle itself": ("pickle", "loads"),
    "an own module": ("victims_own_module", "helper"),
    "numpy": ("numpy.testing._private.utils", "runstring"),
    "pip": ("pip._internal", "main"),
    "an empty name": ("", ""),
    "a newline in a name": ("os\n", "system"),
}


def _named(module: str, name: str) -> Make:
    def make(root: Path) -> Wanted:
        data = b"\x80\x04" + line(module) + line(name) + b"\x93" + line(SENTINEL) + b"\x85R."
        rule = "pickle-dangerous-global"
        if module in ("victims_own_module", "torch_inductor.output_code", "sympy.core.sympify"):
            rule = "pickle-unknown-global"
        elif name in ("_rebuild_from_type_v2", "SubprocPool"):
            rule = "pickle-unknown-global" if name.startswith("_") else "pickle-dangerous-global"
        return Wanted(rule, entry(root, AOT, data), b"\x93")

    return make


for _name, _global in _NAMES.items():
    CASES[f"name: {_name}"] = _named(*_global)


@case("names from the memo")
def _(root: Path) -> Wanted:
    strings = line("system") + b"\x940" + line("os") + b"\x940"
    return Wanted(
        "pickle-dangerous-global", entry(root, FX, b"\x80\x04" + strings + b"h\x01h\x00\x93."), b"\x93"
    )


@case("names from a sparse memo")
def _(root: Path) -> Wanted:
    data = (
        b"\x80\x02"
        + line("system")
        + b"r\xff\xff\x00\x000"
        + line("os")
        + b"q\x050h\x05j\xff\xff\x00\x00\x93."
    )
    return Wanted("pickle-dangerous-global", entry(root, FX, data), b"\x93")


@case("a name that is computed")
def _(root: Path) -> Wanted:
    made = found("builtins", "list") + b")R"
    return Wanted("pickle-computed-call", entry(root, FX, b"\x80\x04" + made + line("x") + b"\x93."))


@case("a known class with a member that is computed")
def _(root: Path) -> Wanted:
    data = (
        b"\x80\x04" + found("builtins", "getattr") + found("builtins", "list") + b")R" + line("x") + b"\x86R."
    )
    return Wanted("pickle-computed-call", entry(root, AOT, data))


@case("a member of a known class")
def _(root: Path) -> Wanted:
    module, _, name = RESULT.rpartition(".")
    data = b"\x80\x04" + found("builtins", "getattr") + found(module, name) + line("__init__") + b"\x86R."
    return Wanted("pickle-dangerous-global", entry(root, AOT, data))


@case("a pickle that breaks after it has run something")
def _(root: Path) -> Wanted:
    data = b"\x80\x04" + found("os", "system") + line(f"touch {SENTINEL}") + b"\x85R\xff\xff"
    return Wanted("pickle-dangerous-global", entry(root, FX, data), b"cos")


@case("something behind a sound entry's STOP is not run, but a sound entry beside it is no excuse")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    return Wanted("pickle-dangerous-global", entry(root, FX, pickle.dumps(REDUCED["os.system"])))


def _nested(field: str, inner: bytes) -> bytes:
    """An entry with bytes in it that torch unpickles later."""
    state = b"}" + line(field) + b"B" + struct.pack("<I", len(inner)) + inner + b"s"
    return b"\x80\x04" + found(*RESULT.rsplit(".", 1)) + b")\x81" + state + b"b."


for _protocol in range(6):

    def _nested_case(root: Path, protocol: int = _protocol) -> Wanted:
        inner = pickle.dumps(REDUCED["builtins.exec"], protocol=protocol)
        return Wanted("pickle-dangerous-global", entry(root, AOT, _nested("serialized_bw_module", inner)))

    CASES[f"a pickle in the bytes of an entry, protocol {_protocol}"] = _nested_case


@case("a pickle in a pickle in a pickle")
def _(root: Path) -> Wanted:
    data = pickle.dumps(REDUCED["os.system"])
    for _ in range(3):
        data = pickle.dumps([data])
    return Wanted("pickle-dangerous-global", entry(root, AOT, _nested("x", data)), b"\x93\x94\x8c")


@case("a pickle in bytes that protocol 2 writes as text")
def _(root: Path) -> Wanted:
    data = pickle.dumps([pickle.dumps(REDUCED["os.system"])], protocol=2)
    return Wanted("pickle-dangerous-global", write(root, "dynamo/code_state_x.pkl", data))


@case("a tensor's storage that is a pickle")
def _(root: Path) -> Wanted:
    inner = pickle.dumps(REDUCED["os.system"], protocol=2)
    loads = found("torch.storage", "_load_from_bytes") + b"B" + struct.pack("<I", len(inner)) + inner
    return Wanted("pickle-dangerous-global", entry(root, FX, b"\x80\x04" + loads + b"\x85R."))


@case("a tensor's storage in a zip file")
def _(root: Path) -> Wanted:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("archive/data.pkl", pickle.dumps(REDUCED["os.system"], protocol=2))
    inner = stream.getvalue()
    loads = found("torch.storage", "_load_from_bytes") + b"B" + struct.pack("<I", len(inner)) + inner
    return Wanted("pickle-dangerous-global", entry(root, FX, b"\x80\x04" + loads + b"\x85R."))


_GUARDS = {
    "an import": "__import__('os').system('true')",
    "a module in reach": "torch.hub.load('a', 'b')",
    "a method": "L['t0'].__class__.__base__.__subclasses__()",
    "a lambda": "(lambda: 1)()",
    "a comprehension": "[x for x in (1, 2)]",
    "a walrus": "(x := 5) > 2",
    "a text": "'a' == 'a'",
    "math by another way": "math.__loader__",
    "something hidden behind arithmetic": "2 <= L['t0'] and open('x') and L['t0'] <= 64",
    "a keyword": "max(L['t0'], key=print)",
    "no Python": "2 <=",
}


def _guarded(text: str, kind: str) -> Make:
    def make(root: Path) -> Wanted:
        if kind == "fxgraph":
            return Wanted(
                "guard-runs-code", entry(root, FX, entry_bytes(graph(guards_expr=text))), text.encode()
            )
        data = entry_bytes(Object(RESULT, {"guards_expr": text}))
        return Wanted("guard-runs-code", entry(root, AOT, data), text.encode())

    return make


for _place, (_name, _text) in enumerate(_GUARDS.items()):
    CASES[f"guards: {_name}"] = _guarded(_text, ("fxgraph", "aotautograd")[_place % 2])

_SOURCES = {
    "os.system": "import os\nos.system('true')\n",
    "a module of its own": "import subprocess\n",
    "from a module": "from os import system\n",
    "under another name": "import os as o\no.system('true')\n",
    "__import__": "call = __import__('os').system('true')\n",
    "eval": "x = eval('1')\n",
    "getattr": "import torch\ngetattr(torch, 'hub')\n",
    "through torch": "import torch\ntorch._inductor.codecache.os.system('true')\n",
    "torch.load": "import torch\ntorch.load('x', weights_only=False)\n",
    "a library": "import torch\ntorch.ops.load_library('/tmp/x.so')\n",
    "subclasses": "x = ().__class__.__bases__[0].__subclasses__()\n",
    "pickle": "import pickle\npickle.loads(b'')\n",
    "C++ in it": "async_compile.cpp_pybinding(['float*'], '''\n#include <cstdlib>\nextern \"C\" void kernel(){ system(\"true\"); }\n''')\n",
    "Triton in it": "async_compile.triton('k', '''\nimport triton\nimport socket\n''', device_str='cuda')\n",
    "no Python": "this is (no Python\n",
}


def _source(text: str, *, in_entry: bool) -> Make:
    def make(root: Path) -> Wanted:
        key = stored_code_hash(text)
        if in_entry:
            data = entry_bytes(graph(source_code=text, cache_key=key))
            return Wanted("code-foreign-call", entry(root, FX, data))
        return Wanted("code-foreign-call", write(root, f"{key[1:3]}/{key}.py", text.encode()), b"")

    return make


for _place, (_name, _text) in enumerate(_SOURCES.items()):
    CASES[f"code: {_name}"] = _source(_text, in_entry=_place % 2 == 0)


@case("code that is not that of its name")
def _(root: Path) -> Wanted:
    return Wanted("code-changed", write(root, f"cc/c{'c' * 51}.py", b"import torch\n"), b"")


@case("code in an entry that is not that of its key")
def _(root: Path) -> Wanted:
    data = entry_bytes(graph(source_code="import torch\n", cache_key="c" + "c" * 51))
    return Wanted("code-changed", entry(root, FX, data), b"import torch")


@case("an entry whose code is written elsewhere")
def _(root: Path) -> Wanted:
    data = entry_bytes(graph(source_code="import torch\n", cache_key="../../.bashrc"))
    return Wanted("path-escapes", entry(root, FX, data), b"../../.bashrc")


@case("C++ that starts a program")
def _(root: Path) -> Wanted:
    path = write(root, f"cc/c{'c' * 51}.main.cpp", b'#include <cstdlib>\nint x = system("true");\n')
    return Wanted("code-foreign-call", path)


@case("C++ that runs when it is loaded")
def _(root: Path) -> Wanted:
    text = b"__attribute__((constructor)) static void start() {}\n"
    return Wanted("code-foreign-call", write(root, f"cc/c{'c' * 51}.cpp", text))


@case("a library that starts a program")
def _(root: Path) -> Wanted:
    data = b"\x7fELF" + bytes(60) + b"\0kernel\0execve\0"
    return Wanted("code-foreign-call", write(root, f"cc/c{'c' * 51}.main.so", data))


@case("a bundled kernel that is written elsewhere")
def _(root: Path) -> Wanted:
    file = Object(
        "torch._inductor.triton_bundler.TritonKernelArtifact", {"filename": "../../../x.so", "payload": None}
    )
    kernel = Object(
        "torch._inductor.triton_bundler.TritonKernelArtifacts",
        {"kernel_hash": TRITON_KEY, "device": 0, "artifacts": [file]},
    )
    bundle = Object("torch._inductor.triton_bundler.TritonBundle", {"kernel_artifacts": [kernel]})
    return Wanted(
        "path-escapes", entry(root, FX, entry_bytes(graph(_triton_bundle=bundle))), b"../../../x.so"
    )


@case("a bundle that is written elsewhere")
def _(root: Path) -> Wanted:
    kernel = Object(
        "torch._inductor.triton_bundler.TritonKernelArtifacts",
        {"kernel_hash": "/etc/cron.d", "artifacts": []},
    )
    bundle = Object("torch._inductor.triton_bundler.TritonBundle", {"kernel_artifacts": [kernel]})
    return Wanted("path-escapes", entry(root, FX, entry_bytes(graph(_triton_bundle=bundle))), b"/etc/cron.d")


@case("a graph whose code runs something")
def _(root: Path) -> Wanted:
    code = "def forward(self, x):\n    import os\n    os.system('true')\n"
    module = Object(
        "torch._functorch._aot_autograd.aot_autograd_result.SerializedGraphModule",
        {
            "fn": Object("torch.fx.graph_module.reduce_graph_module"),
            "args": ({"_code": code}, "import torch"),
        },
    )
    data = entry_bytes(Object(RESULT, {"guards_expr": None, "serialized_bw_module": module}))
    return Wanted("code-foreign-call", entry(root, AOT, data), code.encode())


@case("a graph that imports something")
def _(root: Path) -> Wanted:
    data = (
        b"\x80\x04"
        + found("torch.fx.graph_module", "reduce_graph_module")
        + plain(({"_code": ""}, "import pty"))
        + b"R."
    )
    return Wanted("code-foreign-call", entry(root, AOT, data), b"import pty")


@case("a Triton group that leads elsewhere")
def _(root: Path) -> Wanted:
    group = json.dumps({"child_paths": {"kernel.cubin": "/dev/shm/evil.cubin"}}).encode()
    return Wanted("path-escapes", write(root, f"triton/0/{TRITON_KEY}/__grp__kernel.json", group), b"{")


@case("a mega-cache whose entry goes elsewhere")
def _(root: Path) -> Wanted:
    data = mega_cache(("inductor", "../../x", entry_bytes(graph(guards_expr=None))))
    return Wanted("path-escapes", write(root, "mega.bin", data))


@case("a mega-cache whose timings go elsewhere")
def _(root: Path) -> Wanted:
    return Wanted(
        "path-escapes", write(root, "mega.bin", mega_cache(("autotune", "/root/.ssh/authorized_keys", b"{}")))
    )


@case("an entry under any name")
def _(root: Path) -> Wanted:
    return Wanted("entry-odd-name", write(root, f"{FX}/readme.txt", entry_bytes(graph(guards_expr=None))))


@case("a hidden entry")
def _(root: Path) -> Wanted:
    return Wanted("entry-odd-name", write(root, f"{AOT}/.hidden", pickle.dumps(REDUCED["os.system"])))


@case("what a hidden entry runs")
def _(root: Path) -> Wanted:
    data = pickle.dumps(REDUCED["os.system"])
    return Wanted("pickle-dangerous-global", write(root, f"{AOT}/.1234.5678.tmp", data))


@case("an entry that was changed")
def _(root: Path) -> Wanted:
    return Wanted("entry-misnamed", write(root, f"{FX}/{'q' * 51}", entry_bytes(graph(guards_expr=None))))


@case("an entry of another key")
def _(root: Path) -> Wanted:
    data = entry_bytes(Object(GRAPH, {"_fx_graph_cache_key": "f" + "z" * 51}))
    return Wanted("entry-misnamed", entry(root, FX, data))


@case("no entry at all")
def _(root: Path) -> Wanted:
    return Wanted("entry-foreign-object", entry(root, FX, pickle.dumps({"a": 1})))


@case("a key in the folder of others")
def _(root: Path) -> Wanted:
    entry(root, f"fxgraph/zz/{FX_KEY}", entry_bytes(graph(guards_expr=None)))
    return Wanted("entry-misnamed", f"fxgraph/zz/{FX_KEY}")


@case("a pickle that lies about")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    return Wanted("pickle-dangerous-global", write(root, "notes.pkl", pickle.dumps(REDUCED["os.system"], 0)))


@case("a file of nobody's")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    return Wanted("unknown-file", write(root, "setup.sh", b"#!/bin/sh\n"))


@case("a module beside generated code")
def _(root: Path) -> Wanted:
    write(root, f"cc/c{'c' * 51}.cpp", b"")
    return Wanted("code-foreign-call", write(root, "cc/torch.py", b"import subprocess\n"))


@case("compiled Python that starts a program")
def _(root: Path) -> Wanted:
    code = compile("import subprocess; subprocess.run(['true'])", "x", "exec")
    data = b"\xa7\r\r\n" + bytes(12) + marshal.dumps(code)
    write(root, f"cc/c{'c' * 51}.cpp", b"")
    return Wanted("code-foreign-call", write(root, f"cc/__pycache__/c{'c' * 51}.cpython-311.pyc", data))


@case("a module that Python imports by itself")
def _(root: Path) -> Wanted:
    write(root, f"cc/c{'c' * 51}.cpp", b"")
    return Wanted("unknown-file", write(root, "cc/sitecustomize.py", b"import math\n"))


@case("a dump of a deterministic cache")
def _(root: Path) -> Wanted:
    dump = {repr(pickle.dumps("key")): repr(pickle.dumps(REDUCED["os.system"]))}
    return Wanted(
        "pickle-dangerous-global", write(root, "cache/dcache_dump/imc.save", json.dumps(dump).encode())
    )


@case("a kernel of another folder")
def _(root: Path) -> Wanted:
    data = json.dumps({"hash": "0123456789abcdef" * 4, "name": "kernel"}).encode()
    return Wanted("entry-misnamed", write(root, f"triton/0/{TRITON_KEY}/kernel.json", data), b"{")


@case("a text that sympy evaluates")
def _(root: Path) -> Wanted:
    data = (
        b"\x80\x04"
        + found("torch.utils._sympy.functions", "FloorDiv")
        + line("__import__('os')") * 2
        + b"\x86R."
    )
    return Wanted("pickle-unknown-global", entry(root, AOT, data), b"ctorch")


@case("a folder of nobody's")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    write(root, "payload/x", b"")
    return Wanted("unknown-file", "payload")


def _link(root: Path, path: str, target: str | Path) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, root / path)
    return path


@case("a link out to a file")
def _(root: Path) -> Wanted:
    return Wanted("link-out", _link(root, f"{FX}/{'q' * 51}", "/etc/hostname"))


@case("a link out to a folder")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    return Wanted("link-out", _link(root, "aotautograd", "/usr"))


@case("a link out by dots")
def _(root: Path) -> Wanted:
    return Wanted("link-out", _link(root, f"{FX}/x", "../../../../x"))


@case("a link that leads nowhere")
def _(root: Path) -> Wanted:
    return Wanted("link-broken", _link(root, f"{FX}/x", "gone"))


@case("a link to itself")
def _(root: Path) -> Wanted:
    return Wanted("link-broken", _link(root, f"{FX}/x", "x"))


@case("a link to the folder it is in")
def _(root: Path) -> Wanted:
    entry(root, FX, entry_bytes(graph(guards_expr=None)))
    return Wanted("link-inside", _link(root, "fxgraph/aa/loop", "."))


@case("a hard link")
def _(root: Path) -> Wanted:
    path = entry(root, FX, entry_bytes(graph(guards_expr=None)))
    os.link(root / path, root.parent / f"{root.name}-elsewhere")
    return Wanted("hard-link", path)


@case("a pipe")
def _(root: Path) -> Wanted:
    (root / FX).mkdir(parents=True)
    os.mkfifo(root / FX / "pipe")
    return Wanted("special-file", f"{FX}/pipe")


@case("a socket")
def _(root: Path) -> Wanted:
    (root / FX).mkdir(parents=True)
    os.mknod(root / FX / "s", 0o140600)
    return Wanted("special-file", f"{FX}/s")


_MODES = {
    "a file that all can write": ("anyone-can-write", "file", 0o666),
    "a file that a group can write": ("group-can-write", "file", 0o664),
    "a folder that all can write": ("anyone-can-write", "folder", 0o777),
    "a folder that all can add to": ("anyone-can-write", "folder", 0o1777),
    "a folder that a group can write": ("group-can-write", "folder", 0o775),
    "a folder that a group can add to": ("group-can-write", "folder", 0o1770),
    "a file that runs as its owner": ("special-bits", "file", 0o4755),
}


def _mode(rule: str, what: str, mode: int) -> Make:
    def make(root: Path) -> Wanted:
        path = entry(root, FX, entry_bytes(graph(guards_expr=None)))
        path = FX if what == "folder" else path
        # A group that is nobody's own, whoever runs the tests.
        if os.geteuid() == 0:
            os.chown(root / path, -1, 54_321)
        os.chmod(root / path, mode)
        return Wanted(rule, path)

    return make


for _name, _how in _MODES.items():
    CASES[_name] = _mode(*_how)
