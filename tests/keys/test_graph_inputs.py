"""The inputs that the printed code of a graph shows."""

import pytest

from cachescope.keys.printed_values import graph_inputs


@pytest.mark.parametrize(("graph", "wanted"), [
    ("def forward(self, x, y):", 2),
    ("def forward(self, x):", 1),
    ("def forward(self):", 0),
    ("def forward(x, y):", 2),
    ("def forward(self, x: f(a, b), y: 't, u') -> tuple[a, b]:", 2),
    ("def forward(self, x: a[b[c, d], e], y):", 2),
    ('def forward(self, x: "f32[8, 8]", y):', 2),
    ("def forward(self, x, *rest, **more):", 1),
    ("def forward(self, x,):", 1),
    ("text\ndef forward(self, x):\n  y", 1),
    ("  def forward(self, x):", 0),
    ("def forward(self, x, y", 0),
    ("nothing", 0),
])  # fmt: skip
def test_how_many_inputs_a_printed_graph_takes(graph: str, wanted: int) -> None:
    assert len(graph_inputs(graph)) == wanted
