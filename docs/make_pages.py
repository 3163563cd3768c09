"""Writes the pages that cachescope itself has the text of: frames, words, fields, commands, names, notebooks, figures."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bypass_page import bypasses_page
from cache_table import caches_page
from defect_page import defects_page
from field_page import fields_page
from make_demo import write_demo
from make_gallery import write_gallery
from markup import Markup, cell, page, table
from upstream_page import upstream_page

import cachescope
from cachescope import figures
from cachescope.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
WORDS = ("outcomes", "verdicts", "evidence_kinds", "entry_kinds", "audit_rules")
_TITLES = {
    "outcomes": "How a lookup ended: the column {column-link}`outcome <lookups.outcome>` of [lookups](frames/lookups.md).",
    "verdicts": "Why a lookup did not hit: the column {column-link}`verdict <misses.verdict>` of [misses](frames/misses.md). "
    "What each rests on: [What it knows and what it infers](../../explanation/knows-and-infers.md).",
    "evidence_kinds": "What a verdict rests on: the column {column-link}`evidence <misses.evidence>` of "
    "[misses](frames/misses.md).",
    "entry_kinds": "What a file of a cache directory is: the column {column-link}`cache <entries.cache>` of "
    "[entries](frames/entries.md).",
    "audit_rules": "What `cachescope audit` looks for: the column {column-link}`rule <audit.rule>` of [audit](frames/audit.md).",
}
# The columns whose values are defined on a page: all of that name, or those of one frame.
_DEFINED = {
    "outcome": "[Each outcome](../words.md#outcomes)",
    "outcome_after": "[Each outcome](../words.md#outcomes)",
    "verdict": "[Each verdict](../words.md#verdicts)",
    "misses.evidence": "[Each kind of evidence](../words.md#evidence-kinds)",
    "misses.kind": "[All kinds](../../../explanation/knows-and-infers.md#kinds-of-an-entry-that-was-not-available)",
    "causes.kind": "[All kinds](../../../explanation/knows-and-infers.md#kinds-of-an-entry-that-was-not-available)",
    "entries.cache": "[Each kind of file](../words.md#entry-kinds)",
    "audit.cache": "[Each kind of file](../words.md#entry-kinds)",
    "audit.rule": "[Each rule](../words.md#audit-rules)",
}
_IDS_INTO = re.compile(r"(?<=\bid into )\w+|(?<=\bids into )\w+")
# The frames by what they are of, as the list of them shows them.
FRAME_GROUPS = {
    "What was recorded": (
        "runs",
        "lookups",
        "hash_details",
        "phases",
        "compiles",
        "symbols",
        "recompiles",
        "recorded",
        "problems",
    ),
    "Why lookups missed": ("misses", "causes", "changes", "hit_rates", "trend", "false_hits", "checks"),
    "Cache directories": (
        "entries",
        "guards",
        "past_misses",
        "kernels",
        "autotune",
        "links",
        "orphans",
        "duplicates",
        "removable",
        "locks",
        "predictions",
        "audit",
    ),
    "What if": (
        "what_if",
        "what_if_rates",
        "what_if_causes",
        "what_if_runs",
        "what_if_differences",
        "what_if_warnings",
        "sensitivity",
        "cause_savings",
        "evidence",
    ),
    "Processes, ranks and machines": (
        "contexts",
        "isolation_keys",
        "context_groups",
        "context_pairs",
        "context_difference",
        "manifest_difference",
        "caching_files",
        "differences",
        "compared_lookups",
        "built",
        "coverage",
        "rank_differences",
        "devices",
        "device_measurements",
    ),
    "vLLM": ("vllm_folders", "vllm_changes", "vllm_fragments", "vllm_ranks", "vllm_factors", "vllm_starts"),
    "Fields of keys, bypasses, known defects": ("fields", "bypasses", "defects"),
}
# How the frames that are not simply an attribute of the Scope are asked for in Python.
ASKED_BY = {
    "hash_details": "scope.hash_details(lookup=…)",
    "recorded": 'scope.recorded("0/0")',
    "changes": "scope.explain(…).frame",
    "hit_rates": "scope.hit_rates(by=[…])",
    "checks": "scope.check(…).frame",
    "locks": "scope.locks()",
    "predictions": "cachescope.will_hit(directory, process)",
    "audit": "cachescope.audit(path)",
    "what_if": "scope.what_if(without=…).frame",
    "what_if_rates": "scope.what_if(without=…).rates",
    "what_if_causes": "scope.what_if(without=…).by_cause",
    "what_if_runs": "scope.what_if(without=…).by_run",
    "what_if_differences": "scope.what_if(without=…).differences",
    "what_if_warnings": "scope.what_if(without=…).warnings",
    "sensitivity": "scope.sensitivity()",
    "cause_savings": "scope.cause_savings()",
    "isolation_keys": "cachescope.isolation_keys(scope.contexts)",
    "context_groups": "scope.context_groups()",
    "context_pairs": "scope.context_pairs()",
    "context_difference": "scope.context_difference(before, after)",
    "manifest_difference": "cachescope.manifest_difference(before, after)",
    "caching_files": "scope.caching_files(isolation_key)",
    "differences": "cachescope.compare(before, after).frame",
    "compared_lookups": "scope.compare_view(before, after).frame()",
    "built": "cachescope.compare(before, after).built",
    "coverage": "cachescope.compare(before, after).coverage",
    "fields": "cachescope.fields()",
    "bypasses": "cachescope.bypasses()",
    "defects": "cachescope.defects()",
}
# This one is only printed.
_PRINTED_BY = {"device_measurements": "cachescope devices --measure --json"}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_FIGURE = "application/vnd.plotly.v1+json"


def write_pages(made: Path) -> None:
    """Write all of them into a folder of their own, anew."""
    shutil.rmtree(made, ignore_errors=True)
    for folder in ("reference/frames", "tutorials", "static"):
        (made / folder).mkdir(parents=True)
    for name, text in pages().items():
        (made / name).write_text(text, encoding="utf-8")
    copy_notebooks(made / "tutorials")
    write_gallery(made)
    write_demo(made / "static" / "demo")


def pages() -> dict[str, str]:
    """The pages of text, by their place."""
    made = {f"reference/frames/{name}.md": frame_page(name) for name in frame_names()}
    return made | {
        "reference/frames/index.md": frames_page(),
        "reference/columns.md": columns_page(),
        "reference/words.md": words_page(),
        "reference/fields.md": fields_page(),
        "reference/bypasses.md": bypasses_page(),
        "reference/defects.md": defects_page(),
        "reference/upstream.md": upstream_page(),
        "reference/caches.md": caches_page(),
        "reference/commands.md": commands_page(),
        "reference/scope.md": scope_page(),
        "reference/names.md": names_page(),
    }


def frame_names() -> list[str]:
    """The frames that `describe` lists."""
    return cachescope.describe()["frame"].tolist()


def frames_page() -> str:
    """All frames, and what one row of each is."""
    frames = cachescope.describe().set_index("frame")
    parts = []
    for title, names in FRAME_GROUPS.items():
        rows = [
            (f"[{name}]({name}.md)", frames["grain"][name], str(frames["columns"][name])) for name in names
        ]
        parts += [f"## {title}", table(("frame", "one row is", "columns"), rows)]
    return page(
        "Frames",
        "Everything that is read or answered is a pandas frame. `cachescope.describe()` lists them, and "
        '`cachescope.describe("lookups")` has the columns of one. Times are UTC, durations nanoseconds, sizes bytes. '
        "pandas 2.2 calls the type `str` by another name, `string`.\n\n"
        "A column by its name: [all columns](../columns.md).",
        *parts,
        _toctree(sorted(frame_names())),
    )


def frame_page(name: str) -> str:
    """One frame, column by column."""
    frames = cachescope.describe().set_index("frame")["grain"]
    rows = [
        (f"{{column}}`{name}.{column}`", dtype, unit, _linked(name, column, meaning),
         "" if missing == "never" else missing, torch_name)
        for column, dtype, unit, meaning, missing, torch_name in cachescope.describe(name).itertuples(index=False)
    ]  # fmt: skip
    heads = ("column", "type", "unit", "meaning", "missing where", "in torch")
    described = table(heads, rows, drop_empty=True)
    return page(
        name,
        f"One row is {cell(frames[name])}. {_asked(name)}",
        f":::{{container}} columns\n{described}\n:::",
    )


def _asked(frame: str) -> str:
    """How to get a frame."""
    if frame in _PRINTED_BY:
        return f"Printed by `{_PRINTED_BY[frame]}`."
    asked = ASKED_BY.get(frame, f"scope.{frame}")
    where = "[the Scope](../scope.md)" if asked.startswith("scope.") else "[Python names](../names.md)"
    return f"In Python: `{asked}` ({where})."


def _linked(frame: str, column: str, meaning: str) -> Markup:
    """What a column means, as markup: links to the frames it has numbers of, and to the definitions of its values."""
    text = _IDS_INTO.sub(lambda found: f"[{found[0]}]({found[0]}.md)", cell(meaning))
    defined = _DEFINED.get(f"{frame}.{column}") or _DEFINED.get(column)
    return Markup(f"{text}. {defined}" if defined else text)


def columns_page() -> str:
    """Every column of every frame, by its name."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for frame in frame_names():
        described = cachescope.describe(frame)[["column", "dtype", "unit", "meaning"]]
        for column, dtype, unit, meaning in described.itertuples(index=False):
            found.setdefault(column, []).append((frame, dtype, unit, meaning))
    parts = []
    for letter in sorted({column[0] for column in found}):
        rows = [
            (f"{{column-link}}`{column} <{frame}.{column}>`", f"[{frame}](frames/{frame}.md)", *rest)
            for column in sorted(found)
            for frame, *rest in found[column]
            if column[0] == letter
        ]
        parts += [f"## {letter}", table(("column", "frame", "type", "unit", "meaning"), rows)]
    letters = " ".join(f"[{part[3:]}](#{part[3:]})" for part in parts[::2])
    return page("All columns", f"By name, in every frame that has them: {letters}", *parts)


