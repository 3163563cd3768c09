"""The report as one HTML file: six questions, redacted on request, in a document that requests nothing from any network.

Its Content-Security-Policy names the script by its hash: any other script would not run.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final

from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.read import Read
from cachescope.answers.summary import about_text
from cachescope.errors import CachescopeError, telling
from cachescope.figures.picture import drawing_js
from cachescope.report.blocks import Block, Drawing, Page, Replayable, Section, hidden, shortened
from cachescope.report.contexts import contexts_blocks, predictions_group
from cachescope.report.devices import device_blocks
from cachescope.report.entries import every_file_blocks
from cachescope.report.html import blocks_html, heading_html, json_html, safe
from cachescope.report.page.replay import replay_html
from cachescope.report.page.sections import (
    WORDS,
    causes_blocks,
    rates_blocks,
    reading_blocks,
    spent_blocks,
    what_if_blocks,
    when_blocks,
    why_blocks,
)
from cachescope.report.scripts import shared_script
from cachescope.report.subjects import SUBJECTS, told
from cachescope.whole_file import write_whole
from cachescope.wording import harmless

_SCRIPTS: Final = ("wording.js", "replay.js")
# What notebooks and reports share, and what uses it.
_SHARED: Final = ("make.js", "tree.js")
_USES: Final = ("page.js", "toggles.js")


_Told = tuple[str, str, Callable[[Read], Iterable[Block]], str]
# The sections in order, those of the subjects after the first: anchor, heading, blocks, and a description.
_OF_LOOKUPS: Final[tuple[_Told, ...]] = (
    ("causes", "What should be fixed first?", causes_blocks,
     ""),
    ("hits", "Did it hit?", rates_blocks,
     "A lookup is one attempt of torch.compile to find one key in one cache. The hit rate is given by count, and by"
     " compile time: the share of it that hits saved."),
    ("why", "Why did each one miss?", why_blocks,
     "Each lookup with its reason, and which earlier one it was held against; the cards above have what changed, from what"
     " to what. Hashes are compared, never texts."),
    ("time", "When and where did it miss?", when_blocks,
     "Every lookup at its time, with the compile that followed where it did not hit; then each run beside each graph,"
     " which shows whether one graph misses everywhere or one run misses everything."),
    ("spent", "Where did the time go?", spent_blocks,
     "Self times of what torch does, by the events of its traces: each moment counts once. What no event covers is a phase"
     " of its own; what a program does besides compiling is in none."),
)  # fmt: skip
_FURTHER: Final[tuple[_Told, ...]] = (
    ("what-if", "What if a field did not count?", what_if_blocks,
     "All lookups in torch's caches are replayed, in time order, as if a field were not in the key."),
    ("machines", "Would a cache made there be used here?",
     lambda scope: (*contexts_blocks(scope), predictions_group(scope)),
     "torch keys a process by its context: eight forms, from its configs to its accelerator. Two processes share a cache"
     " if their contexts are equal in the forms that count. A recorded run shows only what its hash details prove."),
    ("devices", "Which device was each key made for?",
     lambda scope: device_blocks(scope.named_devices.rows),
     "Every device that a key, an entry or a snapshot names, with the peak dense rates of the vendor's"
     " datasheet, and how the name was matched to it; a device without a datasheet gets no number."),
    ("entries", "What is in the cache directory?", every_file_blocks,
     "Every file that torch would call an entry: how big and how old it is, whether it can be loaded, what it belongs to,"
     " and what could be deleted without a later process noticing. cachescope itself removes nothing."),
    ("read", "What was read, and what could not be?", reading_blocks,
     "The processes and files from which this page was made. Damage is listed, and everything else was read;"
     " nothing was unpickled, run, or written to a cache."),
    ("words", "Words", lambda scope: (WORDS,),
     "In torch's own spelling, so that its sources and logs can be searched for them."),
)  # fmt: skip
# The number of rows in each list of a subject.
_LISTED: Final = 100
# The characters of a value that a page keeps: there may be hundreds of values.
_LONGEST: Final = 2000


def page_of(scope: Read) -> Page:
    """The report of a scope, as plain data."""
    told_of: Iterable[_Told] = (
        (name, one.question, partial(told(name).blocks, most=_LISTED, where=f"scope.{name}"), one.about)
        for name, one in SUBJECTS.items()
    )
    sections = (
        Section(anchor, title, sentence, tuple(blocks(scope)))
        for anchor, title, blocks, sentence in (*_OF_LOOKUPS, *told_of, *_FURTHER)
    )
    answered = tuple(one for one in sections if one.blocks)
    said = headline(Chosen(scope))
    return Page("Compile cache report", said, about_text(scope, said), answered)


def page_script() -> tuple[str, str]:
    """The script of every report, and the source by which a Content-Security-Policy allows it."""
    page = "".join([*map(shared_script, _SHARED), *map(_file, _USES)])
    script = "".join([drawing_js(), *map(_file, _SCRIPTS), f"(() => {{\n{page}}})();\n"])
    # As an HTML parser reads it, which is what the hash is compared with.
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    return script, f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def document(page: Page) -> str:
    """The page as one HTML document."""
    style = shared_script("tree.css") + _file("page.css")
    script, allowed = page_script()
    # The marks of a figure carry their colours.
    allows = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'"
    policy = f"{allows}; base-uri 'none'; form-action 'none'"
    drawings: list[Drawing] = []
    # Markup is escaped when a text is inserted. Here are characters that no browser shows.
    body = harmless("".join(_section(section, page, drawings) for section in page.sections))
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'><meta name='referrer' content='no-referrer'>"
        f"<title>{safe(page.title)}: {safe(page.headline)}</title>\n<style>{style}</style></head>\n"
        f"<body><a class='skip' href='#causes'>Skip to the answer</a>\n<header><h1>{safe(page.title)}</h1>"
        f"<p class='headline'>{safe(page.headline)}</p><p class='cs-faint'>{safe(shortened(page.about, 400))}</p></header>\n"
        f"<div class='columns'>{_contents(page.sections)}<main>{body}</main></div>\n"
        "<noscript><p class='warn'>Without JavaScript the figures are not drawn; the tables have it all.</p></noscript>\n"
        f"<script type='application/json' id='figures'>{json_html([one.draw(*one.rows).drawn() for one in drawings])}</script>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _section(section: Section, page: Page, drawings: list[Drawing]) -> str:
    """A section with a heading that links can lead to. Its figures are added to those that are written together, in order."""

    def only_here(block: Block) -> str:
        match block:
            case Replayable():
                return replay_html(block)
            case Drawing():
                drawings.append(block)
                name = safe(block.name)
                return f"<figure class='plot' aria-label='{name}'><div></div><figcaption>{name}</figcaption></figure>"
        raise TypeError(block)

    heading = heading_html(2, section.title, section.anchor)
    about = f"<p class='about'>{safe(section.sentence)}</p>" if section.sentence else ""
    content = about + blocks_html(section.blocks, _LONGEST, only_here)
    folded = f"<details><summary>{heading}</summary>{content}</details>"
    shown = heading + content if section is page.sections[0] else folded
    return f"<section aria-labelledby='{safe(section.anchor)}'>{shown}</section>"


def _contents(sections: Iterable[Section]) -> str:
    """The table of contents."""
    names = ((safe(section.anchor), safe(section.title)) for section in sections)
    links = "".join(f"<li><a href='#{anchor}'>{title}</a></li>" for anchor, title in names)
    return f"<nav aria-label='Contents'><ol>{links}</ol></nav>"


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def report(scope: Read, target: Path, *, redact: bool) -> Path:
    """Write the report of a scope; see `Scope.report`."""
    sources = {source for run in scope.facts.runs.values() for source in run.sources}
    refuse(target, sources | {row.root for row in scope.facts.entries.values() if row.root is not None})
    page = page_of(scope)
    if redact:
        from cachescope.report.redact import Redaction, identities

        page = hidden(page, Redaction(identities(scope)))
    return write_report(document(page), target)


def refuse(target: Path, read: Iterable[str]) -> None:
    """Check that a report can be written there before the work is done."""
    if target.is_dir():
        example = f"name a file for the report, such as {target / 'report.html'}"
        raise CachescopeError(f"{target} is a directory: {example}")
    if not target.parent.is_dir():
        raise CachescopeError(f"{target}: there is no directory {target.parent}; make it, or name another")
    place = Path(os.path.realpath(target))
    for source in map(os.path.realpath, read):
        if place == Path(source) or (os.path.isdir(source) and place.is_relative_to(source)):
            raise CachescopeError(f"{target} belongs to what was read: write the report to another place")


def write_report(text: str, target: Path) -> Path:
    """Write a report; an existing file is replaced."""
    with telling(f"{target}: the report cannot be written"):
        # A browser cannot show a file name that is not UTF-8: its bytes become question marks.
        write_whole(target, text.encode("utf-8", "replace"))
    return target
