"""The advice for a key whose fields changed."""

from collections.abc import Sequence

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.verdicts.causes import AdviceFacts, cause_advice


def changes_advice(changes: Sequence[FieldChange]) -> str | None:
    return cause_advice(AdviceFacts("key_changed", changes=tuple(changes)))
