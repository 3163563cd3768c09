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

from make_gallery import write_gallery

import cachescope
from cachescope import figures
from cachescope.cli import COMMANDS, main

ROOT = Path(__file__).parent.parent
WORDS = ("outcomes", "verdicts", "evidence_kinds", "entry_kinds", "audit_rules")
_TITLES = {
    "outcomes": "How a lookup ended: the column `outcome` of [lookups](frames/lookups.md).",
    "verdicts": "Why a lookup did not hit: the column `verdict` of [misses](frames/misses.md). "
    "What each rests on: [What it knows and what it infers](../../explanation/knows-and-infers.md).",
    "evidence_kinds": "What a verdict rests on: the column `evidence` of [misses](frames/misses.md).",
    "entry_kinds": "What a file of a cache directory is: the column `cache` of [entries](frames/entries.md).",
    "audit_rules": "What `cachescope audit` looks for: the column `rule` of [audit](frames/audit.md).",
}
# An underscore within a word is none.
_MARKUP = re.compile(r"\*|(?<!\w)_|_(?!\w)")
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


def pages() -> dict[str, str]:
    """The pages of text, by their place."""
    made = {f"reference/frames/{name}.md": frame_page(name) for name in frame_names()}
    return made | {
        "reference/frames/index.md": frames_page(),
        "reference/columns.md": columns_page(),
        "reference/words.md": words_page(),
        "reference/fields.md": fields_page(),
        "reference/commands.md": commands_page(),
        "reference/scope.md": scope_page(),
        "reference/names.md": names_page(),
    }


def frame_names() -> list[str]:
    """The frames that `describe` lists."""
    return cachescope.describe()["frame"].tolist()


def frames_page() -> str:
    """All frames, and what one row of each is."""
    frames = cachescope.describe()
    rows = [
        (f"[{name}]({name}.md)", grain, str(columns))
        for name, grain, columns in zip(frames["frame"], frames["grain"], frames["columns"], strict=True)
    ]
    return _page(
        "Frames",
        "Everything that is read or answered is a pandas frame. `cachescope.describe()` lists them, and "
        '`cachescope.describe("lookups")` has the columns of one. Times are UTC, durations nanoseconds, sizes bytes. '
        "pandas 2.2 calls the type `str` by another name, `string`.\n\n"
        "A column by its name: [all columns](../columns.md).",
        _table(("frame", "one row is", "columns"), rows),
        _toctree(frame_names()),
    )


def frame_page(name: str) -> str:
    """One frame, column by column."""
    frames = cachescope.describe().set_index("frame")["grain"]
    rows = [
        (f"`{column}`", dtype, f"{meaning} ({unit})" if unit else meaning,
         "" if missing == "never" else missing, torch_name)
        for column, dtype, unit, meaning, missing, torch_name in cachescope.describe(name).itertuples(index=False)
    ]  # fmt: skip
    return _page(
        name,
        f"One row is {_cell(frames[name])}.",
        _table(("column", "type", "meaning", "missing where", "in torch"), rows),
    )


def columns_page() -> str:
    """Every column of every frame, by its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for frame in frame_names():
        for column, meaning in cachescope.describe(frame)[["column", "meaning"]].itertuples(index=False):
            found.setdefault(column, []).append((frame, meaning))
    rows = [
        (f"`{column}`", f"[{frame}](frames/{frame}.md)", meaning)
        for column in sorted(found)
        for frame, meaning in found[column]
    ]
    return _page(
        "All columns", "By name, in every frame that has them.", _table(("column", "frame", "meaning"), rows)
    )


def words_page() -> str:
    """Outcomes, verdicts and the like, as `describe` defines them."""
    parts = []
    for name in WORDS:
        described = cachescope.describe(name)
        rows = [(f"`{first}`", *rest) for first, *rest in described.itertuples(index=False)]
        title = name.replace("_", " ").capitalize()
        parts += [f"## {title}", f'{_TITLES[name]} In Python: `cachescope.describe("{name}")`.']
        parts.append(_table([str(column) for column in described.columns], rows))
    return _page("Outcomes, verdicts and other words", *parts)


def fields_page() -> str:
    """Every field of a key."""
    fields = cachescope.fields()
    shown = fields[["field", "default", "meaning", "affects", "first_version", "last_version"]]
    rows = [
        (f"`{field}`", f"`{default}`" if _is_there(default) else "", *map(_text, rest))
        for field, default, *rest in shown.itertuples(index=False)
    ]
    return _page(
        "Fields of a key",
        f"The {len(fields)} fields of an FX graph or AOTAutograd key, as of the newest torch that was read. "
        "`cachescope.fields()` has them with what sets each, its environment variables, and where torch's code "
        "generation reads it: [the frame fields](frames/fields.md).",
        "\n".join(
            [
                ":::{container} long-names",
                _table(("field", "default", "meaning", "affects", "since", "until"), rows),
                ":::",
            ]
        ),
    )


def commands_page() -> str:
    """The help of every command."""
    parts = []
    for command in COMMANDS:
        parts += [f"## {command}", f"```text\n{help_of(command)}\n```"]
    return _page(
        "Commands",
        "Every command has `--help` and `--json`, and those that print something of a recording "
        "[`--redact`](../../explanation/redact.md). Those that read what you name take `--strict`, `--jobs N` and "
        "`--no-index`; `audit` takes none of the three, as it has readers of its own.",
        f"```text\n{help_of()}\n```",
        *parts,
    )


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
    return _page(
        "The Scope",
        "What `cachescope.read` returns. Frames are attributes, and what each column means is in "
        "[Frames](frames/index.md); questions are methods.",
        _auto("autoclass", "cachescope.Scope", members=True, inherited=True),
    )


def names_page() -> str:
    """Every other public name, from its docstring."""
    names = [name for name in cachescope.__all__ if name not in ("Scope", "__version__")]
    classes = [name for name in names if isinstance(getattr(cachescope, name), type)]
    functions = [name for name in names if name not in classes]
    return _page(
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


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _toctree(names: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])


def _auto(directive: str, name: str, *, members: bool = False, inherited: bool = False) -> str:
    return "\n".join(
        [
            "```{eval-rst}",
            f".. {directive}:: {name}",
            *["   :members:"][:members],
            *["   :inherited-members:"][:inherited],
            "```",
        ]
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([_cell(_text(value)) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_there(value: Any) -> bool:
    return value is not None and value == value


def _text(value: Any) -> str:
    return str(value) if _is_there(value) else ""


def _cell(text: str) -> str:
    """A text for a cell of a table: markup within code stays as it is, and elsewhere it is no markup."""
    parts = text.replace("``", "`").replace("|", "\\|").replace("\n", " ").split("`")
    if len(parts) % 2 == 0:
        parts = [text.replace("`", "'")]
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part.replace("<", "&lt;")) for part in parts[::2]]
    return "`".join(parts)
