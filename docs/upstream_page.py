"""The page for torch's developers: the programs of docs/upstream, each with what it printed.

``python docs/upstream_page.py [NAME …]`` runs them with the torch that is installed, and writes what they print; `tests/docs/test_upstream.py` runs
them again. A program is its own description: a title, what is wrong, what is expected, and where it is known.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "upstream"
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from markup import page  # noqa: E402 - found by the line above

from cachescope.catalogue.defects import all_defects, releases_read  # noqa: E402


@dataclass(frozen=True)
class Fault:
    """A program, what its docstring says, and what it printed where it was run."""

    name: str
    title: str
    text: str
    facts: dict[str, str]
    code: str
    printed: str | None

    @property
    def releases(self) -> str:
        """The releases that have it, and the threads where it is known."""
        if "Releases" in self.facts:
            return self.facts["Releases"]
        (known,) = (one for one in all_defects() if one.name == self.facts["Known as"])
        mended = f"; mended by {known.mended_by}" if known.mended_by else ""
        last = known.last_version or releases_read()[known.project][1]
        threads = f" ({', '.join(known.threads)})" if known.threads else " (no thread is known)"
        return f"{known.first_version} to {last}{mended}{threads}; a {known.kind}"


def faults() -> list[Fault]:
    """All of them: those that nobody has mended first, and those that were not run last."""
    found = [_fault(path) for path in sorted(FOLDER.glob("*.py"))]
    return sorted(found, key=lambda one: (one.printed is None, "mended by" in one.releases))


def _fault(path: Path) -> Fault:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, *paragraphs = (ast.get_docstring(tree) or "").split("\n\n")
    facts = dict(line.split(": ", 1) for line in paragraphs.pop().splitlines())
    code = "".join(source.splitlines(keepends=True)[tree.body[0].end_lineno :]).strip()
    printed = path.with_suffix(".txt")
    shown = printed.read_text(encoding="utf-8") if printed.exists() else None
    return Fault(path.stem, title.removesuffix("."), "\n\n".join(paragraphs), facts, code, shown)


def run_again(name: str) -> str:
    """The commands that a transcript names, with what each of them prints now; one empty cache directory for all."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    shown = []
    with tempfile.TemporaryDirectory() as place:
        own = ("TORCH", "CACHESCOPE", "PYTHONHASHSEED")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        # The test compiles of vector instructions take longer than all the rest.
        variables = kept | {"PATH": path, "TORCHINDUCTOR_CACHE_DIR": place, "TORCHINDUCTOR_VEC_ISA_OK": "1"}
        for line in lines:
            if line.startswith("$ "):
                done = subprocess.run(
                    ["/bin/sh", "-c", line[2:]], cwd=FOLDER, env=variables, capture_output=True, text=True, check=True, timeout=600
                )  # fmt: skip
                shown += [line, *done.stdout.splitlines()]
    return "\n".join(shown) + "\n"


def upstream_page() -> str:
    """Every fault: the program, what is expected, and what was seen."""
    found = faults()
    ran = [one for one in found if one.printed is not None]
    return page(
        "For torch's developers",
        f"{len(found)} faults and limits of the compile caches of torch and vLLM, each with a program to file it with. {len(ran)} of them show on a "
        "CPU: what stands below a program was printed by torch 2.13.0, and a test runs it again (with `TORCHINDUCTOR_VEC_ISA_OK=1`, which skips test "
        "compiles). The commands of a program share one `TORCHINDUCTOR_CACHE_DIR`, which is empty at first. The programs lie in `docs/upstream`; "
        "all that is known: [Known defects and limits](defects.md).",
        *(part for one in found for part in _parts(one)),
    )


def _parts(fault: Fault) -> Iterator[str]:
    yield f"## {fault.title}"
    if fault.text:
        yield fault.text
    yield f"Releases: {fault.releases}."
    yield f"```python\n# {fault.name}.py\n{fault.code}\n```"
    yield f"**Expected**: {fault.facts['Expected']}"
    if fault.printed is None:
        yield f"**Not run**: {fault.facts['Not run']}"
    else:
        yield f"**Seen**:\n\n```text\n{fault.printed.strip()}\n```"


if __name__ == "__main__":
    for name in sys.argv[1:] or [one.name for one in faults() if one.printed is not None]:
        (FOLDER / f"{name}.txt").write_text(run_again(name), encoding="utf-8")
