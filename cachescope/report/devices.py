"""Devices: each with the places that name it, and its datasheet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.figures.datasheets import device_rates
from cachescope.frames.device_rows import DeviceRow, MeasurementRow
from cachescope.report.blocks import Block, Drawing
from cachescope.report.html import Reprs
from cachescope.report.layout import Line, parted, rest
from cachescope.table import Table, copied
from cachescope.wording import listed, numbered, percent, plural

_CUT: Final = 300
_SHOWN: Final = 20
UNITS_OF_TYPE: Final = {"cuda": "SMs", "hip": "compute units", "xpu": "Xe cores", "cpu": "cores"}


def device_lines(
    rows: Sequence[DeviceRow],
    *,
    measurements: Iterable[MeasurementRow] | None = None,
    notes: Iterable[str] = (),
) -> list[Line]:
    """The answer to "Which devices were these made for?"."""
    types = Counter(row.type for row in rows)
    title = plural(len(rows), "device") if rows else "no source names a device"
    if len(types) > 1:
        title += f": {', '.join(f'{count} {kind}' for kind, count in types.items())}"
    first_of: dict[str, int] = {}
    parts = [[*_device(row), *_datasheet(row, first_of)] for row in rows]
    if measurements is not None:
        heading = Line("measured with torch's own benchmarking", style="bold")
        parts.append([heading, *map(_measured, measurements)])
    parts.append([Line(note, style="dim") for note in notes])
    return [Line(title, style="bold"), *parted(parts)]


def device_blocks(rows: Sequence[DeviceRow]) -> Iterator[Block]:
    """The same for the first of many, with a picture of their datasheets."""
    if any(row.datasheet is not None for row in rows):
        yield Drawing("Devices and their datasheets", device_rates, (rows,))
    yield from device_lines(rows[:_SHOWN])
    yield from rest(len(rows) - _SHOWN, "device", "scope.devices has all", 0)


def _device(row: DeviceRow) -> Iterator[Line]:
    yield Line(f"{row.device}  {row.name[:_CUT]}", right=_kind_of(row), style="bold", hang=3)
    if facts := ", ".join(_measures(row)):
        yield Line(facts, indent=3)
    yield Line(f"seen in {', '.join(row.seen_in)}{_where_seen(row)}", indent=3, hang=3)
    boards = [f"{key} {name}" for key, name in (("uuid", row.uuid), ("pci", row.pci)) if name is not None]
    if boards:
        yield Line(", ".join(boards), indent=3)
    if properties := json.loads(row.properties):
        text = ", ".join(f"{key} {value}" for key, value in properties.items())
        yield Line(text[:_CUT], indent=3, style="dim", rows=2, hang=3)


def _kind_of(row: DeviceRow) -> str:
    """Its type and architecture, without what its name already says."""
    said = row.name.split()
    return ", ".join(part for part in (row.type, row.arch) if part and part not in said)[:60]


def _measures(row: DeviceRow) -> Iterator[str]:
    """Its size, as far as known."""
    if row.memory_bytes is not None:
        yield f"{row.memory_bytes / (1 << 30):.1f} GiB"
    if row.sm_count is not None:
        yield f"{row.sm_count} {UNITS_OF_TYPE.get(row.type, 'units')}"
    if row.l2_bytes is not None:
        yield f"L2 {row.l2_bytes / (1 << 20):.0f} MiB"
    if row.warp_size is not None:
        yield f"warps of {row.warp_size}"


def _where_seen(row: DeviceRow) -> str:
    """The runs that name it and its indices there, as words that follow the place."""
    runs = f"; {numbered('run', row.runs)}" if row.runs else ""
    named = listed((f"{row.type.replace('hip', 'cuda')}:{index}" for index in row.indices), 8)
    return runs + (f"; as {named}" if named else "")


def _datasheet(row: DeviceRow, told_of: dict[str, int]) -> Iterator[Line]:
    """The figures, or why there are none; once for each datasheet."""
    if row.datasheet is None:
        if row.matched_by is not None:
            yield Line(f"no peak rates: {row.matched_by[:_CUT]}", indent=3, hang=3)
        return
    first = told_of.setdefault(row.datasheet, row.device)
    if first != row.device:
        yield Line(f"peak rates as of {first}: {row.datasheet}", indent=3, hang=3)
        return
    rates = [f"{dtype} {rate:g}{' TOPS' if unit == 'TOPS' else ''}" for dtype, rate, unit in row.rates]
    memory = "" if row.datasheet_memory_gb is None else f", {row.datasheet_memory_gb:g} GB"
    text = f"peak dense TFLOPS: {', '.join(rates)}; {row.datasheet_bandwidth_gbs:g} GB/s{memory}"
    yield Line(text, indent=3, hang=3)
    yield Line(f"by the datasheet of {row.datasheet} ({row.matched_by or ''})", indent=3, hang=3)
    if row.datasheet_note is not None:
        yield Line(row.datasheet_note, indent=3, hang=3, style="dim")
    # The address is meant to be copied.
    yield Line(row.source or "", indent=3, whole=True, style="dim underline")


def _measured(row: MeasurementRow) -> Line:
    unit = "GB/s" if row.what == "copy" else "TFLOPS"
    peak = f"{percent(row.share)} of {row.datasheet:g}" if row.share is not None else "no datasheet figure"
    return Line(f"{row.index}  {row.what}: {row.measured:.4g} {unit}", indent=3, right=peak)


@dataclass(frozen=True, slots=True, repr=False)
class DeviceCard(Reprs):
    """One row of the frame devices, for a person.

    Attributes
    ----------
    row : DeviceRow
        The row; see ``describe("devices")``.
    """

    row: DeviceRow

    frame = copied(lambda one: Table(DeviceRow, [one.row]), "The row as a frame.")

    def _blocks(self) -> list[Line]:
        return device_lines([self.row])[2:]
