"""plotly.js, which draws the figures if there is no kernel."""

from __future__ import annotations

from plotly.offline import get_plotlyjs


def plotly_js() -> str:
    """The source of plotly.js from the installed plotly; about 5 MB."""
    source: str = get_plotlyjs()
    return source
