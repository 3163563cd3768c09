"""The text of a what-if toggle: what leaving it out saves, why the rest stays, and what would be unsafe."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from cachescope.answers.read import Read
from cachescope.answers.what_if import WhatIf
from cachescope.frames.replay_rows import SensitivityRow
from cachescope.grouping import by_key
from cachescope.keys.isolation import CONTEXT_FORMS
from cachescope.keys.key_fields import form_fields
from cachescope.keys.key_schema import KeySchema
from cachescope.report.what_if_forms import NOTHING_ALONE, cause_lines, saves, time_won, warning_lines


def savings_of(scope: Read, ranking: Sequence[SensitivityRow], varying: Sequence[str]) -> dict[str, str]:
    """What leaving out each form with varying fields, and each varying field, saves by itself."""
    texts = dict.fromkeys(varying, NOTHING_ALONE)
    texts |= {row.fields[0]: saves(row) for row in ranking if len(row.fields) == 1}
    fields_of = by_key((form, name) for name, form in forms_of(varying).items())
    for form, fields in fields_of.items():
        before, after = WhatIf.of(scope, KeySchema(without=(form,))).rate_table.rows
        more = after.hits - before.hits
        if more:
            texts[form] = f"{more:,} would hit, {time_won(before, after)}"
        else:
            # A form with one field that varies does what that field does, after a staggered start too.
            texts[form] = texts[fields[0]] if len(fields) == 1 else NOTHING_ALONE
    return texts


def forms_of(fields: Sequence[str]) -> dict[str, str]:
    """The context form that holds each field, of those that are in one."""
    forms = chain.from_iterable(CONTEXT_FORMS.values())
    return {name: form for form in forms for name in form_fields([form], fields).fields}


def told_alone(scope: Read, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a replay without one form or field says besides its numbers: its warnings, and its causes."""
    found = WhatIf.of(scope, KeySchema(without=(name,)))
    warnings, causes = (tuple(line.text for line in lines(found)) for lines in (warning_lines, cause_lines))
    return warnings, causes
