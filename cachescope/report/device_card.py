"""One device as a small card: what is known of it, and the figures of its datasheet with their address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cachescope.columns import rows_of
from cachescope.frames.device_rows import RATE_COLUMNS, DeviceRow
from cachescope.report.device_forms import UNITS_OF_TYPE, device_lines, kind_of_device, where_seen
from cachescope.report.html import FAINT_STYLE, STYLE, safe
from cachescope.wording import harmless_line

_CUT: Final = 300
_CARD: Final = (
    f"{STYLE}; border: 1px solid var(--jp-border-color2, #d0d0d0); border-radius: 4px; padding: .5em .8em; margin: .4em 0; "
    "overflow-wrap: anywhere"
)
_GRID: Final = "display: grid; grid-template-columns: max-content 1fr; gap: 0 1em; margin: .3em 0"
_RATES: Final = (
    "display: flex; flex-wrap: wrap; gap: .2em 1.4em; margin: .3em 0; font-variant-numeric: tabular-nums"
)


@dataclass(frozen=True, slots=True, repr=False)
class DeviceCard:
    """One row of the frame devices, for a person.

    Attributes
    ----------
    frame : DataFrame
        The row; see ``describe("devices")``.
    """

    frame: pd.DataFrame

    def __repr__(self) -> str:
        lines = device_lines(self.frame)[2:]
        texts = (" " * line.indent + "  ".join(filter(None, (line.text, line.right))) for line in lines)
        return "\n".join(harmless_line(line, _CUT) for line in texts)

    def _repr_html_(self) -> str:
        (row,) = rows_of(self.frame, DeviceRow)
        return card_html(row)


def card_html(row: DeviceRow) -> str:
    """A device as a card. Unknown values are left out, and so is every figure that no datasheet gives."""
    facts = "".join(
        f"<span style='{FAINT_STYLE}'>{safe(label)}</span><span>{safe(text[:_CUT])}</span>"
        for label, text in _seen(row)
    )
    kind = kind_of_device(row)
    beside = f" <span style='{FAINT_STYLE}'>{safe(kind)}</span>" if kind else ""
    head = f"<div><b>{safe(row.name[:_CUT])}</b>{beside}</div>"
    return f"<div style='{_CARD}'>{head}<div style='{_GRID}'>{facts}</div>{_datasheet(row)}</div>"


def _seen(row: DeviceRow) -> Iterator[tuple[str, str]]:
    if row.memory_bytes is not None:
        yield "Memory", f"{row.memory_bytes / (1 << 30):.1f} GiB"
    if row.sm_count is not None:
        units = UNITS_OF_TYPE.get(row.type, "units")
        yield units[0].upper() + units[1:], f"{row.sm_count:,}"
    if row.l2_bytes is not None:
        yield "L2 cache", f"{row.l2_bytes / (1 << 20):.0f} MiB"
    if row.warp_size is not None:
        yield "Threads of a warp", str(row.warp_size)
    for label, said in (("Compute capability", row.compute_capability), ("uuid", row.uuid), ("PCI", row.pci)):
        if said is not None:
            yield label, said
    yield "Seen in", f"{', '.join(row.seen_in)}{where_seen(row)}"
    if properties := json.loads(row.properties):
        yield "Also said", ", ".join(f"{key} {value}" for key, value in properties.items())


def _datasheet(row: DeviceRow) -> str:
    if row.datasheet is None:
        why = row.matched_by
        return (
            ""
            if why is None
            else f"<div style='{FAINT_STYLE}'>No datasheet figures: {safe(why[:_CUT])}</div>"
        )
    figures = [
        (dtype, f"{rate:,g} {'TOPS' if column.endswith('_tops') else 'TFLOPS'}")
        for dtype, column in RATE_COLUMNS.items()
        if (rate := getattr(row, column)) is not None
    ]
    figures += [
        (label, f"{number:,g} {unit}")
        for label, number, unit in (
            ("bandwidth", row.datasheet_bandwidth_gbs, "GB/s"),
            ("memory", row.datasheet_memory_gb, "GB"),
        )
        if number is not None
    ]
    cells = "".join(
        f"<span><span style='{FAINT_STYLE}'>{safe(label)}</span> <b>{safe(text)}</b></span>"
        for label, text in figures
    )
    note = (
        "" if row.datasheet_note is None else f"<div style='{FAINT_STYLE}'>{safe(row.datasheet_note)}</div>"
    )
    return (
        f"<div>Peak dense rates by the datasheet of {safe(row.datasheet)} ({safe((row.matched_by or '')[:_CUT])})</div>"
        f"<div style='{_RATES}'>{cells}</div>{note}<div style='{FAINT_STYLE}'>{_source(row.source or '')}</div>"
    )


def _source(text: str) -> str:
    """Title and address of a datasheet; the address is a link."""
    found = re.search(r"https://[^\s<>\"']+", text)
    if found is None:
        return safe(text)
    address = safe(found[0])
    link = f"<a href='{address}' target='_blank' rel='noopener noreferrer'>{address}</a>"
    return safe(text[: found.start()]) + link + safe(text[found.end() :])
