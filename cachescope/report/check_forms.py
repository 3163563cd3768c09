"""A check as lines for the terminal, and in the forms that CI reads: GitHub's annotations, JUnit XML, JSON; all of them agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree

from cachescope.answers import check as answer
from cachescope.answers.recording import Recording
from cachescope.frames.checks import Bar
from cachescope.json_types import JsonObject
from cachescope.report.as_json import hit_rates_object, plain_rows
from cachescope.report.html import Reprs
from cachescope.report.layout import Line, parted
from cachescope.report.page.markdown import markdown_of
from cachescope.wording import and_more, duration, harmless_cut, harmless_line, plural, without_commands

_CAUSES_SHOWN: Final = 20
_TITLES: Final = {
    "min_hit_rate": "hit rate", "max_time_lost": "compile time lost", "no_new_cause": "new causes",
    "base_hit_rate": "hit rate against the base", "base_avoidable": "avoidable against the base",
}  # fmt: skip
_FIRST_LOOKUPS: Final = (
    "First lookups count as misses, whichever run made them: give only the warm run where that one is meant."
)
# The characters of github.com/actions/toolkit, packages/core/src/command.ts, `escapeData` and `escapeProperty`.
_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_DATA, ":": "%3A", ",": "%2C"}


def _wanted_text(bar: Bar) -> str:
    if bar.wanted is None:
        return "no worse than the base"
    if bar.unit == "causes":
        return "none"
    if bar.unit == "share":
        return f"at least {bar.wanted * 100:g} %"
    return f"at most {duration(int(bar.wanted))}"


def _found_amount(bar: Bar, found: float) -> str:
    if bar.unit == "causes":
        return f"{found:g}"
    if bar.unit == "share":
        # Rounded down: a rate below a bar must not look equal to it.
        return f"{math.floor(found * 1000 + 1e-9) / 10:g} %"
    text = duration(int(found))
    too_close = not bar.passed and bar.wanted is not None and text == duration(int(bar.wanted))
    return f"{found / 1e9:.9g} s" if too_close else text


def verdict_line(check: answer.Check) -> str:
    """Passed or not, in one line."""
    failed = sum(not bar.passed for bar in check.bars)
    against = [f"{failed} of {plural(len(check.bars), 'bar')} not met"] if failed else []
    against += [f"{plural(len(check.unread), 'source')} could not be read"] if check.unread else []
    verdict = f"not passed: {', '.join(against)}" if against else "passed"
    return f"check {verdict}; {harmless_line(check.headline)}"


def bar_text(bar: Bar) -> str:
    """One bar in one line."""
    found = bar.reason if bar.found is None else f"found {_found_amount(bar, bar.found)} ({bar.reason})"
    return f"wanted {_wanted_text(bar)}, {found}"


def cause_lines(check: answer.Check, bar: Bar) -> Iterator[str]:
    """The causes that violate a bar, the costliest first."""
    yield from (harmless_cut(check.causes[cause].replace("\n", " ")) for cause in bar.causes[:_CAUSES_SHOWN])
    if len(bar.causes) > _CAUSES_SHOWN:
        yield and_more(len(bar.causes) - _CAUSES_SHOWN, "cause")


def _notes(check: answer.Check) -> list[str]:
    """Notes: how first lookups count, if there are some, and that not everything could be read."""
    return [*([_FIRST_LOOKUPS] if check.is_cold else []), *_problems(check)]


def _problems(check: answer.Check) -> list[str]:
    if not check.problems:
        return []
    records = plural(check.problems, "record")
    return [f"{records} could not be read, and what they held was not checked: cachescope explain shows them"]


def check_lines(check: answer.Check) -> Iterator[Line]:
    """The check for the terminal: the verdict, one line per bar, and the causes below each bar that is not met."""
    yield from (Line(verdict_line(check), style="bold"), Line())
    yield from (Line(harmless_line(text), style="red", hang=10, label="not read") for text in check.unread)
    for bar in check.bars:
        mark, style = ("met", "green") if bar.passed else ("not met", "red")
        yield Line(f"{_TITLES[bar.bar]}: {bar_text(bar)}", style=style, hang=9, label=mark)
        yield from (Line(text, 9) for text in cause_lines(check, bar))
    yield from parted([Line(note, style="dim")] for note in _notes(check))


def markdown_lines(check: answer.Check) -> list[Line]:
    """The check as lines of Markdown, each cause an item of a list."""
    lines = (line for line in check_lines(check) if line.text)
    marks = ((line, f"{line.label}: " if line.label else "- " if line.indent else "") for line in lines)
    return markdown_of(Line(f"{mark}{line.text}") for line, mark in marks)


class Check(Reprs, answer.Check):
    """A check with its reprs."""

    __slots__ = ()

    _blocks = check_lines


def github_lines(check: answer.Check) -> list[str]:
    """The check as workflow commands: an error for each bar that is not met, with its causes below it.

    Nothing else becomes a command: text from a source is escaped inside a command, or within a line.
    """
    lines = [verdict_line(check)]
    lines += [_command("error", "cachescope: source not read", text) for text in check.unread]
    for bar in check.bars:
        if bar.passed:
            lines.append(f"met: {_TITLES[bar.bar]}: {harmless_line(bar_text(bar))}")
            continue
        texts = [bar_text(bar), *cause_lines(check, bar), *([_FIRST_LOOKUPS] if check.is_cold else [])]
        lines.append(_command("error", f"cachescope: {_TITLES[bar.bar]}", *texts))
    return [*lines, *(_command("warning", "cachescope: problems", text) for text in _problems(check))]


def _command(name: str, title: str, *lines: str) -> str:
    text = "\n".join(map(harmless_line, lines))
    return f"::{name} title={_escaped(title, _PROPERTY)}::{_escaped(text, _DATA)}"


def _escaped(text: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(character, character) for character in text)


def junit_text(check: answer.Check) -> str:
    """The check as JUnit XML: one test case per bar, in ASCII, which no encoding can spoil.

    It goes to standard output, where no line may command the CI system that logs it: a character of such a text is
    written as a reference, and a parser reads it unchanged.
    """
    # Characters that XML 1.0 forbids (production 2, Char) are among those that `harmless_cut` makes visible.
    failed = sum(not bar.passed for bar in check.bars)
    tests, errors = len(check.bars) + bool(check.unread), int(bool(check.unread))
    counts = {"tests": str(tests), "failures": str(failed), "errors": str(errors), "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "cachescope", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "cachescope check", **counts, "skipped": "0"})
    for bar in check.bars:
        case = _test_case(suite, bar.bar)
        if not bar.passed:
            _outcome(case, "failure", "bar", bar_text(bar), cause_lines(check, bar))
    if check.unread:
        message = f"{plural(len(check.unread), 'source')} could not be read"
        _outcome(_test_case(suite, "sources"), "error", "source", message, check.unread)
    said = "\n".join([verdict_line(check), *_notes(check)])
    ElementTree.SubElement(suite, "system-out").text = harmless_cut(said)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return without_commands(document.decode("ascii"), lambda character: f"&#{ord(character)};")


def _test_case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    about = {"classname": "cachescope.check", "name": name, "time": "0"}
    return ElementTree.SubElement(suite, "testcase", about)


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, lines: Iterable[str]) -> None:
    outcome = ElementTree.SubElement(case, tag, {"message": harmless_cut(message), "type": kind})
    outcome.text = harmless_cut("\n".join([message, *lines]))


def check_object(check: answer.Check, read: Recording) -> JsonObject:
    """The check for ``--json``."""
    causes = [row for row in read.explained.rows if row.cause in check.causes]
    texts = ({"text": check.causes[row.cause]} for row in causes)
    return {
        "passed": check.passed,
        "unread": list(check.unread),
        "hit_rates": hit_rates_object(read),
        "bars": plain_rows(check.bars),
        "causes": [row | text for row, text in zip(plain_rows(causes), texts, strict=True)],
        "problems": plain_rows(read.tables.problems.rows),
    }
