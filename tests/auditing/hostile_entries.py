"""Caches made by hand to run something, or to let others do so: each with the rule that has to find it, and where.

Nothing here was written by torch. Each case is a function that makes a cache in a folder and says what must be found:
the rule, the file or folder, and a text at whose beginning in the file the finding has to point, where there is one.
"""

import base64
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
from functools import partial
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


CASES: dict[str, Callable[[Path], Wanted]] = {}


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


def _in_mega_cache(kind: str, key: str, root: Path, data: bytes) -> str:
    return write(root, "mega.bin", mega_cache((kind, key, data)))


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
    "functools.partial": partial(os.system, f"touch {SENTINEL}"),
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
    "FX entry in a mega-cache": partial(_in_mega_cache, "inductor", FX_KEY),
    "AOTAutograd entry in a mega-cache": partial(_in_mega_cache, "aot_autograd", AOT_KEY),
    "PGO state in a mega-cache": partial(_in_mega_cache, "pgo", "job:0"),
    "precompile package in a mega-cache": partial(_in_mega_cache, "precompile", "e" * 64),
}


def _in_container(name: str, data: bytes, at: bytes, root: Path) -> Wanted:
    return Wanted("pickle-dangerous-global", CONTAINERS[name](root, data), at)


for _protocol in range(6):
    for _place, _name in enumerate(REDUCED):
        _container = list(CONTAINERS)[(_protocol * 5 + _place) % len(CONTAINERS)]
        _data = pickle.dumps(REDUCED[_name], protocol=_protocol)
        CASES[f"{_name}, protocol {_protocol}, {_container}"] = partial(_in_container, _container, _data, b"")
for _container in CONTAINERS:
    _data = pickle.dumps(REDUCED["os.system"], protocol=4)
    CASES[f"os.system in {_container}"] = partial(_in_container, _container, _data, b"")

# Programs that no pickler writes: see hostile_pickles.py.
_PROGRAMS = {
    "reduce": "pickle-dangerous-global", "reduce with stack_global": "pickle-dangerous-global",
    "dotted name": "pickle-dangerous-global", "inst": "pickle-dangerous-global",
    "obj": "pickle-dangerous-global", "newobj": "pickle-dangerous-global",
    "newobj_ex": "pickle-dangerous-global", "nested reduce": "pickle-dangerous-global",
    "result called": "pickle-computed-call", "build with __setstate__": "pickle-computed-call",
    "build a class": "pickle-computed-call", "build a class with a call": "pickle-computed-call",
    "build __class__": "pickle-computed-call", "extension code 1": "pickle-odd-program",
    "extension code 2": "pickle-odd-program", "extension code 4": "pickle-odd-program",
    "persistent id": "pickle-odd-program", "binary persistent id": "pickle-odd-program",
    "out-of-band buffer": "pickle-odd-program", "state given twice": "pickle-dangerous-global",
    "frame that hides a program": "pickle-odd-program", "memo bomb": "entry-not-read",
    "10,000 lists deep": "entry-not-read", "hash bomb": "entry-not-read",
    "wide arguments again and again": "entry-not-read", "many globals": "user-module",
    "big ints that collide": "entry-not-read",
}  # fmt: skip


def _program(name: str, rule: str, root: Path) -> Wanted:
    return Wanted(rule, entry(root, FX, hostile(SENTINEL)[name]))


CASES |= {f"program: {name}": partial(_program, name, rule) for name, rule in _PROGRAMS.items()}

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


_OF_NOBODY_KNOWN = ("victims_own_module", "torch_inductor.output_code")


def _named(module: str, name: str, root: Path) -> Wanted:
    data = b"\x80\x04" + line(module) + line(name) + b"\x93" + line(SENTINEL) + b"\x85R."
    rule = "user-module" if module in _OF_NOBODY_KNOWN else "pickle-dangerous-global"
    return Wanted(rule, entry(root, AOT, data))


CASES |= {f"name: {name}": partial(_named, *it) for name, it in _NAMES.items()}


def _nested(field: str, inner: bytes) -> bytes:
    state = b"}" + line(field) + b"B" + struct.pack("<I", len(inner)) + inner + b"s"
    return b"\x80\x04" + found(*RESULT.rsplit(".", 1)) + b")\x81" + state + b"b."


def _nested_case(protocol: int, root: Path) -> Wanted:
    inner = pickle.dumps(REDUCED["builtins.exec"], protocol=protocol)
    return Wanted("pickle-dangerous-global", entry(root, AOT, _nested("serialized_bw_module", inner)))


CASES |= {f"a pickle in the bytes of an entry, protocol {n}": partial(_nested_case, n) for n in range(6)}


