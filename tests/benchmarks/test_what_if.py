"""A toggle and a sensitivity over 100,000 lookups of 640 fields, made as the kind "varied" of made_lookups.py says.

So nearly every key is new, 35 fields vary, and what a replay has to hold is as large as it gets. ``CACHESCOPE_LOOKUPS``
names other sizes, ``1000,1000000`` for instance. What they keep in memory is measured by test_judging.py.
"""

import os
import sys

import pytest

from cachescope.scope import Scope

sys.path.insert(0, os.path.dirname(__file__))
from made_lookups import LEAK, made_scope

SIZES = [int(size) for size in os.environ.get("CACHESCOPE_LOOKUPS", "100000").split(",")]


@pytest.fixture(scope="module", params=SIZES)
def scope(request: pytest.FixtureRequest) -> Scope:
    made = made_scope("varied", request.param)
    made.what_if()  # the first makes what all toggles share
    return made


@pytest.mark.benchmark(group="what-if")
@pytest.mark.parametrize("without", [LEAK, "inductor_configs", "gm", "inductor_config[cpp.*]"])
def test_toggle(scope: Scope, without: str, benchmark) -> None:  # type: ignore[no-untyped-def]
    """The rates before and after: what a screen shows."""
    benchmark.extra_info |= {"lookups": len(scope.lookups), "fields": len(scope.replay.table.fields)}
    scope.what_if(without=without)
    rates = benchmark(lambda: scope.what_if(without=without).rates)
    assert rates["lookups"].tolist() == [len(scope.lookups)] * 2


@pytest.mark.benchmark(group="what-if")
def test_sensitivity(scope: Scope, benchmark) -> None:  # type: ignore[no-untyped-def]
    ranking = benchmark.pedantic(scope.sensitivity, rounds=3, warmup_rounds=1)
    assert (LEAK,) in ranking["fields"].tolist()
