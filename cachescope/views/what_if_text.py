"""The result of a replay in numbers and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cachescope.columns import rows_of
from cachescope.frames.replay_rows import WhatIfRate
from cachescope.report.what_if_forms import time_won, what_if_lines
from cachescope.views import html
from cachescope.wording import percent, plural

if TYPE_CHECKING:
    from cachescope.answers.what_if import WhatIf


def answer(found: WhatIf) -> str:
    """Hit rates, keys and groups before and after, then remarks, warnings first."""
    before, after = rows_of(found.rates, WhatIfRate)
    keys, then, groups = key_counts(found.frame)
    cells = [
        (
            "Hit rate by count",
            _moved(before.hit_rate, after.hit_rate),
            f"{before.hits} → {after.hits} of {plural(before.lookups, 'lookup')}",
        ),
        (
            "By compile time",
            _moved(before.time_hit_rate, after.time_hit_rate),
            time_won(before, after),
        ),
        ("Keys", f"{keys} → {then}", f"{plural(groups, 'group')} of keys that become one"),
    ]
    lines = what_if_lines(found) if found.removed else []
    kinds = {"bold red": "warn", "dim": "faint"}
    # The first bold line is the headline, which the numbers show already.
    said = [line for line in lines if line.style != "bold"]
    return html.numbers(cells) + "".join(
        html.paragraph(line.text, kinds.get(line.style, "")) for line in said
    )


def key_counts(frame: pd.DataFrame) -> tuple[int, int, int]:
    """Distinct keys as recorded, distinct what-if keys, and how many of these stand for several."""
    keyed = frame[["cache", "cache_key", "what_if_key"]].dropna().drop_duplicates()
    sizes = keyed.groupby("what_if_key", sort=False).size()
    return len(keyed), len(sizes), int((sizes > 1).sum())


def _moved(before: float | None, after: float | None) -> str:
    one, other = (percent(share, "–") for share in (before, after))
    return one if one == other else f"{one} → {other}"
