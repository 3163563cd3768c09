"""Settings read out of pickles that were printed with replacement characters: what is said of one is what was pickled."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys.printed_values import FLAG, NUMBER, shown_settings
from tests.conftest import Recording
from tests.readings import read_once

_TEXTS = st.text(st.characters(codec="ascii"), max_size=12)
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**31), 2**31 - 1), st.floats(), _TEXTS,
    st.lists(_TEXTS, max_size=3),
)  # fmt: skip


def printed(settings: dict[str, object], most: int = 1024) -> str:
    """As torch prints it: decoded with replacement, and cut."""
    text = pickle.dumps(settings, protocol=2).decode(errors="replace")
    return text if len(text) <= most else f"{text[:most]}..."


@given(st.dictionaries(_TEXTS, _VALUES, max_size=40), st.integers(20, 1024))
def test_whatever_is_read_was_pickled(settings: dict[str, object], most: int) -> None:
    for name, text in shown_settings(printed(settings, most)).items():
        value = settings[name]
        if text == FLAG:
            assert isinstance(value, bool)
        elif text == NUMBER:
            assert isinstance(value, int | float)
        else:
            assert text == repr(value)


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    shown_settings(text)
    shown_settings(f"\ufffd\x02}}q\x00({text}")


def test_a_real_config_is_read_up_to_where_torch_cut_it(recording: Recording) -> None:
    scope = read_once(recording("2.13.0", "autograd_config"))
    details = scope.hash_details(lookup=0).set_index("field")
    found = shown_settings(details.loc["autograd_config", "value_text"])
    assert found["enable_remote_autograd_cache"] == "None"
    assert found["functionalize_rng_ops"] == FLAG
    # 1000 has a byte from 128 on.
    assert found["max_dist_from_bw"] == NUMBER
    assert "activation_memory_budget" not in found
