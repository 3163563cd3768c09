"""From a scope to a page: the six questions in the order in which people ask them."""

from __future__ import annotations

from cachescope.answers.read import Read
from cachescope.answers.summary import headline
from cachescope.report.page.compiling import compiles_section, spent_section
from cachescope.report.page.directory import entries_section
from cachescope.report.page.fix_first import causes_section
from cachescope.report.page.machines import contexts_section, devices_section
from cachescope.report.page.outcomes import outcomes_section, time_section
from cachescope.report.page.parts import Page
from cachescope.report.page.reading import reading_section, words_section
from cachescope.report.page.reasons import what_if_section, why_section
from cachescope.version import __version__
from cachescope.wording import file_time, plural


def page_of(scope: Read) -> Page:
    """The report of a scope, as plain data."""
    return Page(
        title="Compile cache report",
        headline=headline(scope),
        about=_about(scope),
        sections=(
            outcomes_section(scope),
            causes_section(scope),
            why_section(scope),
            time_section(scope),
            spent_section(scope),
            compiles_section(scope),
            what_if_section(scope),
            contexts_section(scope),
            devices_section(scope),
            entries_section(scope),
            reading_section(scope),
            words_section(),
        ),
    )


def _about(scope: Read) -> str:
    """When the sources were recorded, and by what; the same for the same data."""
    facts = scope.facts
    times = [row.start_time for row in facts.runs.values() if row.start_time is not None]
    versions = sorted({row.torch_version for row in facts.runs.values() if row.torch_version})
    parts = []
    if times:
        first, last = file_time(min(times)), file_time(max(times))
        parts.append(f"recorded {first}" + (f" to {last}" if last != first else "") + " UTC")
    if versions:
        parts.append(f"torch {', '.join(versions[:4])}")
    parts.append(f"{plural(len(facts.runs), 'run')}, {plural(len(facts.entries), 'entry', 'entries')}")
    return " · ".join([*parts, f"made by cachescope {__version__}"])
