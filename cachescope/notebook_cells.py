"""Cells of notebooks: the names that kernels give to their code, and what is the same of them in every process.

A cell has no file. ipykernel (ipykernel/compiler.py, `get_file_name`) calls it ``/tmp/ipykernel_PID/HASH.py``, IPython
(IPython/core/compilerop.py, `code_name`) ``<ipython-input-N-HASH>``, Colab ``/tmp/ipython-input-HASH.py``, at times with a number before
the hash. The hash is of the text of the cell; the rest of the name is of one process.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

_FOLDER: Final = r"(?:(?:[A-Za-z]:)?[^:\n]*[/\\])?"
_CELL: Final = re.compile(
    rf"{_FOLDER}ipykernel_\d+[/\\](?P<kernel>\d+)\.py"
    rf"|<ipython-input-(?P<number>\d+)-(?P<shell>[0-9a-f]+)>"
    rf"|{_FOLDER}ipython-input-(?:\d+-)?(?P<colab>\d+)\.py"
)


def is_cell(file: str) -> bool:
    """Whether a file is a cell of a notebook."""
    return _may_be_cell(file) and _CELL.fullmatch(file) is not None


def code_file(file: str | None) -> str | None:
    """The file of some code as `of_any_process` has it; None if it is not known."""
    return None if file is None else of_any_process(file)


def is_no_file(file: str | None) -> bool:
    """Whether it is what Python calls code without a file, alike in all programs: ``<string>``, ``<stdin>``, ``<eval_with_key>.0``."""
    return file is not None and file.startswith("<")


def of_any_process(text: str) -> str:
    """A file, or a text that begins with one: the same text in all processes that ran one cell, unchanged where it is no cell.

    >>> of_any_process("/tmp/ipykernel_7/2059220591.py:2: s0 > 10")
    'cell 2059220591:2: s0 > 10'
    >>> of_any_process("/a/model.py:2: s0 > 10")
    '/a/model.py:2: s0 > 10'
    """
    match = _CELL.match(text) if _may_be_cell(text) else None
    return text if match is None else f"cell {_hash(match)}{text[match.end() :]}"


def cell_names(files: Iterable[str]) -> dict[str, str]:
    """What to call those of some files that are cells: ``In [4]`` where that is known and no other of them is, else the hash.

    >>> cell_names(["/tmp/ipykernel_7/2059220591.py", "<ipython-input-4-ff17e79e8559>", "/a/model.py"])
    {'/tmp/ipykernel_7/2059220591.py': 'cell 2059220591', '<ipython-input-4-ff17e79e8559>': 'In [4]'}
    """
    found = {file: match for file in files if _may_be_cell(file) and (match := _CELL.fullmatch(file))}
    numbers_of: dict[str, set[str | None]] = defaultdict(set)
    hashes_of: dict[str | None, set[str]] = defaultdict(set)
    for match in found.values():
        numbers_of[_hash(match)].add(match["number"])
        hashes_of[match["number"]].add(_hash(match))
    names = {}
    for file, match in found.items():
        number, code = match["number"], _hash(match)
        is_one = number is not None and len(numbers_of[code]) == len(hashes_of[number]) == 1
        names[file] = f"In [{number}]" if is_one else f"cell {code}"
    return names


def _may_be_cell(text: str) -> bool:
    """Rules out nearly all at once."""
    return "ipykernel_" in text or "ipython-input-" in text


def _hash(match: re.Match[str]) -> str:
    found = match["kernel"] or match["shell"] or match["colab"]
    assert found is not None
    return found
