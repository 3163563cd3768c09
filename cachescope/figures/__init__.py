"""Pictures of the frames: each function takes frames and gives a plotly Figure, keeps no state and computes no answer.

Colour-blind people can distinguish the colours, an outcome always has the same one, and texts from logs are harmless.
``dark=True`` is for a dark page; the background is the page's own.
"""

from cachescope.figures import (
    autotuning,
    compile_time,
    context_grid,
    datasheets,
    entry_files,
    graph_grid,
    key_strip,
    over_time,
    ranking,
    rates,
)
from cachescope.figures.picture import as_plotly

__all__ = [
    "autotune_margins", "causes", "compiles", "context_sharing", "device_rates", "entry_ages", "entry_sizes", "key_difference",
    "link_layers", "outcomes", "phases", "runs_by_graph", "sensitivity", "timeline", "trend", "what_if_rates",
]  # fmt: skip

autotune_margins = as_plotly(autotuning.autotune_margins)
causes = as_plotly(ranking.causes)
compiles = as_plotly(compile_time.compiles)
context_sharing = as_plotly(context_grid.context_sharing)
device_rates = as_plotly(datasheets.device_rates)
entry_ages = as_plotly(entry_files.entry_ages)
entry_sizes = as_plotly(entry_files.entry_sizes)
key_difference = as_plotly(key_strip.key_difference)
link_layers = as_plotly(entry_files.link_layers)
outcomes = as_plotly(rates.outcomes)
phases = as_plotly(compile_time.phases)
runs_by_graph = as_plotly(graph_grid.runs_by_graph)
sensitivity = as_plotly(ranking.sensitivity)
timeline = as_plotly(over_time.timeline)
trend = as_plotly(rates.trend)
what_if_rates = as_plotly(rates.what_if_rates)