def words_page() -> str:
    """Outcomes, verdicts and the like, as `describe` defines them."""
    parts = []
    for name in WORDS:
        described = cachescope.describe(name)
        rows = [(f"{{word}}`{name}.{first}`", *rest) for first, *rest in described.itertuples(index=False)]
        title = name.replace("_", " ").capitalize()
        parts += [f"## {title}", f'{_TITLES[name]} In Python: `cachescope.describe("{name}")`.']
        parts.append(table([str(column) for column in described.columns], rows))
    return page("Outcomes, verdicts and other words", *parts)


def commands_page() -> str:
    """The help of every command."""
    parts = []
    for command in COMMANDS:
        parts += [f"## {command}", _printed(help_of(command))]
    return page(
        "Commands",
        "Every command has `--help` and `--json`, and those that print something of a recording "
        "[`--redact`](../../explanation/redact.md). Those that read what you name take `--strict`, `--jobs N` and "
        "`--no-index`; `audit` and `verify`, which have readers of their own, and `preflight` and `fix`, which run a command, take none of the three.",
        _printed(help_of()),
        *parts,
    )


def _printed(text: str) -> str:
    """The help of a command: its longest lines are prose, which may wrap."""
    return f":::{{container}} help\n```text\n{text}\n```\n:::"


def help_of(*command: str) -> str:
    """What ``--help`` prints, for a page."""
    printed = io.StringIO()
    width, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "90"
    try:
        with contextlib.redirect_stdout(printed):
            main([*command, "--help"])
    finally:
        if width is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = width
    return printed.getvalue().strip()


