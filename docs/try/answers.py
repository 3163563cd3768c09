"""What the page asks of what was dropped; it runs in the worker, on the standard library alone."""

import os
from pathlib import Path

import cachescope
from cachescope.errors import SourceError
from cachescope.readers.reading import WHOLE_SOURCE
from cachescope.report.as_json import explain_object
from cachescope.report.json_text import json_text
from cachescope.report.page.markdown import markdown
from cachescope.report.redact import Redaction, identities


class Answers:
    """What commands would print of some paths."""

    def __init__(self, folder: str, paths: list[str]) -> None:
        os.chdir(folder)
        self._scope = cachescope.read(*paths, index=False)

    def unread(self) -> str:
        """What could not be read, of which a command has a line on standard error."""
        problems = self._scope.tables.problems.rows
        return " ".join(
            str(SourceError(row.source, row.message)) for row in problems if row.where == WHOLE_SOURCE
        )

    def html(self, redact: bool) -> str:
        """The file that `cachescope report` writes."""
        return self._scope.report(Path("/report.html"), redact=redact).read_text(encoding="utf-8")

    def markdown(self, redact: bool) -> str:
        """What `cachescope report --markdown` prints."""
        return markdown(self._scope, redact=redact)

    def json(self, redact: bool) -> str:
        """What `cachescope explain --json` prints."""
        value = {"cachescope": cachescope.__version__, **explain_object(self._scope)}
        return json_text(Redaction(identities(self._scope))(value) if redact else value) + "\n"
