"""Makes the parts of the README that are printed by cachescope itself: `make readme` writes them anew."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import cachescope

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
OUTPUT = re.compile(r"(?<=<!-- output of: )(?P<command>[^\n]*?) -->\n```\n(?P<shown>.*?)\n```", re.DOTALL)
FRAMES = re.compile(r"(?<=<!-- frames -->\n).*?(?=\n<!-- end of frames -->)", re.DOTALL)

# The frames of design's contract are listed column by column, the others by name.
_IN_FULL = ("runs", "lookups", "misses", "causes", "entries", "contexts", "devices", "problems")


def output_of(command: str) -> str:
    """What a command prints in a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def frames_section() -> str:
    """Every frame as Markdown, from what `describe` tells."""
    frames = cachescope.describe().set_index("frame")["grain"]
    parts = [_in_full(name, frames[name]) for name in _IN_FULL]
    others = frames.index.difference(_IN_FULL, sort=False)
    rows = [f"<details><summary><b>{len(others)} more</b></summary>", ""]
    rows += ["| frame | one row is | columns |", "|---|---|---|"]
    for name in others:
        columns = ", ".join(f"`{column}`" for column in cachescope.describe(name)["column"])
        rows.append(f"| `{name}` | {_cell(frames[name])} | {columns} |")
    return "\n\n".join([*parts, "\n".join([*rows, "", "</details>"])])


def _in_full(name: str, grain: str) -> str:
    rows = ["| column | type | meaning | missing where | in torch |", "|---|---|---|---|---|"]
    for column in cachescope.describe(name).itertuples():
        meaning = f"{column.meaning} ({column.unit})" if column.unit else column.meaning
        missing = "" if column.missing == "never" else column.missing
        cells = (meaning, missing, column.torch_name)
        rows.append(f"| `{column.column}` | {column.dtype} | " + " | ".join(map(_cell, cells)) + " |")
    summary = f"<details><summary><b>{name}</b>: {grain}</summary>"
    return "\n".join([summary, "", *rows, "", "</details>"])


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return escaped.replace("``", "`")


def made(readme: str) -> str:
    """The README with its printed parts as they are now."""

    def shown_anew(block: re.Match[str]) -> str:
        return f"{block['command']} -->\n```\n{output_of(block['command'])}\n```"

    return FRAMES.sub(lambda _: frames_section(), OUTPUT.sub(shown_anew, readme))


if __name__ == "__main__":
    README.write_text(made(README.read_text()))
