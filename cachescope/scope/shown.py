"""What of a scope is looked at in a notebook; ipywidgets and plotly are loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from cachescope.errors import CachescopeError

if TYPE_CHECKING:
    import pandas as pd

    from cachescope.scope.scope import Scope
    from cachescope.views.explorer import Explorer
    from cachescope.views.what_if import WhatIfView


class Shown:
    """The widgets over a scope."""

    def explore(self) -> Explorer:
        """The explorer: hit rates, lookups, why they missed, what-if, machines and entries, in one widget.

        Returns
        -------
        Explorer
            ``.query`` is a line of Python that gives what it shows, ``.frame()`` that frame.

        Raises
        ------
        CachescopeError
            If what notebooks need is not installed.
        """
        with _needs_widgets():
            from cachescope.views.explorer import Explorer

        return Explorer(cast("Scope", self))

    def what_if_view(self) -> WhatIfView:
        """The toggles of `what_if` as a widget of its own."""
        with _needs_widgets():
            from cachescope.views.what_if import WhatIfView

        return WhatIfView(cast("Scope", self))

    def predictions(self, run: int) -> pd.DataFrame:
        """Whether the process of a run would find each entry that was read; as `cachescope.will_hit` says it.

        Raises
        ------
        NotFoundError
            If there is no such run.
        """
        from cachescope.scope.two_sides import will_hit

        scope = cast("Scope", self)
        return will_hit(scope, scope, run=run)


@contextmanager
def _needs_widgets() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("cachescope"):
            raise
        raise CachescopeError(f"{error.name} is missing: pip install 'cachescope[views]'") from error
