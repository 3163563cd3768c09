"""Something that can be set in a program or its environment, and how a user writes it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final, Literal

VARIABLE: Final = "variable"
ATTRIBUTE: Final = "attribute"
OPTION: Final = "option"
CALL: Final = "call"

Kind = Literal["variable", "attribute", "option", "call"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes
    ----------
    kind : {"variable", "attribute", "option", "call"}
        A variable of the environment, an attribute such as an option of torch's config, an option of
        ``torch.compile(options=…)``, or a function to call.
    name : str
        The variable, the dotted name of the attribute or function, or the option.
    value : str or None
        The value of the variable, None to unset it; else a Python literal: of a call, a dictionary of its arguments,
        those without a name under the empty text.
    """

    kind: Kind
    name: str
    value: str | None

    @property
    def code(self) -> str:
        """The line that sets it: for a shell, or in Python."""
        if self.kind == VARIABLE:
            return (
                f"unset {self.name}"
                if self.value is None
                else f"export {self.name}={shlex.quote(self.value)}"
            )
        if self.kind == ATTRIBUTE:
            return f"{self.name} = {self.value}"
        if self.kind == OPTION:
            return f'torch.compile(…, options={{"{self.name}": {self.value}}})'
        return f"{self.name}({self.value})"

    @property
    def where(self) -> str:
        """Where that line belongs."""
        if self.kind == VARIABLE:
            return "in the environment"
        if self.kind == CALL:
            return "at the start, in place of other calls"
        return "where it is compiled" if self.kind == OPTION else "just before the first compile"
