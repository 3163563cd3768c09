"""The page for torch's developers: every program is complete, and prints with the torch of the tests what the page says."""

import pytest
import upstream_page

FAULTS = upstream_page.faults()
RAN = [one.name for one in FAULTS if one.printed is not None]


def test_every_fault_says_what_is_expected_and_where_it_is_known() -> None:
    page = upstream_page.upstream_page()
    assert len(RAN) >= 8
    for one in FAULTS:
        assert one.facts["Expected"] and one.releases in page and one.code in page
        assert (one.printed is None) == ("Not run" in one.facts)
        assert one.printed is None or ("torch" in one.code and one.printed.strip() in page)


@pytest.mark.sweep
@pytest.mark.torch
@pytest.mark.parametrize("name", RAN)
def test_a_program_prints_what_the_page_says(name: str) -> None:
    """Of caches: what torch itself counted. What helps, where something does, is among the commands."""
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"the page is of torch 2.13, and this is {torch.__version__}")
    if name == "cpu_capability" and torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this CPU has no more vector instructions than any")
    assert upstream_page.run_again(name) == (upstream_page.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
