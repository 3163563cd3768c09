"""Whether entries of equal source run equal binaries, and what two directories built under one key: rows of a directory in, what is told of both out; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.directory.built import built_alike
from cachescope.analysis.directory.equal_code import Compared, GeneratedCode, KernelBinaries
from cachescope.frames.directory_rows import TimingRow
from cachescope.frames.linked_rows import LinkRow
from tests.made import Stored, entry, scope_of

MADE = 100.0


class Directory:
    """Two FX entries, 0 and 1, of one wrapper each; below a wrapper C++ kernels, below these what was compiled."""

    def __init__(self, first: dict[str, Any] | None = None, second: dict[str, Any] | None = None) -> None:
        self.files: list[Stored] = []
        self.links: list[dict[str, Any]] = []
        self.hashes: dict[str, str | None] = {}
        for told in (first or {}, second or {}):
            self.file("fxgraph", f"f{len(self.files)}", "entry", MADE, **told)
        self.wrappers = [self.below(number, "wrapper.py") for number in (0, 1)]
        self.sources: dict[tuple[int, str], int] = {}

    def file(self, cache: str, key: str, name: str, at: float | None, **told: Any) -> int:
        self.files.append(entry(cache, key, at=at, name=f"{len(self.files)}-{name}", **told))
        return len(self.files) - 1

    def below(self, parent: int, name: str, key: str = "ckey", at: float | None = 50.0) -> int:
        child = self.file("code", key, name, at)
        kind = self.files[parent][0].cache
        self.link(parent, kind, child, "code", key)
        return child

    def link(self, parent: int, kind: str, child: int | None, child_kind: str, child_key: str) -> None:
        ends = {"parent": parent, "parent_kind": kind, "child": child, "child_kind": child_kind}
        self.links.append({**ends, "child_key": child_key})

    def compiled(self, of: int, hash_: str | None, key: str = "k1", at: float | None = 50.0) -> int:
        """A form of a kernel of an entry, with the hash of its bytes."""
        if (of, key) not in self.sources:
            self.sources[of, key] = self.below(self.wrappers[of], "kernel.cpp", key)
        form = self.below(self.sources[of, key], f"{key}.so", key, at)
        self.hashes[self.files[form][0].path] = hash_
        return form

    def compare(self) -> Compared:
        entries = scope_of(entries=self.files).tables.entries.rows
        links = [LinkRow(known_by="made by hand", **link) for link in self.links]
        return KernelBinaries(entries, links, self.hashes.get).compare(*entries[:2])


def test_without_a_kernel_nothing_is_known() -> None:
    assert Directory().compare() == Compared(None, "equal code keys; no compiled kernel is there to compare")


@pytest.mark.parametrize(("first", "second", "same", "text"), [
    (["one"], ["one"], True, "compiled files of the same bytes"),
    (["one"], ["two"], False, "compiled files that differ: "),
    (["one"], [None], None, "compiled files that cannot be read"),
    (["one", "two"], ["two"], None, "several compiled files, and not which was used: 5-k1.so, 6-k1.so, 8-k1.so"),
    (["one", "two"], ["three"], False, "compiled files that differ: "),
    (["one", "one"], ["one"], True, "compiled files of the same bytes"),
])  # fmt: skip
def test_by_the_bytes(first: list[str], second: list[str | None], same: bool | None, text: str) -> None:
    directory = Directory()
    for of, hashes in enumerate((first, second)):
        for hash_ in hashes:
            directory.compiled(of, hash_)
    found = directory.compare()
    assert found.same is same
    assert found.known_by.startswith(f"equal code keys; {text}")


@pytest.mark.parametrize(("name", "same", "text"), [
    # Its name is of the source and the flags: a path in it may differ, or the compiler.
    ("k05.so", None, "compiled files of one name and other bytes: a path in them, or another compiler"),
    ("k06.so", False, "compiled files that differ: k05.so and k06.so"),
])  # fmt: skip
def test_files_of_one_name_need_not_be_other_code(name: str, same: bool | None, text: str) -> None:
    directory = Directory()
    for of, path in enumerate(("/cache0/k05.so", f"/cache1/{name}")):
        directory.files[directory.compiled(of, None)][0].path = path
        directory.hashes[path] = str(of)
    assert directory.compare() == Compared(same, f"equal code keys; {text}")


def test_one_file_for_both_is_not_read() -> None:
    directory = Directory()
    directory.compiled(0, "one")
    directory.link(directory.wrappers[1], "code", directory.sources[0, "k1"], "code", "k1")
    directory.hashes.clear()
    assert directory.compare() == Compared(True, "equal code keys; one compiled file for both: 5-k1.so")


def test_a_kernel_that_was_not_compiled_leaves_it_open() -> None:
    directory = Directory()
    directory.compiled(0, "one")
    directory.sources[1, "k1"] = directory.below(directory.wrappers[1], "kernel.cpp", "k1")
    why = "equal code keys; a kernel is there that was not compiled, or no more"
    assert directory.compare() == Compared(None, why)
    # Of other kernels nothing is compared.
    directory = Directory()
    directory.compiled(0, "one", "k1")
    directory.compiled(1, "one", "k2")
    assert directory.compare().known_by.endswith("no compiled kernel is there to compare")


@pytest.mark.parametrize(("hashes", "same"), [
    ({"k1": "11", "k2": "11"}, True),
    ({"k1": "11", "k2": "12"}, False),
    ({"k1": "12", "k2": "1-"}, False),
    ({"k1": "11", "k2": "1-"}, None),
])  # fmt: skip
def test_of_several_kernels_the_worst_tells(hashes: dict[str, str], same: bool | None) -> None:
    directory = Directory()
    for key, (one, other) in hashes.items():
        directory.compiled(0, one, key)
        directory.compiled(1, None if other == "-" else other, key)
    assert directory.compare().same is same


@pytest.mark.parametrize(("times", "took", "same"), [
    # Another form was written while this entry was compiled, or since: it is not what the other one has.
    ((50.0, 95.0), 10.0, False), ((95.0, 50.0), 10.0, True),
    # What was written within the compile is its own, at either end of it.
    ((90.0, 50.0), 10.0, True), ((100.0, 50.0), 10.0, True),
    # What was written after the entry it did not load.
    ((50.0, 101.0), 10.0, True), ((101.0, 50.0), 10.0, False),
    # Both were there before: either may have been used.
    ((50.0, 60.0), 10.0, None), ((50.0, 60.0), None, None), ((50.0, None), 10.0, True),
    ((101.0, 102.0), 10.0, None),
])  # fmt: skip
def test_the_form_that_an_entry_used_is_told_by_the_times(
    times: tuple[float | None, float | None], took: float | None, same: bool | None
) -> None:
    directory = Directory({"time_taken_ns": None if took is None else int(took * 10**9)})
    for hash_, at in zip(("one", "two"), times, strict=True):
        directory.compiled(0, hash_, at=at)
    directory.compiled(1, "one")
    assert directory.compare().same is same


def test_where_nothing_tells_when_an_entry_was_written_any_form_may_be_its_own() -> None:
    directory = Directory({"modified_time": None})
    for hash_ in ("one", "two"):
        directory.compiled(0, hash_)
    directory.compiled(1, "one")
    assert directory.compare().same is None


@pytest.mark.parametrize(("first", "second", "same", "text"), [
    (("t1", "t2"), ("t2", "t1"), True, "the same 2 Triton kernels bundled in both"),
    (("t1",), ("t2",), False, "other Triton kernels bundled in each"),
    (("t1",), (), None, "no compiled kernel is there to compare"),
    ((), ("t1",), None, "no compiled kernel is there to compare"),
])  # fmt: skip
def test_triton_kernels_that_entries_bundle(
    first: tuple[str, ...], second: tuple[str, ...], same: bool | None, text: str
) -> None:
    found = Directory({"triton_hashes": first}, {"triton_hashes": second}).compare()
    assert (found.same, found.known_by) == (same, f"equal code keys; {text}")


def test_what_is_gone_is_no_kernel() -> None:
    """The header of a kernel, and a kernel of a wrapper, of which there is no file."""
    directory = Directory()
    for of in (0, 1):
        directory.compiled(of, "one")
        for parent in (directory.wrappers[of], directory.sources[of, "k1"]):
            directory.link(parent, "code", None, "code", "k9")
    assert directory.compare() == Compared(True, "equal code keys; compiled files of the same bytes")


def test_only_compiled_files_are_compared() -> None:
    directory = Directory()
    for of in (0, 1):
        directory.compiled(of, "one")
        directory.below(directory.sources[of, "k1"], "kernel.json", "k1")
        # What a wrapper names that is no C++, and what an entry names that is no code.
        directory.below(directory.wrappers[of], "kernel.py", "k2")
        triton = directory.file("triton", "t1", "kernel.json", 50.0)
        directory.link(of, "fxgraph", triton, "triton", "t1")
    assert directory.compare() == Compared(True, "equal code keys; compiled files of the same bytes")


@pytest.mark.parametrize(("hashes", "bundled", "same"), [
    (("one", "one"), ("t1", "t2"), False),
    (("one", "two"), ("t1", "t1"), False),
    (("one", None), ("t1", "t1"), None),
    (("one", "one"), ("t1", "t1"), True),
    (("one", "one"), ("t1", None), True),
])  # fmt: skip
def test_kernels_of_both_kinds(
    hashes: tuple[str, str | None], bundled: tuple[str, str | None], same: bool | None
) -> None:
    directory = Directory(*({"triton_hashes": (one,) if one else ()} for one in bundled))
    for of, hash_ in enumerate(hashes):
        directory.compiled(of, hash_)
    assert directory.compare().same is same


@pytest.mark.parametrize("form", ["k.so", "k.pyd", "k.dylib", "k.cubin", "k.hsaco", "k.o"])
def test_what_is_compiled(form: str) -> None:
    directory = Directory()
    for of in (0, 1):
        source = directory.below(directory.wrappers[of], "kernel.cpp", "k1")
        made = directory.below(source, form, "k1")
        directory.hashes[directory.files[made][0].path] = str(of)
    assert directory.compare().same is False


Times = dict[str, float]


def choices(file: int, times: Times) -> list[TimingRow]:
    """The measured choices for one operator, of which the fastest is chosen."""
    fastest = min(times, key=times.__getitem__)
    return [
        TimingRow(file, "mm", "8x8", "highest", choice, time, False, choice == fastest, None, *["cpu"] * 4)
        for choice, time in times.items()
    ]


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ({"aten": 1.0}, {"aten": 1.0}, ("same", "aten", "aten", "the measured times")),
    ({"aten": 1.0}, {"aten": 1.5}, ("times", "aten", "aten", "the measured times")),
    ({"aten": 1.0, "t": 2.0}, {"aten": 2.0, "t": 1.0}, ("choice", "aten", "t", "the measured times")),
    ({"aten": 1.0}, {"t": 1.0}, ("choice", "aten", "t", "the measured times of other choices")),
    ({"aten": 1.0}, {"aten": 1.0, "t": 2.0}, ("times", "aten", "aten", "the measured times of other choices")),
], ids=str)  # fmt: skip
def test_choices_for_one_operator(before: Times, after: Times, wanted: tuple[str, ...]) -> None:
    scope = scope_of(entries=[entry("autotune", "a" * 52, root=root) for root in ("/old", "/new")])
    old, new = entries = scope.tables.entries.rows
    timings = choices(old.entry, before) + choices(new.entry, after)
    code = GeneratedCode(lambda file: None)
    binaries = KernelBinaries(entries, scope.linked.rows, lambda path: None)
    (built,) = built_alike([old], [new], timings, code, binaries)
    assert (built.result, built.before, built.after, built.evidence) == wanted
    assert (built.cache, built.name) == ("autotune", "mm")
    assert (built.entry_before, built.entry_after) == (old.entry, new.entry)


RELU, TANH = "y = relu(x)", "y = tanh(x)"


@pytest.mark.parametrize(("sources", "kernels", "result", "evidence"), [
    ((RELU, RELU), (("t1",), ("t1",)), "same", "the same 1 Triton kernel bundled in both"),
    ((RELU, RELU), (("t1",), ("t2",)), "kernels", "other Triton kernels"),
    # What is compiled says nothing once the sources differ.
    ((RELU, TANH), (("t1",), ("t1",)), "code", "line 1 is 'y = relu(x)' and 'y = tanh(x)'"),
    ((f"# process 1\n{RELU}", f"# process 2\n{RELU}"), ((), ()), "same", "no compiled kernel"),
    ((RELU, None), (("t1",), ("t2",)), "not_known", "the code could not be read"),
])  # fmt: skip
def test_a_graph_under_one_key(
    sources: tuple[str | None, ...], kernels: tuple[Any, ...], result: str, evidence: str
) -> None:
    """The key of its code is another on each side."""
    sides = zip("ab", kernels, strict=True)
    made = [entry("fxgraph", "f11", root=f"/{one}", code_key=one, triton_hashes=some) for one, some in sides]
    scope = scope_of(entries=made)
    of_path = dict(zip(scope.entries["path"], sources, strict=True))
    code = GeneratedCode(lambda file: of_path[file.path])
    binaries = KernelBinaries(scope.tables.entries.rows, scope.linked.rows, lambda path: None)
    before, after = ([row] for row in scope.tables.entries.rows)
    (built,) = built_alike(before, after, [], code, binaries)
    assert built.result == result
    assert evidence in built.evidence
