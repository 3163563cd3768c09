"""Known defects and limits of the compile caches of torch and vLLM, from their threads and sources; the file is read on first use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from cachescope.catalogue.facts import document, is_version, plain, release
from cachescope.errors import NotFoundError
from cachescope.rows import col, row

if TYPE_CHECKING:
    import pandas as pd

_FILE: Final = "defects.json"


# fmt: off
@row("defects")
class Defect:
    """One known defect or limit of a compile cache."""

    name: str = col("what it is, in a few words")
    kind: str = col("defect: it was mended, or is to be; limit: it is so by design")
    project: str = col("torch or vllm: whose releases are meant")
    caches: tuple[str, ...] = col("the caches that have it")
    meaning: str = col("what goes wrong, and when")
    shows: str = col("how it shows in what is recorded")
    meanwhile: str = col("what to do about it until it is mended")
    basis: str = col("what the facts rest on: tried with a torch, the sources of the releases, or the thread alone")
    first_version: str | None = col("the first release that was read and has it", missing="not established", default=None)
    last_version: str | None = col(
        "the last release that has it", missing="the newest that was read has it", default=None)
    mended_by: str | None = col("the release or change that mends it", missing="none is known", default=None)
    threads: tuple[str, ...] = col("where it was reported or mended", default=())
    sign_in: str | None = col(
        "where its sign stands: bypass, error, or recompile", missing="no sign names it for sure", default=None)
    sign: str | None = col("a regular expression that finds the sign", missing="no sign names it for sure", default=None)
# fmt: on


def defects(version: str | None = None) -> pd.DataFrame:
    """List the known defects and limits of the compile caches of torch and vLLM.

    Parameters
    ----------
    version : str, optional
        A version of torch, like ``torch.__version__``: those that it has. Without it all, vLLM's among them.

    Returns
    -------
    DataFrame
        One row each; ``cachescope.describe("defects")`` explains the columns.

    Raises
    ------
    NotFoundError
        If that version was not read; the message says which were.

    Notes
    -----
    A cause names one of them only where torch's version is known, has it, and its sign was recorded; then it is still inferred.

    Examples
    --------
    >>> import cachescope
    >>> frame = cachescope.defects("2.10.0").set_index("name")
    >>> frame.loc["the dtype of autocast is in no key", "last_version"]
    '2.12'
    """
    from cachescope.columns import frame_of

    if version is not None and not _is_read(version):
        oldest, newest = releases_read()["torch"]
        raise NotFoundError(f"no defects of torch {version}; there are those of {oldest} to {newest}")
    rows = all_defects()
    return frame_of(rows if version is None else [one for one in rows if _has(version, one)], Defect)


def known_defect(version: str | None, signs: Iterable[tuple[str, str]]) -> Defect | None:
    """The first defect of a version of torch of which one of some signs, each with where it stands, was recorded."""
    # Of a release that was not read it is not known what it has.
    if version is None or not _is_read(version) or not (found := list(signs)):
        return None
    for one in all_defects():
        if one.sign is not None and _has(version, one):
            pattern = re.compile(one.sign)
            if any(place == one.sign_in and pattern.search(text) for place, text in found):
                return one
    return None


def sentence(defect: Defect) -> str:
    """What is said of a defect beside a cause."""
    where = f" ({', '.join(defect.threads[:2])})" if defect.threads else ""
    mended = f" Mended by {defect.mended_by}." if defect.mended_by else ""
    return f"This may be a known {defect.kind} of torch{where}: {defect.meaning}{mended} {defect.meanwhile}"


def releases_read() -> dict[str, tuple[str, str]]:
    """The oldest and the newest release whose sources were read, of torch and of vLLM."""
    return {project: (oldest, newest) for project, (oldest, newest) in document(_FILE)["read"].items()}


def _is_read(version: str) -> bool:
    """Whether a release of torch is one of those whose sources were read."""
    oldest, newest = releases_read()["torch"]
    return is_version(version) and release(oldest) <= release(version) <= release(newest)


def _has(version: str, defect: Defect) -> bool:
    """Whether a release of torch that was read has it."""
    own, first, last = release(version), defect.first_version, defect.last_version
    return (
        defect.project == "torch"
        and (first is None or release(first) <= own)
        and (last is None or own <= release(last))
    )


@cache
def all_defects() -> tuple[Defect, ...]:
    """Every known defect and limit, in the order of the file."""
    return tuple(Defect(**plain(one)) for one in document(_FILE)["defects"])
