"""Make cachescope/catalogue/fields.json: every field of a cache key, read off torch's own sources without importing torch.

A source is a wheel (that of any platform will do), or the folder that torch is installed in::

    pip download --no-deps --only-binary=:all: --platform macosx_14_0_arm64 --python-version 3.12 torch==2.13.0 -d /tmp/wheels
    python tests/data/make_fields.py /tmp/wheels/*.whl

The wheels that cachescope/catalogue/fields.json was made from: 2.4.1, 2.5.1, 2.6.0, 2.7.1, 2.8.0, 2.9.1, 2.10.0, 2.11.0, 2.12.1, 2.13.0,
2.14.1, 2.15.0 (macosx_11_0_arm64 up to 2.11, macosx_14_0_arm64 from 2.12).
"""

import json
from pathlib import Path
from typing import Any

from field_sources.rows import COMMS, INDUCTOR, Row, Rows
from field_sources.sources import numbers, read_sources, write_catalogue

OUTPUT = Path(__file__).parent.parent.parent / "cachescope" / "catalogue" / "fields.json"
OPTION_MODULES = {"inductor_config": INDUCTOR, "inductor_config_comms": COMMS}


def catalogue(places: list[Path]) -> dict[str, Any]:
    """The versions read, and for every field its facts in the first version and what changed in each later one.

    None stands for a version that no longer has the field.
    """
    rows: dict[str, dict[str, Row]] = {}
    for place in places:
        sources = read_sources(place)
        rows[sources.version] = Rows(sources).all()
    versions = sorted(rows, key=numbers)
    names = sorted({name for found in rows.values() for name in found})
    return {
        "versions": versions,
        "fields": {name: _changes(name, [(v, rows[v].get(name)) for v in versions]) for name in names},
    }


def _changes(name: str, history: list[tuple[str, Row | None]]) -> dict[str, Row | None]:
    found: dict[str, Row | None] = {}
    before: Row | None = None
    for version, row in history:
        if row is None and before is not None:
            found[version] = None
        elif row is not None:
            known = before or {}
            changed = {key: value for key, value in row.items() if known.get(key, _absent(key)) != value}
            if changed.get("python_name", "") == _name_of_option(name):
                del changed["python_name"]
            if changed or before is None:
                found[version] = changed
        before = row
    return found


def _absent(key: str) -> Any:
    """What a fact that is not written down is."""
    if key == "in_key":
        return True
    return [] if key in {"environment", "context_forms", "read_by"} else None


def _name_of_option(field: str) -> str | None:
    """The Python name that whoever reads the file can tell from the field."""
    attribute, bracket, rest = field.partition("[")
    return f"{OPTION_MODULES[attribute]}.{rest[:-1]}" if bracket and attribute in OPTION_MODULES else None


def written(found: dict[str, Any]) -> str:
    """One field a line, so that two versions of the file can be compared."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(facts, ensure_ascii=False, separators=(',', ':'))}"
        for name, facts in found["fields"].items()
    ]
    return f'{{"versions": {json.dumps(found["versions"])},\n"fields": {{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    write_catalogue(__doc__, OUTPUT, lambda places: written(catalogue(places)))
