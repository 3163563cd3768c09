"""What belongs together in a directory: its files in, links and lonely files out; and which files a name means. Stored by hand."""

from typing import Any

import pandas as pd
import pytest

from cachescope.analysis.directory.equal_code import GeneratedCode
from cachescope.analysis.resolve_name import files_named
from cachescope.errors import NotFoundError
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import best_config_name
from tests.made import Stored, entry, scope_of

HASH = "7" * 64


def key(letter: str, kind: str = "c") -> str:
    return kind + letter * 51


def fx(code: str | None = None, **told: Any) -> Stored:
    return entry("fxgraph", told.pop("key", key("a", "f")), code_key=code, **told)


def aot(*keys: str, **told: Any) -> Stored:
    return entry("aotautograd", key("a", "a"), fx_keys=keys, **told)


def py(name: str, **told: Any) -> Stored:
    return entry("code", name, **{"name": f"{name}.py", **told})


def cpp(name: str, *kernels: str, **told: Any) -> Stored:
    return entry("code", name, **{"name": f"{name}.cpp", "kernel_keys": kernels, **told})


def so(name: str, **told: Any) -> Stored:
    return entry("code", name, **{"name": f"{name}.so", **told})


def triton(*names: str, key: str = HASH, **told: Any) -> list[Stored]:
    return [entry("triton", key, name=name, **told) for name in names or ("k.json",)]


def best(name: str, **told: Any) -> Stored:
    return entry("best_config", name, name=f"{name}.best_config", **told)


def links(*files: Stored) -> list[tuple[int, str, int | None, str]]:
    frame = scope_of(entries=files).links
    columns = ["parent", "child_kind", "child", "known_by"]
    rows = frame[columns].astype(object).itertuples(index=False, name=None)
    return sorted((p, k, None if pd.isna(c) else int(c), b) for p, k, c, b in rows)


A, B, C, F = key("a"), key("b"), key("d"), key("a", "f")
TRITON_SOURCE = "the source of the kernel in the wrapper: its hash is the name of the file"
CPP_SOURCE = (
    "the source of the kernel in the wrapper, with which the file begins; its compile command is not stored"
)
NOT_THERE = "the source of a kernel in the wrapper, of which there is no file"
SAME_NAME = "the name, which what is compiled from it shares"
NAMED = "the folder, in which there is one Triton kernel; torch's own key, part of the name, is not known"
WINNER = "triton_cache_hash in the best configuration"


@pytest.mark.parametrize(("files", "wanted"), [
    ([py(A, kernel_keys=(B,)), py(B)], [(0, "code", 1, TRITON_SOURCE)]),
    ([py(A, kernel_keys=(B,)), cpp(C, B)], [(0, "code", 1, CPP_SOURCE)]),
    # The Python file of that key comes first.
    ([py(A, kernel_keys=(B,)), cpp(C, B), py(B)], [(0, "code", 2, TRITON_SOURCE)]),
    ([py(A, kernel_keys=(B,))], [(0, "code", None, NOT_THERE)]),
    ([py(A, kernel_keys=(B,)), py(B, root="/other")], [(0, "code", None, NOT_THERE)]),
    # Of itself, a file is no kernel.
    ([py(A, kernel_keys=(A,))], [(0, "code", None, NOT_THERE)]),
    (
        [py(A, kernel_keys=(B,)), cpp(C, B), cpp(key("e"), B)],
        [
            (0, "code", 1, CPP_SOURCE + "; one of 2 compiled by different commands"),
            (0, "code", 2, CPP_SOURCE + "; one of 2 compiled by different commands"),
        ],
    ),
    ([py(A, kernel_keys=(B,), status="unreadable"), py(B)], []),
    ([py(A, kernel_keys=(B,), status="damaged"), py(B)], [(0, "code", 1, TRITON_SOURCE)]),
    ([py(A, kernel_keys=(B,)), py(B, status="temporary")], [(0, "code", None, NOT_THERE)]),
    # C++: its header, and what is compiled from it.
    ([cpp(A, code_key=B), entry("code", B, name=f"{B}.h")], [(0, "code", 1, "#include in the file")]),
    ([cpp(A, code_key=B)], [(0, "code", None, "#include in the file")]),
    ([cpp(A), so(A), so(B)], [(0, "code", 1, SAME_NAME)]),
    ([cpp(A), so(A, root="/other")], []),
    ([so(A), entry("code", A, name="x.so")], []),
    # Triton.
    ([fx(triton_hashes=(HASH,)), *triton()], [(0, "triton", 1, "kernel_hash in the bundle of the entry")]),
    # A bundle has its own copy.
    ([fx(triton_hashes=(HASH,)), *triton(key="8" * 64)], []),
    ([best("x", triton_hashes=(HASH,)), *triton()], [(0, "triton", 1, WINNER)]),
    ([best("x", triton_hashes=(HASH,)), *triton(root="/other")], [(0, "triton", 1, WINNER + ", in another directory")]),
    # That of its own directory comes first.
    ([best("x", triton_hashes=(HASH,)), *triton(root="/other"), *triton()], [(0, "triton", 2, WINNER)]),
    ([best("x", triton_hashes=(HASH,)), *triton(key="8" * 64)], [(0, "triton", None, WINNER)]),
    # If no Triton directory was read it may be anywhere.
    ([best("x", triton_hashes=(HASH,)), *triton(key="8" * 64, root="/other")], []),
    ([best("x", triton_hashes=(HASH,), status="damaged"), *triton()], []),
    # Only metadata stands for a directory, and the group does not.
    ([fx(triton_hashes=(HASH,)), *triton("__grp__k.json", "k.ttir", "k.json")], [(0, "triton", 3, "kernel_hash in the bundle of the entry")]),
])  # fmt: skip
def test_links_of_generated_code_and_to_triton(
    files: list[Stored], wanted: list[tuple[int, str, int | None, str]]
) -> None:
    assert links(*files) == wanted


