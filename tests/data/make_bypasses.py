"""Make cachescope/catalogue/bypasses.json: every reason for which torch does not cache a graph, read off torch's own sources.

The sources are those of `make_fields.py`, and so are the versions. Meaning and advice are in bypass_sources/known.py; the script stops
at a reason that is not there, and at one that is there and that no version has::

    python tests/data/make_bypasses.py /tmp/wheels/*.whl
"""

import json
from pathlib import Path
from typing import Any

from bypass_sources.known import KNOWN, NO_REASON
from bypass_sources.sites import cacheable_operators, passes_reasons_on, sites
from field_sources.sources import numbers, read_sources, write_catalogue

OUTPUT = Path(__file__).parent.parent.parent / "cachescope" / "catalogue" / "bypasses.json"
_CODECACHE = "torch/_inductor/codecache.py"


def catalogue(places: list[Path]) -> dict[str, Any]:
    """The versions read, the reasons, and which versions cache which higher-order operator."""
    read = sorted(map(read_sources, places), key=lambda sources: numbers(sources.version))
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    operators: dict[str, list[str]] = {}
    for sources in read:
        for site in sites(sources):
            row = rows.setdefault((site.cache, site.message), _row(site.cache, site.message))
            caches = [site.cache]
            if site.file == _CODECACHE and site.message and passes_reasons_on(sources):
                caches.append("aotautograd")
            row["caches"] += [cache for cache in caches if cache not in row["caches"]]
            if sources.version not in row["versions"]:
                row["versions"].append(sources.version)
            place = f"{site.file}: {site.function}"
            if place not in row["raised_in"]:
                row["raised_in"].append(place)
        for name, is_cached in cacheable_operators(sources).items():
            if is_cached:
                operators.setdefault(name, []).append(sources.version)
    if len(read) > 1:
        _check_all_found(rows)
    return {
        "versions": [sources.version for sources in read],
        "operators": dict(sorted(operators.items())),
        "reasons": [rows[key] for key in sorted(rows)],
    }


def _row(cache: str, message: str) -> dict[str, Any]:
    known = KNOWN.get(message.rstrip(".")) if message else NO_REASON.get(cache)
    if known is None:
        raise SystemExit(f"say in bypass_sources/known.py what {message!r} of {cache} means, and what to do")
    return {
        "message": message, "caches": [], "versions": [], "meaning": known.meaning, "advice": known.advice,
        "basis": known.basis, "raised_in": [],
    }  # fmt: skip


def _check_all_found(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    gone = set(KNOWN) - {message.rstrip(".") for _, message in rows}
    if gone:
        raise SystemExit(f"no version has {sorted(gone)}")


def written(found: dict[str, Any]) -> str:
    """One reason a line, so that two versions of the file can be compared."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    reasons = ",\n".join(map(line, found["reasons"]))
    return f'{{"versions": {line(found["versions"])},\n"operators": {line(found["operators"])},\n"reasons": [\n{reasons}\n]}}\n'


if __name__ == "__main__":
    write_catalogue(__doc__, OUTPUT, lambda places: written(catalogue(places)))
