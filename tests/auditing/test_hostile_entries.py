"""Every hostile entry is found: by the rule it breaks, in its file, at its place."""

import os
import pickle
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.auditing.known import ANY, is_known
from cachescope.auditing.pickles import Place, audit_bytes
from cachescope.readers.pickles.pickle_calls import Global, follow
from tests.auditing.hostile_entries import CASES, CONTAINERS, FX, REDUCED, SENTINEL, entry, graph
from tests.hostile_pickles import entry_bytes

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """What a pickle would run leaves a file in the working directory."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not os.path.exists(SENTINEL)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cache whose folders only we can write."""
    root = tmp_path / "cache"
    root.mkdir()
    os.chmod(root, 0o755)
    return root


def bad(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["level"] != "note"]


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_entry_is_found_and_fails(name: str, root: Path) -> None:
    wanted = CASES[name](root)
    if wanted.rule == "group-can-write" and os.geteuid() != 0:
        pytest.skip("only root can give a file to a group that is not the user's own")
    found = cachescope.audit(root)
    there = found[(found["rule"] == wanted.rule) & (found["path"] == str(root / wanted.path))]
    assert len(there), found[["rule", "path", "message"]].to_string()
    if wanted.at is not None:
        data = (root / wanted.path).read_bytes()
        places = there["offset"].dropna().tolist()
        assert any(data[place:].startswith(wanted.at) for place in places), places
    for row in there[there["named"].notna() & there["offset"].notna()].itertuples():
        text = (root / wanted.path).read_bytes()[int(row.offset) :]
        assert (
            any(text.startswith(row.named[at:].encode()) for at in range(len(row.named))) or text[0] > 127
        ), row
    # Alone a link within the folder does not fail, nor does what nobody opens.
    assert len(bad(found)) or wanted.rule in ("link-inside", "unknown-file")


def test_a_sound_entry_made_by_hand_is_clean(root: Path) -> None:
    """Else every case above might be found for what is around it."""
    entry(root, FX, entry_bytes(graph(guards_expr="2 <= L['t0'] and L['t0'] <= 64")))
    assert bad(cachescope.audit(root)).empty


@pytest.mark.parametrize("name", REDUCED)
def test_the_hostile_pickles_are_what_python_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The global that the audit tells is the one that Python's own unpickler asks for."""

    class Asked(Exception):  # noqa: N818 - no error
        pass

    class Asking(pickle._Unpickler):  # the one in Python, which can be stopped at its first question
        def find_class(self, module: str, name: str) -> object:
            raise Asked(module, name)

    import io

    for protocol in range(6):
        data = pickle.dumps(REDUCED[name], protocol=protocol)
        with pytest.raises(Asked) as asked:
            Asking(io.BytesIO(data)).load()
        told = next(iter(follow(data).named))
        # Below protocol 3 the unpickler has translated Python 2's name of the module already: names alone are compared.
        assert told.name == asked.value.args[1]


@pytest.mark.parametrize("name", CONTAINERS)
def test_cut_anywhere_it_is_found_or_breaks_before(name: str, root: Path) -> None:
    """A pickle acts while it is read: what comes before the cut counts."""
    data = pickle.dumps(REDUCED["os.system"], 2)  # without a frame, of which nothing is run if it is cut
    named = data.index(b"\nsystem\n") + 8
    for end in (named - 1, named, len(data) - 1):
        path = root / CONTAINERS[name](root, data[:end])
        found = cachescope.audit(root)
        is_found = "pickle-dangerous-global" in set(found["rule"])
        assert is_found == (end >= named), (end, found)
        path.unlink()


@pytest.mark.parametrize("protocol", range(6))
def test_no_name_that_is_not_listed_passes(protocol: int) -> None:
    """Of every function and class of some modules, whichever a pickler can name."""
    import builtins
    import functools
    import operator
    import subprocess

    for module in (os, builtins, operator, functools, subprocess):
        for name, value in vars(module).items():
            try:
                data = pickle.dumps(value, protocol=protocol)
            except Exception:
                continue
            named = [target for target in follow(data).named if not is_known(ANY, target)]
            if callable(value) and not named:
                continue
            assert bool(named) == bool(audit_bytes(data, Place("x", ANY))), name


def test_a_known_name_is_known_only_where_torch_writes_it() -> None:
    graph_class = Global("torch._inductor.output_code", "CompiledFxGraph")
    assert is_known("fxgraph", graph_class)
    assert is_known("aotautograd", graph_class)  # bundled
    assert not is_known("pgo", graph_class)
    assert not is_known("versioned", graph_class)


def test_copies_in_several_folders_are_each_reported(root: Path) -> None:
    """An entry and a wrapper as vLLM keeps them, once a folder: they are looked at once, and found everywhere."""
    for name in ("a", "b", "c"):
        folder = root / name
        folder.mkdir()
        wanted = CASES["os.system in FX entry"](folder)
        (folder / "xx").mkdir(exist_ok=True)
        (folder / "xx" / f"c{'x' * 51}.py").write_text("import subprocess\n")
    found = bad(cachescope.audit(root))
    entries = found[found["rule"] == wanted.rule]["path"]
    assert set(entries) == {str(root / name / wanted.path) for name in ("a", "b", "c")}
    wrappers = found[found["rule"] == "code-not-as-torch"]["path"]
    assert set(wrappers) == {str(root / name / "xx" / f"c{'x' * 51}.py") for name in ("a", "b", "c")}
