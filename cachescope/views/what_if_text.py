"""The result of a replay in numbers and sentences, and what single fields and causes would save."""

from __future__ import annotations

from typing import Final

import pandas as pd

from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.answers.worklist import Worklist
from cachescope.columns import rows_of
from cachescope.frames.replay_rows import CauseSaving, WhatIfRate
from cachescope.report.what_if_forms import saving_text, time_won, what_if_lines
from cachescope.views import html
from cachescope.views.table import Head, ListedRows, Shown
from cachescope.wording import duration, percent, plural

_WARNING: Final = "bold red"
_BY_CAUSE: Final = (
    Head("cause", "Cause", wide=True),
    Head("time_lost", "Lost", number=True, unit="ns"),
    Head("saves", "Without its fields", wide=True),
    Head("why", "Why the rest stays", wide=True),
)


def numbers(found: WhatIf, chosen: Chosen) -> str:
    """Hit rates, keys and groups of some lookups, before and after."""
    before, after = rows_of(found.rates_of(chosen), WhatIfRate)
    keys, then, groups = key_counts(chosen.rows_of_each(found.frame))
    cells = [
        (
            "Hit rate by count",
            _moved(before.hit_rate, after.hit_rate),
            f"{before.hits:,} → {after.hits:,} of {plural(before.lookups, 'lookup')}",
        ),
        (
            "By compile time",
            _moved(before.time_hit_rate, after.time_hit_rate),
            time_won(before, after),
        ),
        ("Keys", f"{keys:,} → {then:,}", f"{plural(groups, 'group')} of keys that become one"),
    ]
    return html.numbers(cells)


def warnings(found: WhatIf) -> str:
    """That keys would become one which hold different code."""
    said = [line for line in what_if_lines(found) if line.style == _WARNING]
    return "".join(html.paragraph(line.text, "warn") for line in said)


def remarks(found: WhatIf) -> str:
    """What else is to be said of it."""
    # The first bold line is the headline, which the numbers show already.
    lines = what_if_lines(found) if found.removed else []
    said = [line for line in lines if line.style not in ("bold", _WARNING)]
    return "".join(html.paragraph(line.text, "faint" if line.style == "dim" else "") for line in said)


def by_cause(scope: Read) -> ListedRows:
    """What leaving out the changed fields of each cause would do, as the worklist names them; a row is its first root."""
    works = Worklist.of(scope)
    named = {work.cause: work for work in (*works.works, *works.apart)}
    rows = []
    for one in rows_of(scope.cause_savings(), CauseSaving):
        if work := named.get(one.cause):
            lost = None if one.time_lost_ns is None else Shown(duration(one.time_lost_ns), one.time_lost_ns)
            rows.append((work.lookup, [work.title, lost, saving_text(one), one.why or ""]))
    # Without reasons there is room for the rest.
    shown = len(_BY_CAUSE) - (not any(cells[-1] for _, cells in rows))
    return ListedRows(_BY_CAUSE[:shown], [(lookup, cells[:shown]) for lookup, cells in rows])


def key_counts(frame: pd.DataFrame) -> tuple[int, int, int]:
    """Distinct keys as recorded, distinct what-if keys, and how many of these represent several keys."""
    keyed = frame[["cache", "cache_key", "what_if_key"]].dropna().drop_duplicates()
    sizes = keyed.groupby("what_if_key", sort=False).size()
    return len(keyed), len(sizes), int((sizes > 1).sum())


def _moved(before: float | None, after: float | None) -> str:
    one, other = (percent(share, "–") for share in (before, after))
    return one if one == other else f"{one} → {other}"