def _loaded_storage(inner: bytes) -> bytes:
    """An entry with a tensor, whose storage torch loads from bytes."""
    loads = found("torch.storage", "_load_from_bytes") + b"B" + struct.pack("<I", len(inner)) + inner
    return b"\x80\x04" + loads + b"\x85R."


def _zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("archive/data.pkl", data)
    return stream.getvalue()


_GUARDS = {
    "an import": "__import__('os').system('true')", "a module in reach": "torch.hub.load('a', 'b')",
    "a method": "L['t0'].__class__.__base__.__subclasses__()", "a lambda": "(lambda: 1)()",
    "a comprehension": "[x for x in (1, 2)]", "a walrus": "(x := 5) > 2", "a text": "'a' == 'a'",
    "math by another way": "math.__loader__",
    "something hidden behind arithmetic": "2 <= L['t0'] and open('x') and L['t0'] <= 64",
    "a keyword": "max(L['t0'], key=print)", "no Python": "2 <=",
}  # fmt: skip


def _guarded(text: str, folder: str, root: Path) -> Wanted:
    state = graph(guards_expr=text) if folder == FX else Object(RESULT, {"guards_expr": text})
    return Wanted("guard-runs-code", entry(root, folder, entry_bytes(state)), text.encode())


for _place, (_name, _text) in enumerate(_GUARDS.items()):
    CASES[f"guards: {_name}"] = partial(_guarded, _text, (FX, AOT)[_place % 2])

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
    "pickle": "import pickle\npickle.load(b'')\n",
    "Triton in it": "async_compile.triton('k', '''\nimport triton\nimport socket\n''', device_str='cuda')\n",
    "no Python": "this is (no Python\n",
}


def _source(text: str, in_entry: bool, root: Path) -> Wanted:
    key = stored_code_hash(text)
    if in_entry:
        data = entry_bytes(graph(source_code=text, cache_key=key))
        return Wanted("code-not-as-torch", entry(root, FX, data))
    return Wanted("code-not-as-torch", write(root, f"{key[1:3]}/{key}.py", text.encode()), b"")


for _place, (_name, _text) in enumerate(_SOURCES.items()):
    CASES[f"code: {_name}"] = partial(_source, _text, _place % 2 == 0)


def _bundled(kernel_hash: str, *files: str) -> bytes:
    """An entry with a kernel, which torch writes to a folder of that name."""
    made = "torch._inductor.triton_bundler"
    artifacts = [Object(f"{made}.TritonKernelArtifact", {"filename": one, "payload": None}) for one in files]
    kernel = {"kernel_hash": kernel_hash, "device": 0, "artifacts": artifacts}
    bundle = {"kernel_artifacts": [Object(f"{made}.TritonKernelArtifacts", kernel)]}
    return entry_bytes(graph(_triton_bundle=Object(f"{made}.TritonBundle", bundle)))


def _with_graph(code: str) -> bytes:
    """An entry with a backward graph, whose code torch runs."""
    reduced = Object("torch.fx.graph_module.reduce_graph_module")
    state = {"fn": reduced, "args": ({"_code": code}, "import torch")}
    module = Object("torch._functorch._aot_autograd.aot_autograd_result.SerializedGraphModule", state)
    return entry_bytes(Object(RESULT, {"guards_expr": None, "serialized_bw_module": module}))


SOUND = entry_bytes(graph(guards_expr=None))
_RUNS, _RUNS_2 = (pickle.dumps(REDUCED["os.system"], protocol=protocol) for protocol in (4, 2))
_DANGER = "pickle-dangerous-global"
_PROTO = b"\x80\x04"
_GETATTR = found("builtins", "getattr")
_LIST_MADE = found("builtins", "list") + b")R"
_CODE = f"cc/c{'c' * 51}"
_FORWARD = "def forward(self, x):\n    import os\n    os.system('true')\n"
_REDUCED_GRAPH = found("torch.fx.graph_module", "reduce_graph_module")
_PYC = marshal.dumps(compile("import subprocess; subprocess.run(['true'])", "x", "exec"))
_DUMP = {repr(pickle.dumps("key")): repr(pickle.dumps(REDUCED["os.system"]))}

