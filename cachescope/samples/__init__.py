"""Small real recordings that ship with the package; provenance.json beside them says how they were made."""

from __future__ import annotations

from pathlib import Path

from cachescope.errors import NotFoundError

_FOLDER = Path(__file__).parent


def sample_names() -> list[str]:
    """The names of the recordings."""
    return sorted(p.name for p in _FOLDER.iterdir() if p.is_dir() and not p.name.startswith("_"))


def sample(name: str) -> Path:
    """The folder of one recording, to be given to `cachescope.read`.

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
    return _FOLDER / name
