"""Only the table of verdicts compares their words: elsewhere a miss is given one, and its kind is asked."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from cachescope.figures.palette import BY_NAME
from cachescope.verdict_kinds import KINDS, VERDICTS, Verdict

PACKAGE = Path(__file__).parent.parent / "cachescope"
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
