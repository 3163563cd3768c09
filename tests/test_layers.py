"""The arrows of the design: a module imports only from its own layer and from those above it in this list.

Every import counts: in a function, under ``TYPE_CHECKING``, in a string. And only the table of verdicts compares their words:
elsewhere a miss is given one, and its kind is asked.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import structure
from structure import MOST_LINES_OF_A_MODULE, MOST_MODULES, circles, edges, edges_of, imports_of, module_of

from cachescope.cli import COMMANDS
from cachescope.figures.palette import BY_NAME
from cachescope.verdict_kinds import KINDS, VERDICTS, Verdict
from tests.programs import python

PACKAGE = Path(__file__).parent.parent / "cachescope"
LAYERS = (
    ("version", "errors", "terms", "rows", "table", "verdict_kinds", "columns", "notebook_cells",
     "wording", "json_types", "checked_json", "whole_file", "catalogue", "frames", "components",
     "component_sets", "grouping", "kept", "collector", "details"),
    ("keys",), ("readers",), ("capture",), ("analysis",), ("locking",), ("auditing",), ("devices",),
    ("answers",), ("figures",), ("report",), ("views",), ("samples",), ("scope",), ("cli", "__main__"),
)  # fmt: skip
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Who may import what from outside, beside the standard library and the core dependencies.
ONLY_IN = {
    "torch": {"capture"},
    "triton": {"capture"},
    "plotly": {"figures"},
    "ipywidgets": {"views"},
    "anywidget": {"views"},
    # The cell magic gives a Scope, so it lives with it; it imports IPython when a cell is run.
    "IPython": {"views", "capture", "scope"},
    "rich": {"report", "cli"},
    "redis": {"readers"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


# What may be imported inside a function, so that who does not need it does not wait for it or need not have it.
HEAVY = {
    "IPython", "anywidget", "filelock", "fsspec", "ipywidgets", "logging", "pandas", "platformdirs", "plotly", "pyarrow",
    "pynvml", "redis", "rich", "tarfile", "tempfile", "torch",
}  # fmt: skip
# The command line: a function imports what it runs, and the top of a command's module only what help needs, which is
# argparse and these. `sources` reads, and is itself imported by functions.
LIGHT = {
    "cachescope.cli.arguments", "cachescope.report.subjects", "cachescope.cli.needed", "cachescope.cli.output", "cachescope.errors",
    "cachescope.terms", "cachescope.version", "cachescope.wording",
}  # fmt: skip
ONLY_ON_SOME_SYSTEMS = {"_posixsubprocess", "fcntl", "grp", "pwd"}
# Of our own, what imports one of those for all of its module.
OWN_AND_HEAVY = {
    # pandas; a frame is made for whoever asks for one
    "cachescope.columns": {"table", "catalogue", "analysis", "auditing", "answers", "figures", "report"},
    # numpy: a small log, which is not kept, does without it
    "cachescope.readers.index.log_tables": {"readers"},
    "cachescope.readers.parquet_folder": {"answers"},
    # platformdirs and filelock, which no small log needs
    "cachescope.readers.index.kept_logs": {"answers"},
    # patterns and words, and most reports hide nothing
    "cachescope.report.redact": {"report"},
    # all of the report, and nothing else is written by it
    "cachescope.report.page.file": {"scope"},
    # ipywidgets
    "cachescope.views.compare": {"scope"},
    "cachescope.views.explorer": {"scope"},
    "cachescope.views.state": {"scope"},
    "cachescope.views.what_if": {"scope"},
}


# What was read works out each grain when it is asked for, and a Scope each answer: the modules that do are loaded then.
# A reader is loaded when there is a source of its kind, and what few recordings need for an answer when one does.
WHEN_ASKED = {
    "readers/kinds.py", "readers/sources.py", "readers/assemble.py", "readers/logs/many_logs.py",
    "analysis/directory/false_hits.py", "analysis/verdicts/causes.py", "answers/causes.py",
    "answers/explanation.py", "report/why_missed.py", "answers/recording.py",
    "answers/read.py", "scope/scope.py",
}  # fmt: skip


# Who loads a module by a name that is no literal of the call. Those of the package are literals elsewhere, so that they count too.
LOADS_BY_NAME = {
    # what the package gives: nobody waits for pandas who does not use it
    "__init__.py",
    # a command, when it is named
    "cli/__init__.py",
    # an answer, when it is told
    "report/subjects.py",
    # a pane, which is made when it is first seen
    "views/explorer.py",
    # the reader of a kind of source, where there is one
    "readers/sources.py",
    # modules of torch, if it is there
    "capture/contexts.py",
    "capture/torch_modules.py",
    "capture/preflight/settings.py",
    # of a pre-flight, in a process that need not have cachescope
    "capture/preflight/site/sitecustomize.py",
    # of Python, whose functions' names are harmless
    "report/redaction/vocabulary.py",
}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


# Several tests ask for all of them.
imports_once = cache(imports_of)
edges_once = cache(lambda: edges_of({module_of(path): imports_once(path) for path in MODULES}))


def calls_of(path: Path, names: str) -> list[ast.Call]:
    """The calls in a module; of one that has none of the names, none: most need not be parsed."""
    text = path.read_text()
    tree = ast.parse(text if re.search(names, text) else "")
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_imports_point_up_the_list_of_layers() -> None:
    for path in MODULES:
        layer = layer_of(path)
        if path == PACKAGE / "__init__.py":
            continue
        for one in imports_once(path):
            parts, where = one.name.split("."), f"{path} imports {one.name}"
            if parts[0] == "cachescope":
                assert parts[1] in LEVEL, f"{where}, which is put together from all layers"
                assert LEVEL[parts[1]] <= LEVEL[layer], where
            assert one.only_typed or layer in ONLY_IN.get(parts[0], {layer}), where


@pytest.mark.parametrize("path", sorted((PACKAGE / "report").glob("*.py")), ids=lambda path: path.name)
def test_a_form_knows_its_answer_and_nothing_else(path: Path) -> None:
    names = {one.name for one in imports_once(path)}
    assert not {name for name in names if name.startswith("cachescope.answers.read.")}


def test_there_is_no_circle() -> None:
    assert circles(edges_once()) == []


def test_a_circle_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way one of its imports is written."""
    monkeypatch.setattr(structure, "PACKAGE", tmp_path)
    package = tmp_path.name
    for text in (
        f"def later():\n    from {package}.one import x\n",
        f"if TYPE_CHECKING:\n    from {package} import one\n",
        f"import {package}.one\n",
    ):
        (tmp_path / "one.py").write_text(f"from {package}.two import y\n")
        (tmp_path / "two.py").write_text(text)
        found = circles(edges([tmp_path / "one.py", tmp_path / "two.py"]))
        assert found == [[f"{package}.one", f"{package}.two"]], text


