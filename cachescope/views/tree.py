"""The isolation schema as a tree of toggles: sections, context forms, and the fields that carry them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import anywidget
import traitlets

from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.json_types import JsonObject
from cachescope.keys.isolation_schema import CONTEXT_FORMS
from cachescope.keys.key_fields import form_fields
from cachescope.wording import harmless

_HERE: Final = Path(__file__).parent
_SECTIONS: Final = {
    "runtime_context": "Runtime context",
    "compile_context": "Compile context",
}
_REST: Final = "Not in the isolation schema: the graph, its inputs, and the rest of the key"


class Tree(anywidget.AnyWidget):
    """Check boxes for what counts; what does not count is in `off`.

    Parameters
    ----------
    groups : list of dict
        The forms with their fields, from `tree_groups`.
    """

    _esm = _HERE / "tree.js"
    _css = _HERE / "style.css"

    groups: Any = traitlets.List().tag(sync=True)
    off: Any = traitlets.List().tag(sync=True)
    empty = traitlets.Unicode("No hash details were recorded, so no field is known.").tag(sync=True)

    def __init__(self, groups: list[JsonObject]) -> None:
        super().__init__(groups=groups)

    def __repr__(self) -> str:
        return f"Tree({len(self.off)} off)"


def tree_groups(fields: Sequence[str], varying: Iterable[str], safety: SafetyOfFields) -> list[JsonObject]:
    """The forms with the fields that carry them, and the fields that no form carries; varying fields first.

    Parameters
    ----------
    fields : sequence of str
        Every field that some key has.
    varying : iterable of str
        Fields with more than one value.
    safety : SafetyOfFields
        What is known about leaving a field out; shown next to the varying ones.
    """
    if not fields:
        return []
    varies = set(varying)
    groups, taken = [], set()
    for section, forms in CONTEXT_FORMS.items():
        for form in forms:
            carried = form_fields([form], fields)
            mine = sorted((name for name in carried.fields), key=lambda name: (name not in varies, name))
            taken.update(mine)
            groups.append(
                {
                    "name": form,
                    "label": form,
                    "section": _SECTIONS[section],
                    "is_form": True,
                    "note": _form_note(mine, varies, bool(carried.parts)),
                    "fields": [_leaf(name, varies, safety) for name in mine],
                }
            )
    rest = sorted((name for name in fields if name not in taken), key=lambda name: (name not in varies, name))
    leaves = [_leaf(name, varies, safety) for name in rest]
    groups.append({"name": "", "label": "", "section": _REST, "is_form": False, "note": "", "fields": leaves})
    return groups


def _form_note(fields: Sequence[str], varies: set[str], is_part: bool) -> str:
    if not fields:
        return "part of system_info[version]" if is_part else "no field of these keys carries it"
    count = sum(name in varies for name in fields)
    return f"{count} of {len(fields)} fields vary" if count else ""


def _leaf(name: str, varies: set[str], safety: SafetyOfFields) -> JsonObject:
    note = harmless(safety.on([name]).advice) if name in varies else ""
    return {"name": name, "label": harmless(name), "varies": name in varies, "note": note}
