"""What is hidden by where it stands: every text column of every frame, and no list of columns has to be complete for it."""

import json

import pytest

from cachescope.catalogue.defects import all_defects, sentence
from cachescope.frames.described import FRAMES
from cachescope.report.redact import Redaction, redact
from cachescope.report.redaction.vocabulary import KEYS, NUMBERS_HIDDEN, WHOLE, vocabulary
from cachescope.rows import columns_of
from tests.redaction.planted import CORPUS, leaks

pytestmark = pytest.mark.slow

TEXTS = sorted(
    {
        column.name
        for kind in FRAMES.values()
        for column in columns_of(kind)
        if column.dtype in ("str", "object")
    }
)


@pytest.mark.parametrize("column", [*TEXTS, "a_column_of_later"])
def test_no_column_shows_a_secret(column: str) -> None:
    redaction = Redaction()
    for planted in CORPUS[::3]:
        if planted.telling != ("max-autotune",) or "=" in planted.text or ":" in planted.text:
            shown = redaction({column: planted.text, "of": [{column: (planted.text,)}], planted.text: 1})
            assert leaks(json.dumps(shown), planted) == [], planted


def test_values_that_are_wholes_are_hidden_as_wholes() -> None:
    for column, kind in WHOLE.items():
        assert redact({column: "data and max"}) == {column: f"<{kind}-1>"}, column
    for column in NUMBERS_HIDDEN:
        assert redact({column: 59, "rank": 59}) == {column: "<bus-1>", "rank": 59}


def test_only_keys_as_torch_makes_them_stay() -> None:
    torchs = "f" + "abc" * 17
    for column in KEYS:
        assert redact({column: torchs}) == {column: torchs}
        for other in ("7f3c" * 10, "7f3c" * 16, "zquill", "data/max"):
            assert redact({column: other}) == {column: "<key-1>"}


def test_the_columns_that_are_named_are_there() -> None:
    of_json = {"paths", "report", "folder", "hostname", "node", "user", "owner", "mail", "email"}
    named = {*WHOLE, *KEYS} - of_json
    assert named - NUMBERS_HIDDEN <= set(TEXTS)


def test_columns_and_words_of_torch_are_known_and_names_of_people_are_not() -> None:
    known = vocabulary()
    assert all(column.name in known.words for kind in FRAMES.values() for column in columns_of(kind))
    people = (
        "ann annabel alice bob carol dave eve mallory john jane smith acme globex hunter2 gpu-box example.com"
    )
    assert [name for name in people.split() if name in known.words or name.capitalize() in known.words] == []
    assert {"epilogue_fusion", "float32", "relu", "inductor_config", "add"} <= known.words
    assert "torch/_inductor/codecache.py" in known.files


def test_what_a_cause_says_of_a_known_defect_is_shown_and_who_reported_one_is_not() -> None:
    for one in all_defects():
        if one.sign is not None:
            assert redact({"advice": sentence(one)}) == {"advice": sentence(one)}
    reported = {
        name for one in all_defects() for thread in one.threads for name in thread.split(" ")[0].split("/")
    }
    assert {"kijai", "ComfyUI-KJNodes", "SkyRL", "unpacked"}.isdisjoint(vocabulary().words)
    assert reported >= {"kijai", "ComfyUI-KJNodes", "SkyRL"}
