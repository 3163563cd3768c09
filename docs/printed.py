"""The directive `printed`: a command of cachescope and what it prints, run while the docs are built."""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from outputs import output_of


class Printed(Directive):
    """``{printed} cachescope explain PATH``: the command, and below it what it prints."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"lines": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """One block, as a terminal would show it."""
        (command,) = self.arguments
        text = f"$ {command}\n{output_of(command, self.options.get('lines', ''))}"
        return [nodes.literal_block(text, text, language="text", classes=["printed"])]


def setup(app: Any) -> dict[str, bool]:
    """Register it."""
    app.add_directive("printed", Printed)
    return {"parallel_read_safe": True}
