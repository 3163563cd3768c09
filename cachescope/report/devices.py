"""Devices as lines, as JSON and as a card: each with the places that name it, and its datasheet."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cachescope.columns import rows_of
from cachescope.frames.device_rows import DeviceRow, MeasurementRow
from cachescope.json_types import JsonObject
from cachescope.report.as_json import frame_rows
from cachescope.report.html import FAINT_STYLE, STYLE, safe
from cachescope.report.layout import Line
from cachescope.wording import harmless, harmless_line, listed, percent, plural

_CUT: Final = 300
UNITS_OF_TYPE: Final = {"cuda": "SMs", "hip": "compute units", "xpu": "Xe cores", "cpu": "cores"}

_CARD: Final = (
    f"{STYLE}; border: 1px solid var(--jp-border-color2, #d0d0d0); border-radius: 4px; padding: .5em .8em; margin: .4em 0; "
    "overflow-wrap: anywhere"
)
_GRID: Final = "display: grid; grid-template-columns: max-content 1fr; gap: 0 1em; margin: .3em 0"
_RATES: Final = (
    "display: flex; flex-wrap: wrap; gap: .2em 1.4em; margin: .3em 0; font-variant-numeric: tabular-nums"
)


def devices_object(
    devices: pd.DataFrame,
    *,
    measurements: pd.DataFrame | None = None,
    problems: pd.DataFrame | None = None,
    notes: Iterable[str] = (),
) -> JsonObject:
    """The object printed by ``cachescope devices --json``."""
    frames = {"devices": devices, "device_measurements": measurements, "problems": problems}
    found = {name: frame_rows(frame) for name, frame in frames.items() if frame is not None}
    return {**found, "notes": list(notes)}


def device_lines(
    devices: pd.DataFrame, *, measurements: pd.DataFrame | None = None, notes: Iterable[str] = ()
) -> list[Line]:
    """The answer to "which devices were these made for"."""
    rows = rows_of(devices, DeviceRow)
    types = Counter(row.type for row in rows)
    title = plural(len(rows), "device") if rows else "no source names a device"
    if len(types) > 1:
        title += f": {', '.join(f'{count} {kind}' for kind, count in types.items())}"
    lines = [Line(title, style="bold")]
    first_of: dict[str, int] = {}
    for row in rows:
        lines += [Line(), *_device(row), *_datasheet(row, first_of)]
    if measurements is not None:
        lines += [Line(), Line("measured with torch's own benchmarking", style="bold")]
        lines += [_measured(row) for row in rows_of(measurements, MeasurementRow)]
    notes = list(notes)
    return [*lines, *([Line()] if notes else []), *(Line(harmless(note), style="dim") for note in notes)]


def _device(row: DeviceRow) -> Iterator[Line]:
    yield Line(f"{row.device}  {harmless(row.name)[:_CUT]}", right=kind_of_device(row), style="bold", hang=3)
    if facts := ", ".join(text for text, _, _ in _measures(row)):
        yield Line(facts, indent=3)
    yield Line(f"seen in {', '.join(row.seen_in)}{where_seen(row)}", indent=3, hang=3)
    boards = {"uuid": row.uuid, "pci": row.pci}.items()
    if any(name is not None for _, name in boards):
        named = (f"{key} {harmless(name)}" for key, name in boards if name is not None)
        yield Line(", ".join(named), indent=3)
    if properties := json.loads(row.properties):
        text = ", ".join(f"{key} {value}" for key, value in properties.items())
        yield Line(harmless(text)[:_CUT], indent=3, style="dim", rows=2, hang=3)


def kind_of_device(row: DeviceRow) -> str:
    """Its type and architecture, but for what its name says already."""
    said = row.name.split()
    return harmless(", ".join(part for part in (row.type, row.arch) if part and part not in said))[:60]


def _measures(row: DeviceRow) -> Iterator[tuple[str, str, str]]:
    """What is known of its size: as a part of a line, and as the label and the text of a card."""
    if row.memory_bytes is not None:
        memory = f"{row.memory_bytes / (1 << 30):.1f} GiB"
        yield memory, "Memory", memory
    if row.sm_count is not None:
        units = UNITS_OF_TYPE.get(row.type, "units")
        yield f"{row.sm_count} {units}", units[0].upper() + units[1:], f"{row.sm_count:,}"
    if row.l2_bytes is not None:
        cache = f"{row.l2_bytes / (1 << 20):.0f} MiB"
        yield f"L2 {cache}", "L2 cache", cache
    if row.warp_size is not None:
        yield f"warps of {row.warp_size}", "Threads of a warp", str(row.warp_size)


def where_seen(row: DeviceRow) -> str:
    """The runs that name it and its indices there, worded to follow the place."""
    runs = f"; {'run' if len(row.runs) == 1 else 'runs'} {_numbers(row.runs)}" if row.runs else ""
    indices = f"; as {_numbers(row.indices, row.type.replace('hip', 'cuda') + ':')}" if row.indices else ""
    return runs + indices


def _numbers(numbers: tuple[int, ...], prefix: str = "") -> str:
    return listed((f"{prefix}{number}" for number in numbers), 8)


def _datasheet(row: DeviceRow, told_of: dict[str, int]) -> Iterator[Line]:
    """The figures, or why there are none; once for each datasheet."""
    if row.datasheet is None:
        if row.matched_by is not None:
            yield Line(f"no peak rates: {harmless(row.matched_by)[:_CUT]}", indent=3, hang=3)
        return
    first = told_of.setdefault(row.datasheet, row.device)
    if first != row.device:
        yield Line(f"peak rates as of {first}: {row.datasheet}", indent=3, hang=3)
        return
    rates = [f"{dtype} {rate:g}{' TOPS' if unit == 'TOPS' else ''}" for dtype, rate, unit in row.rates]
    bandwidth = f"{row.datasheet_bandwidth_gbs:g} GB/s"
    yield Line(f"peak dense TFLOPS: {', '.join(rates)}; {bandwidth}", indent=3, hang=3)
    yield Line(f"by the datasheet of {row.datasheet} ({harmless(row.matched_by or '')})", indent=3, hang=3)
    if row.datasheet_note is not None:
        yield Line(row.datasheet_note, indent=3, hang=3, style="dim")
    # The address is meant to be copied.
    yield Line(f"   {row.source}", whole=True, style="dim")


def _measured(row: MeasurementRow) -> Line:
    unit = "GB/s" if row.what == "copy" else "TFLOPS"
    peak = f"{percent(row.share)} of {row.datasheet:g}" if row.share is not None else "no datasheet figure"
    return Line(f"{row.index}  {row.what}: {row.measured:.4g} {unit}", indent=3, right=peak)


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
    said = ((safe(label), safe(text[:_CUT])) for label, text in _seen(row))
    facts = "".join(f"<span style='{FAINT_STYLE}'>{label}</span><span>{text}</span>" for label, text in said)
    kind = kind_of_device(row)
    beside = f" <span style='{FAINT_STYLE}'>{safe(kind)}</span>" if kind else ""
    head = f"<div><b>{safe(row.name[:_CUT])}</b>{beside}</div>"
    return f"<div style='{_CARD}'>{head}<div style='{_GRID}'>{facts}</div>{_datasheet_html(row)}</div>"


def _seen(row: DeviceRow) -> Iterator[tuple[str, str]]:
    yield from ((label, text) for _, label, text in _measures(row))
    for label, said in (("Compute capability", row.compute_capability), ("uuid", row.uuid), ("PCI", row.pci)):
        if said is not None:
            yield label, said
    yield "Seen in", f"{', '.join(row.seen_in)}{where_seen(row)}"
    if properties := json.loads(row.properties):
        yield "Also said", ", ".join(f"{key} {value}" for key, value in properties.items())


def _datasheet_html(row: DeviceRow) -> str:
    if row.datasheet is None:
        unmatched = row.matched_by
        return "" if unmatched is None else _faint(f"No datasheet figures: {safe(unmatched[:_CUT])}")
    others = (("bandwidth", row.datasheet_bandwidth_gbs, "GB/s"), ("memory", row.datasheet_memory_gb, "GB"))
    cells = "".join(
        f"<span><span style='{FAINT_STYLE}'>{safe(label)}</span> <b>{number:,g} {unit}</b></span>"
        for label, number, unit in (*row.rates, *others)
        if number is not None
    )
    note = "" if row.datasheet_note is None else _faint(safe(row.datasheet_note))
    return (
        f"<div>Peak dense rates by the datasheet of {safe(row.datasheet)} ({safe((row.matched_by or '')[:_CUT])})</div>"
        f"<div style='{_RATES}'>{cells}</div>{note}{_faint(_source(row.source or ''))}"
    )


def _faint(html: str) -> str:
    return f"<div style='{FAINT_STYLE}'>{html}</div>"


def _source(text: str) -> str:
    """Title and address of a datasheet; the address is a link."""
    found = re.search(r"https://[^\s<>\"']+", text)
    if found is None:
        return safe(text)
    address = safe(found[0])
    link = f"<a href='{address}' target='_blank' rel='noopener noreferrer'>{address}</a>"
    return safe(text[: found.start()]) + link + safe(text[found.end() :])
