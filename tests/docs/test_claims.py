"""Claims about safety stand on one page, each with the test that holds it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "never.md"
ROW = re.compile(r"^\| (?P<claim>.+) \| (?P<tests>.+) \|$", re.MULTILINE)


def test_every_claim_has_tests_that_are_there() -> None:
    rows = [row for row in ROW.finditer(PAGE.read_text()) if row["tests"] not in ("test", "---")]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", row["tests"])
        assert ", ".join(f"`{path}::{name}`" for path, name in named) == row["tests"], row["claim"]
        for path, name in named:
            nodes = ast.walk(ast.parse((ROOT / path).read_bytes()))
            defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
            assert name in defined, (path, name)
