"""Write cachescope/catalogue/vllm_variables.json: which environment variables vLLM counts in the names of its folders.

    python tests/data/make_vllm_variables.py 0.13.0=FOLDER 0.33.0=FOLDER

Each FOLDER is an unpacked wheel, of which only ``vllm/envs.py`` is read: ``environment_variables`` but for the ``ignored_factors`` of
``compile_factors``, and the variables of Ray that it adds.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TARGET: Final = Path(__file__).parents[2] / "cachescope" / "catalogue" / "vllm_variables.json"


def counted(source: str) -> set[str]:
    """The variables that a release counts."""
    found = dict(_assigned(ast.parse(source)))
    return (found["environment_variables"] - found["ignored_factors"]) | found["ray_noset_env_vars"]


def _assigned(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The texts in each list, set or dict (of that its keys) that is assigned to a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value
            items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", None)
            if isinstance(target, ast.Name) and items is not None:
                yield target.id, {item.value for item in items if isinstance(item, ast.Constant)}


def main() -> None:
    """Read the releases in the order in which they are given, the oldest first."""
    releases: dict[str, list[str]] = {}
    for argument in sys.argv[1:]:
        version, _, folder = argument.partition("=")
        for name in counted((Path(folder) / "vllm" / "envs.py").read_text()):
            releases.setdefault(name, []).append(version)
    versions = [argument.partition("=")[0] for argument in sys.argv[1:]]
    variables = {name: releases[name] for name in sorted(releases)}
    TARGET.write_text(json.dumps({"releases": versions, "counted_by": variables}, indent=0) + "\n")


if __name__ == "__main__":
    main()
