"""What every command prints for every recording, written down, and two such records compared byte by byte.

    python tests/every_output.py record FOLDER [--only PATTERN]    of the cachescope that this Python imports
    python tests/every_output.py compare BEFORE AFTER              lists what differs; exit status 1 if anything does

This is the gate of a change that must not change an answer: record before it and after it, and compare. For another checkout,
set ``PYTHONPATH`` to it. Recordings are unpacked to one fixed place, for their paths are part of what is printed, and the
clock stands still.
"""

import contextlib
import difflib
import fnmatch
import io
import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import cachescope
from cachescope import cli, scope

DATA = Path(__file__).parent / "data"
README = Path(__file__).parent.parent / "README.md"
PLACE = Path("/tmp/cachescope-every-output")
NOON_NS = 1_795_348_800 * 10**9
# A folder under each of these is one recording.
ARCHIVES = (
    "recordings/*/*", "compiles/*", "starts/*", "vllm/*", "sglang/*", "models/*", "preflights/*",
    "directories/*",
)  # fmt: skip
# The context forms that keys carry, a part of all inputs, single fields, and two patterns.
SCHEMAS = (
    "inductor_configs", "torch_determinism_configs", "cuda_matmul_precision_configs", "torch_version_hash",
    "example_inputs[*].device", "example_inputs[*]", "inductor_config[epilogue_fusion]", "gm",
)  # fmt: skip
ALONE = ("explain", "time", "compiles", "contexts", "devices", "what-if", "entries", "check", "audit")
# What the file system, and not the recording, decides; and where a packed sample is unpacked.
UNPACKED = re.compile(r"/tmp/cachescope-\w{8}/")
CHANGED_TIME = re.compile(r'"changed_time": "[^"]*"')


def commands_of(folder: Path) -> list[list[str]]:
    """The commands that are run on one recording."""
    found = [[command, str(folder), *more] for command in ALONE for more in ([], ["--json"])]
    found += [["what-if", str(folder), "--without", schema, "--json"] for schema in SCHEMAS]
    found += [["explain", str(folder), "--redact"], ["explain", str(folder), "--baseline", "nearest"]]
    found += [["report", str(folder), "-o", str(PLACE / f"{os.getpid()}.html")]]
    return found