def test_modules_are_few_and_none_is_long() -> None:
    assert len(MODULES) <= MOST_MODULES
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= MOST_LINES_OF_A_MODULE, path


def test_the_package_keeps_its_limits() -> None:
    size = sum(map(structure.size_of, MODULES), Counter[str]())
    assert size["lines"] <= structure.MOST_LINES
    assert size["code"] <= structure.MOST_LINES_OF_CODE


def test_functions_import_only_what_is_heavy() -> None:
    for path in MODULES:
        layer = layer_of(path)
        if layer == "cli" or str(path.relative_to(PACKAGE)) in WHEN_ASKED:
            continue
        for one in imports_once(path):
            if not one.in_function or one.name.split(".")[0] in HEAVY | ONLY_ON_SOME_SYSTEMS:
                continue
            module = one.name if one.name in OWN_AND_HEAVY else one.name.rpartition(".")[0]
            where = f"{path}, line {one.line}, imports {one.name} in a function"
            assert layer in OWN_AND_HEAVY.get(module, set()), where


def test_help_loads_no_more_of_the_package_than_it_prints() -> None:
    for path in (PACKAGE / "cli").glob("*.py"):
        for one in imports_once(path):
            is_ours = one.name.startswith("cachescope.") and not (one.in_function or one.only_typed)
            if not is_ours or path.name == "sources.py" or one.name in COMMANDS.values():
                continue
            assert one.name.rpartition(".")[0] in LIGHT, f"{path}, line {one.line}, imports {one.name}"


def test_few_load_a_module_by_its_name() -> None:
    for path in MODULES:
        if str(path.relative_to(PACKAGE)) in LOADS_BY_NAME:
            continue
        for node in calls_of(path, "import_module"):
            if ast.unparse(node.func).endswith("import_module"):
                assert isinstance(node.args[0], ast.Constant), f"{path}, line {node.lineno}"


def test_what_is_loaded_by_its_name_is_seen() -> None:
    found = edges_once()
    assert found["cachescope.cli"] >= set(COMMANDS.values())
    assert "cachescope.views.machines" in found["cachescope.views.explorer"]


