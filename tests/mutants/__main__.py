"""Change the code in one small way after another, and see whether a quick test notices.

``make mutants SEED=1 COUNT=300`` takes that many changes by chance from `cachescope/analysis`, `keys` and `readers`: for one seed the same
ones, whatever is edited elsewhere, so that runs before and after can be compared. Each is made in a process of its own, split off behind the collection of the tests, where the tests run that reach the changed
line: a map of them is made first, and kept until a file changes. What no test noticed is printed; the exit status is 1 where
that is more than a tenth. ``--count 0 --at PATH`` takes every change of one module or folder; ``--again FILE``
only those that an earlier run of the same seed printed as survived.
"""

import argparse
import os
import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path

import pytest

from mutants.changes import Change, changes_of
from mutants.trial import NOT_TRIED, Outcome, Trials

ROOMS = ("cachescope/analysis", "cachescope/keys", "cachescope/readers")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="0 for every one")
    parser.add_argument("--at", action="append", help="a module or a folder; may be given again")
    parser.add_argument("--again", type=Path, help="only those of the sample that stand in what was printed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="of tests for one change, at most")
    args = parser.parse_args()
    os.environ["CACHESCOPE_NO_INDEX"] = "1"
    rooms = [Path(room) for room in args.at or ROOMS]
    modules = sorted(path for room in rooms for path in ([room] if room.is_file() else room.rglob("*.py")))
    every = [change for path in modules for change in changes_of(path)]
    sample = sampled(every, args.seed, args.count or len(every))
    if args.again is not None:
        printed = args.again.read_text(encoding="utf-8")
        sample = [change for change in sample if str(change) in printed]
    count = len(sample)
    print(f"{count} of {len(every)} changes of {len(modules)} modules, seed {args.seed}", flush=True)
    trials = Trials(sample, args.jobs, args.seconds)
    quick = ["-m", "not slow", "--doctest-modules", "--benchmark-disable", "cachescope", "tests"]
    pytest.main(["-q", "-s", "-p", "no:nbval", "-p", "no:randomly", *quick], plugins=[trials])
    return print_outcomes(trials.outcomes, count)


def sampled(every: list[Change], seed: int, count: int) -> list[Change]:
    """So many of the changes, in the order of the code.

    Each change draws its own number, from the seed and what it says: another line in the package moves no other change in or out.
    """
    drawn: list[tuple[bytes, Change]] = []
    seen: Counter[str] = Counter()
    for change in every:
        text = f"{change.path} {change.function} {change.before} {change.after}"
        drawn.append((blake2b(f"{seed} {seen[text]} {text}".encode()).digest(), change))
        seen[text] += 1
    chosen = sorted(drawn, key=lambda one: one[0])[:count]
    return sorted((change for _, change in chosen), key=lambda one: (one.path, one.line))


def print_outcomes(outcomes: list[Outcome], count: int) -> int:
    """Print what survived, and of how many."""
    tried = sum(outcome.word != NOT_TRIED for outcome in outcomes)
    if tried < count:
        print(f"only {tried} of {count} were tried")
        return 2
    for outcome in sorted(outcomes, key=lambda one: (one.change.path, one.change.line)):
        if outcome.survived:
            print(f"{outcome.change}   ({outcome.ran} tests)")
    words = Counter(outcome.word for outcome in outcomes)
    died = sum(not outcome.survived for outcome in outcomes)
    print(f"{died} of {count} died, {died / count:.1%}: " + ", ".join(f"{n} {w}" for w, n in words.items()))
    return int(died < 0.9 * count)


if __name__ == "__main__":
    sys.exit(main())
