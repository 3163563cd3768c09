"""Pictures of the frames: each function takes frames and gives a plotly Figure, keeps no state and computes no answer.

Colour-blind people can distinguish the colours, an outcome always has the same one, and texts from logs are harmless.
``dark=True`` is for a dark page; the background is the page's own.
"""

from cachescope.figures.ages import entry_ages
from cachescope.figures.compile_bars import compiles
from cachescope.figures.context_grid import context_sharing
from cachescope.figures.datasheets import device_rates
from cachescope.figures.graph_grid import runs_by_graph
from cachescope.figures.key_strip import key_difference
from cachescope.figures.layers import link_layers
from cachescope.figures.margins import autotune_margins
from cachescope.figures.over_time import timeline
from cachescope.figures.ranking import causes, sensitivity
from cachescope.figures.rates import outcomes, what_if_rates
from cachescope.figures.sizes import entry_sizes
from cachescope.figures.spent import phases

__all__ = [
    "autotune_margins",
    "causes",
    "compiles",
    "context_sharing",
    "device_rates",
    "entry_ages",
    "entry_sizes",
    "key_difference",
    "link_layers",
    "outcomes",
    "phases",
    "runs_by_graph",
    "sensitivity",
    "timeline",
    "what_if_rates",
]
