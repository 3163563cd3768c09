"""The gallery: every figure function, the lines that draw it from a shipped recording, and the figure, light or dark as the page is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from cachescope import figures
from cachescope.figures.palette import in_the_dark
from cachescope.figures.picture import drawing_js

# The last line draws; the lines before it prepare.
EXAMPLES: Final = {
    "causes": ["tour", "figures.causes(scope.causes)"],
    "outcomes": ["tour", "figures.outcomes(scope.lookups, scope.runs)"],
    "trend": ["tour", "figures.trend(scope.trend)"],
    "runs_by_graph": ["tour", "figures.runs_by_graph(scope.lookups, scope.runs)"],
    "timeline": ["tour", "figures.timeline(scope.lookups, scope.runs)"],
    "phases": ["training", "figures.phases(scope.phases, scope.runs)"],
    "compiles": ["tour", "figures.compiles(scope.compiles, scope.runs)"],
    "key_difference": [
        "tour",
        "why = scope.explain()",
        "figures.key_difference(why.frame, scope.hash_details(lookup=why.lookup))",
    ],
    "sensitivity": ["tour", "figures.sensitivity(scope.sensitivity())"],
    "what_if_rates": ["tour", 'figures.what_if_rates(scope.what_if(without="inductor_configs").rates)'],
    "context_sharing": [
        "isolation_context",
        "figures.context_sharing(scope.context_groups(), scope.contexts)",
    ],
    "entry_sizes": ["whole_directory", "figures.entry_sizes(scope.entries)"],
    "entry_ages": ["whole_directory", "figures.entry_ages(scope.entries)"],
    "link_layers": ["triton_kernels", "figures.link_layers(scope.links, scope.entries)"],
    "autotune_margins": ["whole_directory", "figures.autotune_margins(scope.autotune)"],
    "device_rates": ["triton_kernels", "figures.device_rates(scope.devices)"],
}


def code_of(name: str) -> str:
    """The lines that draw a figure."""
    sample, *lines = EXAMPLES[name]
    read = f'scope = cachescope.read(cachescope.sample("{sample}"))'
    return "\n".join(["import cachescope", "from cachescope import figures", "", read, *lines])


def drawn(name: str) -> dict[str, Any]:
    """A figure as plain values, drawn by those lines, and what differs in the dark."""
    *before, last = code_of(name).splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    figure = json.loads(eval(last, names).to_json())
    return {**figure, "dark": list(in_the_dark(figure))}


def write_gallery(made: Path) -> None:
    """The page, the figures beside it as one script each, and what draws them once."""
    (made / "static" / "drawing.js").write_text(drawing_js(), encoding="utf-8")
    parts = [
        "# Gallery",
        "Every function of `cachescope.figures`, with the lines that draw it from a recording that ships with cachescope. "
        "Each takes frames and gives a plotly `Figure`, which you can change or save as any other: "
        "[Draw a figure of your own](../how-to/own-figure.md).",
    ]
    for name in figures.__all__:
        function = getattr(figures, name)
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        figure = drawn(name)
        height = figure["layout"].get("height") or 450
        # As a script, so that the page works when it is opened from a file as well.
        script = f"window.figures = {{...window.figures, {json.dumps(name)}: {json.dumps(figure)}}};\n"
        (made / "static" / f"figure-{name}.js").write_text(script, encoding="utf-8")
        parts += [
            f"## {name}",
            summary,
            f"```python\n{code_of(name)}\n```",
            "```{raw} html\n"
            f'<script src="../_static/figure-{name}.js"></script>\n'
            f'<div class="figure"><div data-figure="{name}" style="min-height: {height}px"></div></div>\n'
            "```",
        ]
    parts.append(
        '```{raw} html\n<script src="../_static/drawing.js"></script>\n<script src="../_static/figures.js"></script>\n```'
    )
    (made / "gallery.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