# One file each: the rule, where it lies, what is in it, and the place; what lies in FX or AOT is called as torch calls it.
_FILES: dict[str, tuple[str, str, bytes, bytes | None]] = {
    "names from the memo": (
        _DANGER, FX, _PROTO + line("system") + b"\x940" + line("os") + b"\x940" + b"h\x01h\x00\x93.", None,
    ),
    "names from a sparse memo": (
        "entry-not-read", FX,
        b"\x80\x02" + line("system") + b"r\xff\xff\x00\x000" + line("os") + b"q\x050h\x05j\xff\xff\x00\x00\x93.", None,
    ),
    "a name that is computed": ("pickle-computed-call", FX, _PROTO + _LIST_MADE + line("x") + b"\x93.", None),
    "a known class with a member that is computed": (
        _DANGER, AOT, _PROTO + _GETATTR + _LIST_MADE + line("x") + b"\x86R.", None,
    ),
    "a member of a known class": (
        _DANGER, AOT, _PROTO + _GETATTR + found(*RESULT.rsplit(".", 1)) + line("__init__") + b"\x86R.", None,
    ),
    "a pickle that breaks after it has run something": (
        _DANGER, FX, _PROTO + found("os", "system") + line(f"touch {SENTINEL}") + b"\x85R\xff\xff", None,
    ),
    "a pickle in a pickle in a pickle": (
        _DANGER, AOT, _nested("x", pickle.dumps([pickle.dumps([pickle.dumps([_RUNS])])])), None,
    ),
    "a pickle in bytes that protocol 2 writes as text": (
        _DANGER, "dynamo/code_state_x.pkl", pickle.dumps([_RUNS], protocol=2), None,
    ),
    "a tensor's storage that is a pickle": (_DANGER, FX, _loaded_storage(_RUNS_2), None),
    "a tensor's storage in a zip file": (_DANGER, FX, _loaded_storage(_zipped(_RUNS_2)), None),
    "code that is not that of its name": ("code-changed", f"{_CODE}.py", b"import torch\n", b""),
    "code in an entry that is not that of its key": (
        "code-changed", FX, entry_bytes(graph(source_code="import torch\n", cache_key="c" + "c" * 51)), b"import torch",
    ),
    "an entry whose code is written elsewhere": (
        "path-escapes", FX, entry_bytes(graph(source_code="import torch\n", cache_key="../../.bashrc")), b"../../.bashrc",
    ),
    "C++ that starts a program": (
        "native-code", f"{_CODE}.main.cpp", b'#include <cstdlib>\nint x = system("true");\n', None,
    ),
    "C++ that runs when it is loaded": (
        "native-code", f"{_CODE}.cpp", b"__attribute__((constructor)) static void start() {}\n", None,
    ),
    "a library that starts a program": (
        "native-code", f"{_CODE}.main.so", b"\x7fELF" + bytes(60) + b"\0kernel\0execve\0", None,
    ),
    "a bundled kernel that is written elsewhere": (
        "path-escapes", FX, _bundled(TRITON_KEY, "../../../x.so"), b"../../../x.so",
    ),
    "a bundle that is written elsewhere": ("path-escapes", FX, _bundled("/etc/cron.d"), b"/etc/cron.d"),
    "a graph whose code runs something": ("code-not-as-torch", AOT, _with_graph(_FORWARD), _FORWARD.encode()),
    "a graph that imports something": (
        "code-not-as-torch", AOT, _PROTO + _REDUCED_GRAPH + plain(({"_code": ""}, "import pty")) + b"R.", b"import pty",
    ),
    "a Triton group that leads elsewhere": (
        "path-escapes", f"triton/0/{TRITON_KEY}/__grp__kernel.json",
        json.dumps({"child_paths": {"kernel.cubin": "/dev/shm/evil.cubin"}}).encode(), b"{",
    ),
    "a mega-cache whose entry goes elsewhere": (
        "path-escapes", "mega.bin", mega_cache(("inductor", "../../x", SOUND)), None,
    ),
    "a mega-cache whose timings go elsewhere": (
        "path-escapes", "mega.bin", mega_cache(("autotune", "/root/.ssh/authorized_keys", b"{}")), None,
    ),
    "an entry under any name": ("entry-odd-name", f"{FX}/readme.txt", SOUND, None),
    "a hidden entry": ("entry-odd-name", f"{AOT}/.hidden", _RUNS, None),
    "what a hidden entry runs": (_DANGER, f"{AOT}/.1234.5678.tmp", _RUNS, None),
    "an entry that was changed": ("entry-misnamed", f"{FX}/{'q' * 51}", SOUND, None),
    "an entry of another key": (
        "entry-misnamed", FX, entry_bytes(Object(GRAPH, {"_fx_graph_cache_key": "f" + "z" * 51})), None,
    ),
    "no entry at all": ("entry-foreign-object", FX, pickle.dumps({"a": 1}), None),
    "a dump of a deterministic cache": (_DANGER, "cache/dcache_dump/imc.save", json.dumps(_DUMP).encode(), None),
    "a kernel of another folder": (
        "entry-misnamed", f"triton/0/{TRITON_KEY}/kernel.json",
        json.dumps({"hash": "0123456789abcdef" * 4, "name": "kernel"}).encode(), b"{",
    ),
    "a text that sympy evaluates": (
        "pickle-computed-call", AOT,
        _PROTO + found("torch.utils._sympy.functions", "FloorDiv") + line("__import__('os')") * 2 + b"\x86R.", None,
    ),
}  # fmt: skip
_BESIDE_A_SOUND_ENTRY = {
    # What is behind the STOP of a sound entry is not run, but one beside it is no excuse.
    "something to run beside a sound entry": (_DANGER, FX, _RUNS, None),
    "a pickle that lies about": (_DANGER, "notes.pkl", pickle.dumps(REDUCED["os.system"], 0), None),
    "a file of nobody's": ("unknown-file", "setup.sh", b"#!/bin/sh\n", None),
}
_BESIDE_GENERATED_CODE = {
    "a module beside generated code": ("code-not-as-torch", "cc/torch.py", b"import subprocess\n", None),
    "compiled Python that starts a program": (
        "native-code", f"cc/__pycache__/c{'c' * 51}.cpython-311.pyc", b"\xa7\r\r\n" + bytes(12) + _PYC, None,
    ),
}  # fmt: skip


