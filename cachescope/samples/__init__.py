"""Small real recordings that ship with the package; each has a provenance.json on how it was made."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cachescope.errors import NotFoundError

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
    folder = shipped(name)
    return Path(_unpacked(folder).name, name) if (folder / _ARCHIVE).exists() else folder


def shipped(name: str) -> Path:
    """The folder of one recording, as it ships; raises `NotFoundError`."""
    if name not in sample_names():
        raise NotFoundError(f"no sample {name!r}; there are {', '.join(sample_names())}")
    return _FOLDER / name


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
