"""Small real recordings that ship with the package; each has a provenance.json on how it was made."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cachescope.errors import NotFoundError, SourceError

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

_FOLDER: Final = Path(__file__).parent
_ARCHIVE: Final = "recording.tar.xz"


def sample_names() -> list[str]:
    """The names of the recordings."""
    return sorted(p.name for p in _FOLDER.iterdir() if p.is_dir() and not p.name.startswith("_"))


def sample(name: str) -> Path:
    """The folder of one recording, to pass to `cachescope.read`.

    Recordings whose files must keep their modification times ship as an archive. Their folder is a temporary
    one, unpacked once and removed when Python ends.

    Raises
    ------
    NotFoundError
        If there is no such recording.

    Examples
    --------
    >>> sample("config_flip").name
    'config_flip'
    """
    if name not in sample_names():
        raise NotFoundError(f"no sample {name!r}; there are {', '.join(sample_names())}")
    folder = _FOLDER / name
    return Path(_unpacked(folder).name, name) if is_packed(name) else folder


def is_packed(name: str) -> bool:
    """Whether a recording ships as an archive."""
    return archive(name).exists()


def archive(name: str) -> Path:
    """The path of the archive of a packed recording."""
    return _FOLDER / name / _ARCHIVE


def refuse_packed(path: str) -> None:
    """Raise `SourceError` on how to read a packed recording if a path is its folder or archive as it ships."""
    place = Path(
        os.path.realpath(path)
    )  # links may lead in a circle, at which Path.resolve raises before 3.13
    folder = place.parent if place.name == _ARCHIVE else place
    if folder.parent == _FOLDER and is_packed(folder.name):
        how = f'cachescope.sample("{folder.name}") unpacks it, and cachescope demo {folder.name} explains it'
        raise SourceError(path, f"this sample ships packed: {how}")


@cache
def _unpacked(folder: Path) -> TemporaryDirectory[str]:
    """Unpack an archive; the function's cache keeps the folder until Python ends."""
    # Help, which names the samples, does not wait for them.
    import tarfile
    from tempfile import TemporaryDirectory

    work = TemporaryDirectory(prefix="cachescope-sample-")
    with tarfile.open(folder / _ARCHIVE) as packed:
        packed.extractall(Path(work.name, folder.name), filter="data")
    return work
