"""Scripts of the browser that notebooks and reports share: what shows a table knows neither of them, but a model of its values."""

from __future__ import annotations

from importlib.resources import files


def shared_script(name: str) -> str:
    """The source of one of them."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
