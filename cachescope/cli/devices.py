"""List the devices that keys and kernels were made for, with their datasheets; without PATH, this machine's devices.

PATHs are snapshots (cachescope capture), traces, logs or cache directories. Rates are peak dense rates from the
vendors' datasheets. Each device says how its name was matched to a datasheet; without one, it shows what is known.
"""

from __future__ import annotations

import argparse

from cachescope.cli.arguments import add_output_arguments, add_reading_arguments
from cachescope.cli.output import redaction_of, write_json, write_lines
from cachescope.errors import NotFoundError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a snapshot, or what explain reads")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure copy bandwidth and matmul rates of this machine's GPUs with torch's own benchmarking",
    )
    add_reading_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Read or ask, and print."""
    if args.paths and args.measure:
        raise NotFoundError("--measure is for this machine: leave PATH out")
    return _of_sources(args) if args.paths else _of_this_machine(args)


def _of_sources(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given
    from cachescope.report.devices import device_lines, devices_object

    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(devices_object(scope.devices, problems=scope.problems), redaction)
    else:
        write_lines(device_lines(scope.devices), redaction)
    return 0


def _of_this_machine(args: argparse.Namespace) -> int:
    from cachescope.devices.live import measurements_frame, this_machine
    from cachescope.report.devices import device_lines, devices_object

    measurements = measurements_frame() if args.measure else None
    machine = this_machine()
    redaction = redaction_of(args)
    if args.json:
        shown = devices_object(machine.devices, measurements=measurements, notes=machine.notes)
        write_json(shown, redaction)
    else:
        write_lines(device_lines(machine.devices, measurements=measurements, notes=machine.notes), redaction)
    return 0
