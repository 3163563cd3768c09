"""What `cachescope devices` runs."""

from __future__ import annotations

import argparse

from cachescope.cli.hiding import redaction_of
from cachescope.cli.output import write_json, write_lines
from cachescope.cli.sources import read_given
from cachescope.devices.live import measurements_frame, this_machine
from cachescope.errors import NotFoundError
from cachescope.report.devices import device_lines, devices_object


def run(args: argparse.Namespace) -> int:
    """Read or ask, and print."""
    if args.paths and args.measure:
        raise NotFoundError("--measure is for this machine: leave PATH out")
    return _of_sources(args) if args.paths else _of_this_machine(args)


def _of_sources(args: argparse.Namespace) -> int:
    scope = read_given(args, args.paths)
    redaction = redaction_of(args, scope, args.paths)
    if args.json:
        write_json(devices_object(scope.devices, problems=scope.problems), redaction)
    else:
        write_lines(device_lines(scope.devices), redaction)
    return 0


def _of_this_machine(args: argparse.Namespace) -> int:
    measurements = measurements_frame() if args.measure else None
    machine = this_machine()
    redaction = redaction_of(args)
    if args.json:
        shown = devices_object(machine.devices, measurements=measurements, notes=machine.notes)
        write_json(shown, redaction)
    else:
        write_lines(device_lines(machine.devices, measurements=measurements, notes=machine.notes), redaction)
    return 0