def _put(root: Path, path: str, data: bytes) -> str:
    return entry(root, path, data) if path in (FX, AOT) else write(root, path, data)


def _file(
    beside: dict[str, bytes], rule: str, path: str, data: bytes, at: bytes | None, root: Path
) -> Wanted:
    for other, other_data in beside.items():
        _put(root, other, other_data)
    return Wanted(rule, _put(root, path, data), at)


CASES |= {name: partial(_file, {}, *what) for name, what in _FILES.items()}
CASES |= {name: partial(_file, {FX: SOUND}, *what) for name, what in _BESIDE_A_SOUND_ENTRY.items()}
CASES |= {name: partial(_file, {f"{_CODE}.cpp": b""}, *what) for name, what in _BESIDE_GENERATED_CODE.items()}


def _key_among_others(root: Path) -> Wanted:
    entry(root, f"fxgraph/zz/{FX_KEY}", SOUND)
    return Wanted("entry-misnamed", f"fxgraph/zz/{FX_KEY}")


def _folder_of_nobody(root: Path) -> Wanted:
    entry(root, FX, SOUND)
    write(root, "payload/x", b"")
    return Wanted("unknown-file", "payload")


# The rule, where the link is, and where it leads.
_LINKS = {
    "a link out to a file": ("link-out", f"{FX}/{'q' * 51}", "/etc/hostname"),
    "a link out to a folder": ("link-out", "aotautograd", "/usr"),
    "a link out by dots": ("link-out", f"{FX}/x", "../../../../x"),
    "a link that leads nowhere": ("link-broken", f"{FX}/x", "gone"),
    "a link to itself": ("link-broken", f"{FX}/x", "x"),
    "a link to the folder it is in": ("link-inside", "fxgraph/aa/loop", "."),
}


def _link(rule: str, path: str, target: str, root: Path) -> Wanted:
    entry(root, FX, SOUND)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, root / path)
    return Wanted(rule, path)


CASES |= {name: partial(_link, *how) for name, how in _LINKS.items()}


def _hard_link(root: Path) -> Wanted:
    path = entry(root, FX, SOUND)
    os.link(root / path, root.parent / f"{root.name}-elsewhere")
    return Wanted("hard-link", path)


def _special(name: str, make: Callable[[Path], None], root: Path) -> Wanted:
    (root / FX).mkdir(parents=True)
    make(root / FX / name)
    return Wanted("special-file", f"{FX}/{name}")


CASES["a key in the folder of others"] = _key_among_others
CASES["a folder of nobody's"] = _folder_of_nobody
CASES["a hard link"] = _hard_link
CASES["a pipe"] = partial(_special, "pipe", os.mkfifo)
CASES["a socket"] = partial(_special, "s", lambda path: os.mknod(path, 0o140600))

_MODES = {
    "a file that all can write": ("anyone-can-write", "file", 0o666),
    "a file that a group can write": ("group-can-write", "file", 0o664),
    "a folder that all can write": ("anyone-can-write", "folder", 0o777),
    "a folder that all can add to": ("anyone-can-write", "folder", 0o1777),
    "a folder that a group can write": ("group-can-write", "folder", 0o775),
    "a folder that a group can add to": ("group-can-write", "folder", 0o1770),
    "a file that runs as its owner": ("special-bits", "file", 0o4755),
}


def _mode(rule: str, what: str, mode: int, root: Path) -> Wanted:
    path = entry(root, FX, SOUND)
    path = FX if what == "folder" else path
    # A group that is nobody's own, whoever runs the tests.
    if os.geteuid() == 0:
        os.chown(root / path, -1, 54_321)
    os.chmod(root / path, mode)
    return Wanted(rule, path)


CASES |= {name: partial(_mode, *how) for name, how in _MODES.items()}
