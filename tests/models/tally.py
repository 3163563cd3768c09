"""What was held, as text: lookups by session and way, what was told of them, and every fault.

    python -m models.tally FOLDER [NAME ...]

reads sessions that are recorded (from `tests/`, as the tests import it).
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from models.holding import WAYS, Held, hold


def tally(held: Sequence[Held]) -> str:
    lines = [f"{one.session:18} {one.way:6} {one.lookups:5} lookups: {counts(one.told)}" for one in held]
    for way in WAYS:
        mine = [one for one in held if one.way == way]
        told = sum((one.told for one in mine), Counter())
        lines.append(f"{'all sessions':18} {way:6} {sum(told.values()):5} lookups: {counts(told)}")
    replayed = sum((one.replayed for one in held), Counter())
    lines.append(f"misses by one known field, replayed without it: {counts(replayed) or 'none'}")
    faults = Counter(fault.kind for one in held for fault in one.faults)
    lines.append(f"{sum(one.lookups for one in held)} lookups held; faults: {counts(faults) or 'none'}")
    lines += [f"  {one.session}, {one.way}: {fault}" for one in held for fault in one.faults]
    return "\n".join(lines)


def counts(counter: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counter.most_common())


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    folders = [path for path in sorted(folder.iterdir()) if path.name in (names or [path.name])]
    print(tally([hold(path, way) for path in folders if (path / "session.json").exists() for way in WAYS]))


if __name__ == "__main__":
    main()
