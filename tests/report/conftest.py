"""Reports of the samples, each made once: a page, and the file that was written from it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import cachescope
from cachescope.report.blocks import Page
from cachescope.report.page.file import page_of

PageOf = Callable[[str], Page]
Written = Callable[[str], Path]


@pytest.fixture(scope="session")
def scope_of() -> Callable[[str], cachescope.Scope]:
    """``scope_of(sample)``; nobody changes one."""
    return cache(lambda sample: cachescope.read(cachescope.sample(sample)))


@pytest.fixture(scope="session")
def page(scope_of: Callable[[str], cachescope.Scope]) -> PageOf:
    """``page(sample)``: what its report says."""
    return cache(lambda sample: page_of(scope_of(sample)))


@pytest.fixture(scope="session")
def written(scope_of: Callable[[str], cachescope.Scope], tmp_path_factory: pytest.TempPathFactory) -> Written:
    """``written(sample)``: the file of its report; nobody writes to one."""
    folder = tmp_path_factory.mktemp("reports")
    return cache(lambda sample: scope_of(sample).report(folder / f"{sample}.html"))