def in_folder(made: Stored, folder: str = "/cache/aa") -> Stored:
    made[0].path = f"{folder}/{made[0].path.rsplit('/', 1)[1]}"
    return made


def kernel(name: str) -> Stored:
    made = in_folder(py(name))
    made[0].name = "triton_kernel"
    return made


def test_the_best_configuration_of_a_kernel() -> None:
    one, other = kernel(A), kernel(B)
    own = best_config_name(f"{A}.py", "").removesuffix(".best_config")
    by_name = "its name: the hash of the kernel's file name and the cache key tag"
    assert links(one, in_folder(best(own))) == [(0, "best_config", 1, by_name)]
    of_file = "its name, which is that of the kernel's file"
    assert links(one, in_folder(best(A))) == [(0, "best_config", 1, of_file)]
    # Of a name that is not known: the one kernel beside it, or that which its directory was compiled from.
    assert links(one, in_folder(best("x"))) == [(0, "best_config", 1, NAMED)]
    assert links(one, other, in_folder(best("x"))) == []
    assert links(one, in_folder(best("x"), "/cache/bb")) == []
    assert links(in_folder(py(A)), in_folder(best("x"))) == []
    location = entry("triton", HASH, name="k.ttir", code_key=B)
    found = links(one, other, in_folder(best("x", triton_hashes=(HASH,))), location, *triton())
    assert (1, "best_config", 2, "the source location in the .ttir of its triton_cache_hash") in found
    assert (1, "triton", 4, "the source location in its .ttir") in found
    assert (2, "triton", 4, WINNER) in found
    assert len(found) == 3


def alone(*files: Stored) -> list[tuple[int, str]]:
    frame = scope_of(entries=files).orphans
    return list(zip(frame["entry"].tolist(), frame["reason"].tolist(), strict=True))


UNUSED_KERNEL = "only code that no FX entry uses defines this kernel"
UNUSED = "no FX entry uses this code"
LOST_ONE = (
    "no best configuration and no bundle refers to it: a configuration that lost, or a kernel with only one"
)


