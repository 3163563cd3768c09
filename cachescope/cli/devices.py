"""List the devices that keys and kernels were made for, with their datasheets; without PATH, this machine's devices.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. Rates are peak dense rates from the
vendors' datasheets. Each device says how its name was matched to a datasheet; without one, it shows what is known.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer
from cachescope.errors import NotFoundError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "measure copy bandwidth and matmul rates of this machine's GPUs with torch's own benchmarking"
    parser.add_argument("--measure", action="store_true", help=told)
    add_source_arguments(parser, "a snapshot, or what explain reads", nargs="*")


def run(args: argparse.Namespace) -> int:
    if args.paths and args.measure:
        raise NotFoundError("--measure is for this machine: leave PATH out")
    from cachescope.report.as_json import rows_object
    from cachescope.report.devices import device_lines

    measured, notes, more = None, list[str](), {}
    if args.paths:
        from cachescope.cli.sources import read_given

        scope = read_given(args, args.paths)
        devices, more = scope.named_devices.rows, rows_object(problems=scope.tables.problems.rows)
    else:
        from cachescope.devices.live import measurements, this_machine

        devices, notes = this_machine()
        if args.measure:
            measured = measurements()
            more = rows_object(device_measurements=measured)
    return write_answer(
        args,
        lambda: {**rows_object(devices=devices), **more, "notes": notes},
        lambda: device_lines(devices, measurements=measured, notes=notes),
    )