def printed(arguments: list[str]) -> str:
    """What one command prints, and how it ends."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(arguments)
    text = CHANGED_TIME.sub('"changed_time": "…"', out.getvalue())
    said = UNPACKED.sub("/tmp/unpacked/", f"{text}{err.getvalue()}")
    shown = f"$ cachescope {shlex.join(arguments)}\n{said}exit status {status}\n"
    return shown.replace(f"{os.getpid()}.html", "report.html")


def outputs_of(folder: Path) -> Iterator[str]:
    """What all commands print for one recording."""
    for arguments in commands_of(folder):
        yield printed(arguments)
        if arguments[0] == "report":
            page = Path(arguments[-1])
            if page.exists():
                yield f"{page.read_text()}\n"
                page.unlink()
    explained = printed(["explain", str(folder), "--json"]).partition("\n")[2].rpartition("exit status")[0]
    runs = json.loads(explained)["runs"] if explained.startswith("{") else []
    numbers = [str(run["run"]) for run in runs]
    for before, after in pairwise(numbers[:5]):
        for more in ([], ["--json"]):
            yield printed(["diff", before, after, str(folder), *more])


def one_reading() -> Callable[..., Any]:
    """As `cachescope.scope.read`, but each source is read once: commands share what the first of them read."""
    read, known = scope.read, dict[str, Any]()

    def reading(*given: str, **others: Any) -> Any:
        asked = repr((given, others))
        if asked not in known:
            known.clear()
            known[asked] = read(*given, **others)
        return known[asked]

    return reading


def unpacked(only: str) -> Iterator[Path]:
    """Every recording that a pattern names, and every sample, unpacked."""
    kept = Path(cachescope.__file__).parent / "samples"
    places = {path: Path(path.name) for path in kept.iterdir() if (path / "provenance.json").exists()}
    places = {path: "samples" / name for path, name in places.items()}
    for pattern in ARCHIVES:
        for archive in DATA.glob(f"{pattern}.tar.xz"):
            places[archive] = archive.relative_to(DATA).with_name(archive.name.removesuffix(".tar.xz"))
    for path, place in sorted(places.items()):
        folder = PLACE / place
        if not fnmatch.fnmatch(str(place), only):
            continue
        if not folder.exists():
            # Whoever records at the same time sees a whole recording, or none.
            made = folder.with_name(f"{folder.name}-{os.getpid()}")
            if path.is_dir():
                shutil.copytree(path, made)
            else:
                with tarfile.open(path) as packed:
                    packed.extractall(made, filter="tar")
            with contextlib.suppress(OSError):
                made.rename(folder)
            shutil.rmtree(made, ignore_errors=True)
        yield folder


def write_record(at: tuple[Path, Path]) -> str:
    """Write down what is printed for one recording."""
    folder, record = at
    time.time_ns, time.time = (lambda: NOON_NS), (lambda: NOON_NS / 10**9)
    os.environ["CACHESCOPE_NO_INDEX"] = "1"
    scope.read = one_reading()
    file = record / folder.relative_to(PLACE).with_suffix(folder.suffix + ".txt")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        file.write_text("".join(outputs_of(folder)), errors="surrogateescape")
    except Exception as error:  # What a command lets through is an output too.
        file.write_text(f"{type(error).__name__}: {error}\n")
        return f"{folder}: {type(error).__name__}: {error}"
    return ""


def record_all(record: Path, only: str) -> None:
    """Write down what is printed for every recording, and what the package says of its frames."""
    record.mkdir(parents=True, exist_ok=True)
    frames = cachescope.describe()
    described = [f"{name}\n{cachescope.describe(name).to_csv()}" for name in frames["frame"]]
    words = ("outcomes", "verdicts", "evidence_kinds", "entry_kinds", "audit_rules")
    described += [f"{name}\n{cachescope.describe(name).to_csv()}" for name in words]
    (record / "describe.txt").write_text(frames.to_csv() + "".join(described))
    blocks = re.findall(r"```console\n\$ cachescope ([^\n|>&]*)\n", README.read_text())
    os.chdir(README.parent)
    helps = [[name, "--help"] for name in cli.COMMANDS]
    readme = [shlex.split(block) for block in blocks]
    (record / "readme.txt").write_text("".join(printed(words) for words in [*readme, *helps]))
    with Pool(2) as pool:
        for failed in pool.imap_unordered(write_record, [(folder, record) for folder in unpacked(only)]):
            if failed:
                print(failed)


def compare(before: Path, after: Path) -> int:
    """Print how two records differ."""
    names = sorted({str(path.relative_to(side)) for side in (before, after) for path in side.rglob("*.txt")})
    differing = 0
    for name in names:
        texts = [(side / name).read_text() if (side / name).exists() else "" for side in (before, after)]
        if texts[0] == texts[1]:
            continue
        differing += 1
        if not all(texts):
            print(f"== {name}: only in {before if texts[0] else after}")
            continue
        print(f"== {name}")
        # A page of half a million letters is one line.
        sides = [[line[:300] for line in text.splitlines()] for text in texts]
        for line in list(difflib.unified_diff(*sides, lineterm="", n=0))[:30]:
            print(f"   {line}")
    print(f"{len(names)} outputs, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument(
        "--only", default="*", help="a pattern, such as 'recordings/2.13.0/tour' or 'samples/*'"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    args = parser.parse_args()
    if args.what == "compare":
        sys.exit(compare(args.before, args.after))
    record_all(args.folder.absolute(), args.only)