@pytest.mark.parametrize(("files", "wanted"), [
    # A kernel is used where its wrapper is.
    ([fx(A), py(A, kernel_keys=(B,)), cpp(C, B)], []),
    ([fx(A), py(A), py(key("e"), kernel_keys=(B,)), cpp(C, B)], [(2, UNUSED), (3, UNUSED_KERNEL)]),
    # One that no wrapper defines may be anybody's.
    ([fx(A), py(A), cpp(C, B)], []),
    # A wrapper that is missing is written again, and takes the kernels that are there.
    ([fx(A), py(A), fx(key("z"), key=key("z", "f")), py(key("e"), kernel_keys=(B,)), cpp(C, B)], [(2, f"its generated code {key('z')} is gone"), (3, UNUSED)]),
    ([fx(A), py(A), so(C)], []),
    # A lock is no use, and code in itself neither.
    ([fx(A), py(A), py(B, kernel_keys=(B,))], [(2, UNUSED)]),
    # Triton directories, where best configurations or bundles name others.
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), *triton(key="8" * 64)], [(3, LOST_ONE)]),
    ([fx(A), py(A), *triton(), *triton(key="8" * 64)], []),
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), *triton("__grp__x.json", "x.cubin", key="8" * 64)], []),
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), *triton(key="8" * 64, root="/other")], []),
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), *triton(key="8" * 64, status="temporary")], []),
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), *triton(key="8" * 64), py(B, status="damaged", damage="code hash differs from the name")], [(4, UNUSED)]),
    # Other files of that name are none.
    ([fx(A, triton_hashes=(HASH,)), py(A), *triton(), entry("memoizer", "x", name="x.json")], []),
    # One that was moved has paths that are not there.
    (triton(detail="3 files, at /old: the directory was moved"), [(0, "its paths are those of another directory, so Triton compiles again")]),
    (triton(detail="3 files"), []),
    (triton(detail="3 files, at /old: the directory was moved", status="damaged"), []),
    # A best configuration without a kernel.
    ([in_folder(best("x"))], [(0, "there is no kernel next to it")]),
    ([in_folder(best("x")), in_folder(so(A))], []),
    ([in_folder(best("x")), in_folder(so(A), "/cache/bb")], [(0, "there is no kernel next to it")]),
    ([in_folder(best("x", status="damaged"))], []),
    ([best("x", triton_hashes=(HASH,)), *triton(key="8" * 64)], [(0, f"its Triton directory {HASH} is gone"), (0, "there is no kernel next to it")]),
    # What lacks something. An entry that a mega-cache holds is not gone.
    ([fx(A)], [(0, f"its generated code {A} is gone")]),
    ([aot(F), fx(A), py(A)], []),
    ([aot("f99"), fx(A), py(A)], [(0, "its FX entry f99 is gone")]),
    ([aot("f99"), fx(A), py(A), entry("mega_cache", "m", fx_keys=("f99",))], []),
    ([aot("f99", status="damaged", damage="truncated"), fx(A), py(A)], []),
    ([aot(F), fx(A, root="/other"), py(A, root="/other")], [(0, f"its FX entry {F} is gone")]),
    # Where something was not read it may lie there.
    ([aot("f99"), fx(A), py(A), entry("other", "o1", status="unreadable")], []),
    ([aot("f99"), fx(A), py(A), fx(key="f22", status="unreadable")], []),
    ([aot("f99"), fx(A), py(A), py(B, status="unreadable")], [(0, "its FX entry f99 is gone")]),
    # Code is alone where all FX entries of its directory were read, and only code.
    ([fx(A), py(A), entry("triton", "k22", name="k22.py")], []),
    ([fx(A), py(A), py(B, status="temporary")], []),
    ([fx(A), py(A), py(B, root="/other")], []),
    ([py(B)], []),
    ([fx(), py(B)], []),
    ([fx(A), py(A), py(B), fx(key="f22", status="unreadable")], []),
    ([fx(A), py(A), py(B), entry("precompile", "p1")], []),
    ([fx(A), py(A), py(B), entry("lock", "l1", status="unreadable")], [(2, UNUSED)]),
])  # fmt: skip
def test_what_is_alone(files: list[Stored], wanted: list[tuple[int, str]]) -> None:
    assert alone(*files) == wanted


@pytest.mark.parametrize(("name", "others", "is_alone"), [
    (A, [py(A)], False), (A, [py(B)], True), (A, [py(A, root="/other")], True),
    # Some lock the beginning of a name.
    (A[:4], [py(A)], False), ("dir", [entry("memoizer", "x", name="x")], True),
])  # fmt: skip
def test_what_a_lock_is_for(name: str, others: list[Stored], is_alone: bool) -> None:
    found = alone(entry("lock", name, name=f"{name}.lock", root="/cache"), *others)
    assert ((0, "what it locks is not there") in found) is is_alone


def test_a_lock_of_a_folder_guards_what_is_in_it() -> None:
    lock, other = entry("lock", "dir", name="dir.lock"), entry("memoizer", "x", name="x")
    lock[0].path, other[0].path = "/cache/cache/f/dir.lock", "/cache/cache/f/x"
    assert alone(lock, other) == []


@pytest.mark.parametrize(
    ("cache", "told"),
    [("lock", {"cache_key": None}), ("lock", {"status": "unreadable"}), ("lock", {"status": "damaged"}), ("other", {})],
)  # fmt: skip
def test_what_is_no_whole_lock_guards_nothing(cache: str, told: dict[str, Any]) -> None:
    assert links(entry(cache, A, name=f"{A}.lock", **told), py(A)) == []