def test_nothing_unpickles_or_evaluates() -> None:
    for path in MODULES:
        for node in calls_of(
            path, r"(?<![.\w])(eval|exec|compile|__import__)\(|os\.system|pickle\.load|marshal\.|shelve\."
        ):
            if not isinstance(node.func, ast.Name | ast.Attribute):
                continue
            called = ast.unparse(node.func)
            assert called not in {"eval", "exec", "compile", "__import__", "os.system"}, f"{path}: {called}"
            assert not called.startswith(("pickle.load", "marshal.", "shelve.")), f"{path}: {called}"


def test_every_layer_is_in_the_list() -> None:
    found = {layer_of(path) for path in MODULES} - {"__init__"}
    assert found <= set(LEVEL)


def test_import_loads_nothing_heavy() -> None:
    modules = python("import cachescope, sys; print(*sys.modules)").stdout.split()
    loaded = {name.split(".")[0] for name in modules}
    heavy = {"torch", "plotly", "ipywidgets", "IPython", "anywidget", "rich", "numpy", "pandas", "pyarrow"}
    assert loaded & heavy == set()
    assert "cachescope" in loaded


def test_bytes_become_rows_without_numpy_pandas_and_pyarrow(
    recording: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """And small logs do not need the index."""
    folder = recording("2.13.0", "tour")
    code = (
        "import sys; from cachescope.readers.reading import Reading; from cachescope.readers.sources import read_sources\n"
        "index = lambda: sys.exit('the index was opened')\n"
        "reading = Reading(); read_sources(sys.argv[1:], reading, index=index)\n"
        "print(len(reading.processes), len(reading.entries), len(reading.details.sets), *sys.modules)"
    )
    paths = (folder / "trace", folder / "text", folder / "cache")
    processes, entries, sets, *loaded = python(code, *paths, cwd=tmp_path).stdout.split()
    assert 0 not in map(int, (processes, entries, sets))
    assert {"numpy", "pandas", "pyarrow"} & set(loaded) == set()


@pytest.mark.parametrize("arguments", [(), ("--no-index",)], ids=["with the index", "without"])
def test_bytes_become_an_answer_without_numpy_pandas_and_pyarrow(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with few modules of the package."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CACHESCOPE_NO_INDEX")
    code = (
        "import sys; from cachescope.cli import main\n"
        "main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    command = ("explain", PACKAGE / "samples" / "config_flip", *arguments)
    done = python(code, *command, cwd=tmp_path)
    loaded = done.stderr.split()
    assert "epilogue_fusion" in done.stdout
    assert {"numpy", "pandas", "pyarrow"} & set(loaded) == set()
    assert sum(name.split(".")[0] == "cachescope" for name in loaded) <= 155


@pytest.mark.parametrize("sample", ["tour", "training", "vllm", "whole_directory"])
def test_a_report_is_written_without_numpy_pandas_and_pyarrow(sample: str, tmp_path: Path) -> None:
    code = "import sys; from cachescope.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = ("report", PACKAGE / "samples" / sample, "-o", tmp_path / "report.html", "--redact")
    done = python(code, *command)
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert {"numpy", "pandas", "pyarrow"} & set(done.stdout.split()) == set()


def test_a_trace_is_explained_without_other_readers(recording: Callable[[str, str], Path]) -> None:
    trace = recording("2.13.0", "config_flip") / "trace"
    code = "import sys; from cachescope.cli import main; main(['explain', sys.argv[1]]); print(*sys.modules, file=sys.stderr)"
    done = python(code, trace)
    assert "6 lookups" in done.stdout
    readers = {name.removeprefix("cachescope.readers.") for name in done.stderr.split()}
    assert "logs.trace_log" in readers
    others = {
        "logs.text_log", "logs.vllm_log", "snapshot", "pickles", "remote_cache.stored",
    }  # fmt: skip
    assert readers & (others | {"directory.cache_dir"}) == set()


@pytest.mark.slow
def test_reading_loads_no_torch() -> None:
    code = (
        "import cachescope, sys; s = cachescope.read(cachescope.sample('config_flip')); repr(s); s.explain();"
        " s._repr_html_(); print('torch' in sys.modules, len(s.lookups))"
    )
    assert python(code).stdout.split() == ["False", "6"]


# It is the name of an outcome, too, and is one of a verdict where a verdict is named beside it.
ALSO_AN_OUTCOME = "disabled"
WORDS = set(VERDICTS) - {ALSO_AN_OUTCOME}
KIND_WORDS = {kind for _, kind in KINDS if kind}
# A module in which none of these stands compares none.
NAMED = {*VERDICTS, *KIND_WORDS, "verdict_kinds"}
# What takes a verdict.
GIVEN_TO = {"Why", "AdviceFacts"}
IMPORTED = "from cachescope.verdict_kinds import KINDS, NEW_GRAPH, NOT_KNOWN, UPGRADE, kind_of\n"
COMPARES = {"startswith", "isin", "eq", "ne", "get", "are", "count", "index"}


def compared(text: str) -> Iterator[int]:
    """The lines of a module where a verdict stands that is not given to a miss, and where a kind is compared."""
    tree = ast.parse(text)
    given: set[ast.AST] = set()
    kinds: set[str] = set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        match node:
            case ast.ImportFrom(module="cachescope.verdict_kinds"):
                kinds |= {a.asname or a.name for a in node.names if a.name not in ("KINDS", "VERDICTS")}
            case ast.Call(func=ast.Name(id=name), args=[word, *_]) if name in GIVEN_TO:
                given.add(word)
            case ast.Assign(targets=[ast.Name(id="verdict")], value=ast.IfExp(body=one, orelse=other)):
                given |= {one, other}
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    yield from (one.lineno for one in constants if one.value in WORDS and one not in given)
    if not kinds and not any(one.value in KIND_WORDS or one.value == ALSO_AN_OUTCOME for one in constants):
        return
    for node in filter(_is_comparing, nodes):
        within = list(ast.walk(node))
        names = {one.id for one in within if isinstance(one, ast.Name) and one.id.isupper()}
        texts = {one.value for one in within if isinstance(one, ast.Constant)}
        is_of_kind = any(isinstance(one, ast.Attribute) and one.attr == "kind" for one in within)
        if (
            names & kinds
            or (is_of_kind and texts & KIND_WORDS)
            or (ALSO_AN_OUTCOME in texts and "verdict" in ast.unparse(node))
        ):
            yield min(one.lineno for one in within if isinstance(one, ast.expr))


def _is_comparing(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in COMPARES
    return isinstance(node, ast.Compare | ast.Match | ast.Subscript | ast.Dict)


@pytest.mark.slow
def test_no_other_module_compares_a_verdict() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "verdict_kinds.py"
        for text in [path.read_text(encoding="utf-8")]
        if any(word in text for word in NAMED)
        for line in compared(text)
    }
    assert found == set()


@pytest.mark.parametrize("planted", [
    'is_cold = miss.verdict == "first_lookup"', 'is_cold = "first_lookup" != miss.verdict',
    'is_apart = cause.verdict in ("bypassed", "disabled")', 'is_off = cause.verdict == "disabled"',
    '_KEY_CHANGED = "key_changed"', 'title = {"guard_failed": "other guards"}[verdict]',
    'colour = {"disabled": GREY}.get(verdict)', 'cold = causes[causes["verdict"].isin(["first_lookup"])]',
    'is_new = ("key_changed", fields, "") not in known', 'kind = KINDS["key_changed", ""]',
    "is_known = why.kind != NOT_KNOWN", 'is_gone = why.kind in ("deleted", "another directory")',
    "is_upgrade = cause.kind.startswith(UPGRADE)", "text = {NEW_GRAPH: 'new graphs'}[kind]",
    'match why.verdict:\n    case "bypassed":\n        pass',
    'match why.verdict:\n    case "disabled":\n        pass',
])  # fmt: skip
def test_a_comparison_is_found_however_it_is_written(planted: str) -> None:
    assert set(compared(f"{IMPORTED}{planted}")) != set()


@pytest.mark.parametrize("harmless", [
    'why = Why("first_lookup", reason, "not_known", why, kind=NOT_KNOWN)',
    'verdict = "key_changed" if changed else "no_detail_differs"',
    'was_off = lookup.outcome == "disabled"',
    "is_cold = kind_of(cause).is_first",
    "kind = KINDS[row.verdict, '']",
    "return UPGRADE + versions",
])  # fmt: skip
def test_a_verdict_may_be_given_and_asked(harmless: str) -> None:
    assert set(compared(f"{IMPORTED}{harmless}")) == set()


def test_every_verdict_has_a_meaning_and_kinds_of_some_colour() -> None:
    assert {verdict for verdict, _ in KINDS} == set(VERDICTS) == set(get_args(Verdict))
    assert {verdict for verdict, kind in KINDS if not kind} == set(VERDICTS)
    assert {kind.colour for kind in KINDS.values()} == set(BY_NAME)
    assert all(kind.explains | kind.explains_backward <= set(VERDICTS) for kind in KINDS.values())