def scope_page() -> str:
    """The Scope: its frames and its questions."""
    return page(
        "The Scope",
        "What `cachescope.read` returns. Frames are attributes, and what each column means is in "
        "[Frames](frames/index.md); questions are methods.",
        # The rows of the Recording that it is are for the answers.
        _auto("autoclass", "cachescope.Scope", members=True, inherited_below="Recording"),
    )


def names_page() -> str:
    """Every other public name, from its docstring."""
    names = [name for name in cachescope.__all__ if name not in ("Scope", "__version__")]
    classes = [name for name in names if isinstance(getattr(cachescope, name), type)]
    functions = [name for name in names if name not in classes]
    return page(
        "Python names",
        "`cachescope.Scope` has [a page of its own](scope.md).",
        *(_auto("autofunction", f"cachescope.{name}") for name in functions),
        "## Classes",
        *(_auto("autoclass", f"cachescope.{name}", members=True) for name in classes),
        "## cachescope.figures",
        "Each takes frames and gives a plotly `Figure`: [the gallery](../gallery.md) shows them.",
        *(_auto("autofunction", f"cachescope.figures.{name}") for name in figures.__all__),
    )


def copy_notebooks(folder: Path) -> None:
    """The notebooks with their outputs; of figures the pictures, and no widgets, which need a kernel."""
    for path in sorted((ROOT / "notebooks").iterdir()):
        if path.suffix == ".png":
            shutil.copy(path, folder)
        elif path.suffix == ".ipynb":
            notebook = json.loads(path.read_text(encoding="utf-8"))
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    cell["outputs"] = [shown for one in cell["outputs"] if (shown := _without_code(one))]
            (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")


def _without_code(output: dict[str, Any]) -> dict[str, Any] | None:
    data = output.get("data")
    if data is None:
        return output
    if _WIDGET in data:
        return None
    kept = {mime: value for mime, value in data.items() if mime != _FIGURE}
    if "image/png" in kept:
        kept.pop("text/plain", None)
    return {**output, "data": kept}


def _toctree(names: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])


def _auto(directive: str, name: str, *, members: bool = False, inherited_below: str = "") -> str:
    return "\n".join(
        [
            "```{eval-rst}",
            f".. {directive}:: {name}",
            *["   :members:"][:members],
            *[f"   :inherited-members: {inherited_below}"][: bool(inherited_below)],
            "```",
        ]
    )