def test_a_lock_guards_every_file_of_its_beginning_once() -> None:
    files = [entry("lock", A[:5], name="x.lock"), py(A), so(A), py(B), py(A, root="/other")]
    assert links(*files) == [(0, "code", at, "the name of the lock") for at in (1, 2)]


def row(number: int, cache: str = "fxgraph", key: str | None = "fabc", **told: Any) -> EntryRow:
    usual: dict[str, Any] = {"path": f"/c/{key}/e{number}", "modified_time": 5}
    return EntryRow(entry=number, cache=cache, cache_key=key, **(usual | told))


def named(which: int | str, *rows: EntryRow) -> list[int] | str:
    try:
        return [one.entry for one in files_named(list(rows), which)]
    except NotFoundError as error:
        return str(error)


@pytest.mark.parametrize(("which", "rows", "wanted"), [
    (1, [row(0), row(1, key="fx")], [1]),
    ("1", [row(0), row(1, key="fx")], [1]),
    (2, [row(0), row(1)], "no entry 2; there are 2"),
    # With the others of its key, and no locks.
    (1, [row(0), row(1), row(2, "lock"), row(3, key="other")], [1, 0]),
    (1, [row(0, key=None), row(1, key=None)], [1]),
    ("fabc", [row(0), row(1, key="fab")], [0]),
    ("fab", [row(0), row(1, key="fab")], [1]),
    ("fa", [row(0), row(1)], [0, 1]),
    ("f", [row(0, key="f" + "a" * 20), row(1, key="f" + "b" * 20)], "'f' begins 2 keys: faaaaaaaaaaa…, fbbbbbbbbbbb…; give more of it"),
    # Of many, four are named.
    ("f", [row(at, key=f"f{at}" + "a" * 20) for at in range(5)], f"'f' begins 5 keys: {', '.join(f'f{at}aaaaaaaaaa…' for at in range(4))}; give more of it"),
    ("x", [row(0)], "no key 'x' in what was read"),
    ("", [row(0)], "an empty key names nothing"),
    # Keys before names, and what is no lock before locks.
    ("abc", [row(0, key="fx", path="/c/fx/abc"), row(1, key="abc")], [1]),
    ("abc", [row(0, key="fx", path="/c/fx/abc")], [0]),
    ("abc", [row(0, key="fx", path="/c/abc/x")], [0]),
    ("abc", [row(0, key="fx", path="/c/fx/x", fx_keys=("abc",))], [0]),
    ("abc", [row(0, "lock", key="abc"), row(1, key="fx", path="/c/fx/abc")], [1]),
    ("abc", [row(0, "lock", key="abc")], [0]),
    ("abc", [row(0, "lock", key=None, path="/c/abc.lock")], [0]),
    # Sound ones first, then those that name a device, then what can be read, then the newest.
    ("fabc", [row(0, status="damaged"), row(1)], [1, 0]),
    ("fabc", [row(0), row(1, device_types=("cuda",))], [1, 0]),
    ("fabc", [row(0, path="/c/x.so"), row(1, path="/c/x.json"), row(2, path="/c/x.py"), row(3, path="/c/x")], [2, 3, 1, 0]),
    ("fabc", [row(0), row(1, modified_time=9), row(2, modified_time=None)], [1, 0, 2]),
])  # fmt: skip
def test_the_files_that_a_name_means(which: int | str, rows: list[EntryRow], wanted: list[int] | str) -> None:
    assert named(which, *rows) == wanted


def code(*sources: str | None) -> tuple[GeneratedCode, list[EntryRow]]:
    entries = [fx(key(chr(ord("a") + at)), key=key(chr(ord("a") + at), "f")) for at in range(len(sources))]
    scope = scope_of(entries=[*entries, fx(None, key=key("y", "f")), py(key("z"))])
    return GeneratedCode(lambda file: sources[file.entry]), scope.tables.entries.rows


def test_whether_two_entries_hold_the_same_code() -> None:
    found, rows = code("x = 1\n# of process 3\n", "x = 1\n# of process 4\n", "x = 2", None)
    same = [found.are_same(rows[0], other) for other in rows]
    assert same == [True, True, False, None, None, None]
    assert found.are_same(rows[3], rows[3])
    names = list(map(found.identity, rows))
    assert names[0] == names[1] != names[2]
    assert names[3:] == [key("d"), None, None]
