"""The names of the package: loaded at their first use, and all of them there."""

import subprocess
import sys

import pytest

import cachescope


@pytest.mark.parametrize("name", cachescope.__all__)
def test_a_public_name_is_there_and_is_what_it_is_called(name: str) -> None:
    assert getattr(getattr(cachescope, name), "__name__", name) == name and name in dir(cachescope)


def test_what_is_no_name_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'cachescope' has no attribute 'raed'"):
        cachescope.raed  # type: ignore[attr-defined]  # noqa: B018 - asked for


@pytest.mark.slow
def test_a_module_of_the_package_is_there_without_an_import_of_its_own() -> None:
    program = "import cachescope; print(cachescope.figures.outcomes.__name__, cachescope.errors.SourceError.__name__)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "outcomes SourceError\n"
