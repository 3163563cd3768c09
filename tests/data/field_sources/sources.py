"""torch's own Python sources, out of a wheel or an installed copy; torch is never imported."""

import argparse
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sources:
    """The Python sources of one torch: path below the packages' folder -> text."""

    texts: dict[str, str]

    @property
    def version(self) -> str:
        """The version without what the build adds (``+cpu``)."""
        found = re.search(r"__version__ = '([\d.]+)", self.texts["torch/version.py"])
        assert found
        return found[1]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def write_catalogue(title: str, output: Path, made: Callable[[list[Path]], str]) -> None:
    """Read the sources named on the command line, and write what is made of them."""
    parser = argparse.ArgumentParser(description=title.partition("\n")[0])
    help_ = "a wheel of torch, or site-packages"
    parser.add_argument("places", nargs="+", type=Path, metavar="SOURCE", help=help_)
    parser.add_argument("--output", type=Path, default=output)
    arguments = parser.parse_args()
    arguments.output.write_text(made(arguments.places), encoding="utf-8")


def read_sources(place: Path) -> Sources:
    """Read what the catalogue needs from a wheel, or from the folder torch is installed in (site-packages)."""
    return Sources(_from_wheel(place) if place.is_file() else _from_folder(place))


def _from_wheel(place: Path) -> dict[str, str]:
    with zipfile.ZipFile(place) as wheel:
        return {name: wheel.read(name).decode() for name in sorted(wheel.namelist()) if _is_wanted(name)}


def _from_folder(place: Path) -> dict[str, str]:
    names = sorted(path.relative_to(place).as_posix() for path in (place / "torch").rglob("*.py"))
    return {name: (place / name).read_text() for name in names if _is_wanted(name)}


def _is_wanted(name: str) -> bool:
    return name.startswith("torch/") and name.endswith(".py") and not name.startswith("torch/testing/")
