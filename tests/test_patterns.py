"""No pattern takes more than a moment over any text: sources are of any size and of anybody's making.

Every pattern of the package is tried by the method that the code calls, on long texts made for it: the beginning of a
text that matches, then one of its own pieces over and over, then what it does not take. One that looks at each place of
such a text more than a few times needs hours.
"""

import ast
import importlib
import re
import re._parser as parser  # type: ignore[import-not-found]
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cachescope

ROOT = Path(cachescope.__file__).parent
SIZE = 50_000
SECONDS = 0.5
METHODS = {"match", "fullmatch", "search", "finditer", "findall", "sub", "split"}
COMMON = (" ", "a", "0", "/", "\n", "[", "(", "'", '"', "{", ".", ",", "-", "\\")
# Texts of these are of torch's or of this package's making, or so short that nothing can take long.
BOUNDED = {
    "analysis.process_values._WORD_BEFORE": "80 characters before a differing piece",
    "catalogue.facts": "torch versions, of the package's own catalogue",
    "keys.device_text._KEYWORD": "an argument of 10,000 characters at most",
    "keys.device_text._NAME": "10,000 characters at most",
    "keys.device_text._NAME_BEFORE_MAJOR": "a text that ends with its bracket matches at the last of its beginnings",
    "keys.device_text._PART": "10,000 characters at most",
    "readers.logs.log_prefix._VARIES": "1,000 bytes of a lead at most",
}


def patterns() -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """Name, method and pattern, of every pattern that a module keeps."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if "re.compile(" not in text:
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = importlib.import_module(f"cachescope.{name.removesuffix('.__init__')}")
        for called in ast.walk(ast.parse(text)):
            if not isinstance(called, ast.Attribute) or called.attr not in METHODS:
                continue
            kept = getattr(module, called.value.id, None) if isinstance(called.value, ast.Name) else None
            if isinstance(kept, re.Pattern):
                yield f"{name}.{called.value.id}", called.attr, kept  # type: ignore[attr-defined]


def pieces(tree: Any) -> Iterator[str]:
    """The texts that a pattern spells out, and one letter of each of its classes."""
    spelt = ""
    for op, value in tree:
        if op.name == "LITERAL":
            spelt += chr(value)
            continue
        if spelt:
            yield spelt
            spelt = ""
        yield from _inside(op.name, value)
    if spelt:
        yield spelt


def _inside(op: str, value: Any) -> Iterator[str]:
    if op.endswith("_REPEAT"):
        yield from pieces(value[2])
    elif op in ("SUBPATTERN", "ATOMIC_GROUP"):
        yield from pieces(value[3] if op == "SUBPATTERN" else value)
    elif op == "BRANCH":
        for branch in value[1]:
            yield from pieces(branch)
    elif op == "IN":
        yield from (chr(at) for one, at in value if one.name == "LITERAL")
        yield from (chr(at[0]) for one, at in value if one.name == "RANGE")


def example(tree: Any) -> str:
    """A text like those that match."""
    return "".join(_example(op.name, value) for op, value in tree)


def _example(op: str, value: Any) -> str:
    if op == "LITERAL":
        return chr(value)
    if op.endswith("_REPEAT"):
        return example(value[2]) * max(1, min(value[0], 60))
    if op in ("SUBPATTERN", "ATOMIC_GROUP"):
        return example(value[3] if op == "SUBPATTERN" else value)
    if op == "BRANCH":
        return example(value[1][0])
    if op == "IN":
        return next(_inside(op, value), "1" if "DIGIT" in str(value) else "a")
    return "a" if op in ("ANY", "NOT_LITERAL") else ""


def attacks(pattern: re.Pattern[Any]) -> Iterator[str]:
    tree = parser.parse(pattern.pattern, pattern.flags)
    like = example(tree)
    starts = {"", like, *(like[: len(like) * part // 5] for part in range(1, 5))}
    pumps = {*COMMON, *pieces(tree), like} - {""}
    for pump in sorted(pumps | {pump + " " for pump in pumps}):
        for start in sorted(starts):
            yield start + pump * (SIZE // len(pump)) + "\0!"


class TooLongError(Exception):
    pass


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def slow_texts(pattern: re.Pattern[Any], method: str) -> Iterator[str]:
    """How those texts begin for which a pattern needs more than a moment, by the processor's time."""
    before = signal.signal(signal.SIGVTALRM, _too_long)
    try:
        for text in attacks(pattern):
            subject: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                _use(pattern, method, subject)
            except TooLongError:
                yield f"{text[:30]!r}…{text[-30:]!r}"
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def _use(pattern: re.Pattern[Any], method: str, subject: Any) -> None:
    if method == "sub":
        pattern.sub(subject[:0], subject)
    elif method == "finditer":
        for _ in pattern.finditer(subject):
            pass
    else:
        getattr(pattern, method)(subject)


EVERY = {(name, method): pattern for name, method, pattern in patterns()}


def test_the_patterns_are_found() -> None:
    assert len(EVERY) > 100
    assert not [bound for bound in BOUNDED if not any(name.startswith(bound) for name, _ in EVERY)]


@pytest.mark.slow
def test_a_slow_pattern_is_found() -> None:
    assert next(slow_texts(re.compile(r"\s*(?:[\w, ]+ = )?\w+\("), "match"), None) is not None


@pytest.mark.sweep
@pytest.mark.parametrize("share", range(4))
def test_no_pattern_is_slow(share: int) -> None:
    found = {}
    for name, method in sorted(EVERY)[share::4]:
        if not any(name.startswith(bound) for bound in BOUNDED):
            slow = next(slow_texts(EVERY[name, method], method), None)
            if slow is not None:
                found[name, method] = slow
    assert found == {}
