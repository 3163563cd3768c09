"""Lists of components read by comparing bytes say what a JSON parser says, whatever came before them."""

import json
from base64 import b32encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.components import join_components
from cachescope.details import HashDetails
from cachescope.readers.logs import component_lists
from cachescope.readers.logs.component_lists import ComponentLines, ComponentLists

# What could be taken for the end of an element, of the list, or of a line.
_NASTY = st.sampled_from(
    ['", "', '"], "', '\\", "', "\\", '"', "]", ", ", "\n", "\t", '"components": ["', "\x00", "é", "\ud800"]
)
_VALUES = st.lists(_NASTY | st.text(max_size=3), max_size=5).map("".join)
_FIELDS = st.sampled_from([f"inductor_config[{n}]" for n in range(70)] + ["gm", "x[0]"])


def component(field: str, value: str) -> str:
    digest = b32encode(sha256(value.encode("utf-8", "surrogatepass")).digest()).decode().lower()[:51]
    return f"[{digest}] {field}: {value}"


_COMPONENTS = st.builds(component, _FIELDS, _VALUES)
_STEADY = [component(f"inductor_config[{n}]", str(n % 7)) for n in range(70)]


@st.composite
def lists(draw: st.DrawFn) -> list[list[str]]:
    """Some lists that are mostly one list, with elements replaced, put in, taken out, or no hash details at all."""
    drawn = []
    for _ in range(draw(st.integers(1, 5))):
        texts = list(_STEADY[: draw(st.integers(0, len(_STEADY)))])
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(texts)))
            texts[at : at + draw(st.integers(0, 2))] = draw(st.lists(_COMPONENTS | _VALUES, max_size=2))
        drawn.append(texts)
    return drawn


def told(store: HashDetails, set_code: int) -> list[str]:
    return [store.components[code] for code in store.sets[set_code]]


@pytest.mark.slow
@settings(max_examples=25)
@given(drawn=lists(), tail=st.dictionaries(st.text(max_size=4), _VALUES | st.lists(_VALUES), max_size=3))
def test_a_list_is_read_as_the_parser_reads_it_or_declined(
    drawn: list[list[str]], tail: dict[str, object]
) -> None:
    store = HashDetails()
    reader = ComponentLists(store, {})
    for texts in drawn:
        payload = {"key": "f", "components": texts} | {name + "?": value for name, value in tail.items()}
        read = reader.read("f", json.dumps(payload).encode())
        if read is not None:
            rest, set_code = read
            assert told(store, set_code) == texts
            assert rest == {name: value for name, value in payload.items() if name != "components"}


@pytest.mark.slow
@settings(max_examples=25)
@given(drawn=lists())
def test_lists_of_hash_details_are_not_declined(drawn: list[list[str]]) -> None:
    store = HashDetails()
    reader = ComponentLists(store, {})
    for texts in drawn:
        # A quote in a value may look like the end of an element: that list is the parser's.
        plain = [t for t in texts if t.startswith("[") and '"' not in t and "\ud800" not in t]
        read = reader.read("f", json.dumps({"components": plain}).encode())
        assert read is not None or not plain
        assert read is None or told(store, read[1]) == plain


class Asked(dict[bytes, int]):
    """Known components, counting how often one is asked for."""

    count = 0

    def __contains__(self, key: object) -> bool:
        self.count += 1
        return super().__contains__(key)

    def get(self, key: bytes, default: Any = None) -> Any:
        self.count += 1
        return super().get(key, default)


@pytest.mark.parametrize(("at", "asked"), [
    # Of a list that is as the one before nothing is looked up; else one stretch of 32, or the last six.
    ((), 0),
    ((0,), 32),
    ((31,), 32),
    ((40,), 32),
    ((69,), 6),
    ((0, 69), 38),
    ((5, 40), 64),
])  # fmt: skip
def test_only_what_is_new_in_a_list_is_looked_up(at: tuple[int, ...], asked: int) -> None:
    store, known = HashDetails(), Asked()
    reader = ComponentLists(store, known)
    texts = list(_STEADY)
    for number in range(3):
        for place in at:
            texts[place] = component(f"inductor_config[{place}]", f"new {number}")
        known.count = 0
        read = reader.read("f", json.dumps({"components": texts, "key": "f"}).encode())
        assert (read[0], told(store, read[1])) == ({"key": "f"}, texts)
        assert known.count == (asked if number else len(texts))


def test_a_list_that_is_not_the_artifacts_own_is_declined() -> None:
    inner = {"components": [_STEADY[0]]}
    reader = ComponentLists(HashDetails(), {})
    assert reader.read("f", json.dumps({"x": inner, "components": []}).encode()) is None
    assert reader.read("f", json.dumps({"x": inner}).encode()) is None
    assert reader.read("f", json.dumps({"components": [*_STEADY, 1]}).encode()) is None


def test_what_is_cut_or_no_json_is_declined() -> None:
    whole = json.dumps({"components": _STEADY, "cache_state": "miss"}).encode()
    reader = ComponentLists(HashDetails(), {})
    assert reader.read("f", whole) is not None
    for cut in range(0, len(whole), 7):
        assert reader.read("f", whole[:cut]) is None
    assert reader.read("f", whole.replace(b"miss", b'mi"ss')) is None


def test_a_set_has_one_code_whichever_way_it_is_read() -> None:
    store = HashDetails()
    code, _ = store.add(_STEADY)
    read = ComponentLists(store, {}).read("f", json.dumps({"components": _STEADY}).encode())
    assert read is not None and read[1] == code
    assert ComponentLines(store, {}).read([text.encode() for text in _STEADY]) == code


def test_a_line_that_is_known_is_looked_up_once() -> None:
    known = Asked()
    reader = ComponentLines(HashDetails(), known)
    lines = [text.encode() for text in _STEADY]
    # Of a component of several lines no line is known alone: it is looked up as a whole, too.
    several = [*lines, component("gm", "def").encode(), b"    return x"]
    for texts, asked in ((lines, 140), (lines, 70), (lines[::-1], 70), (several, 73), (several, 73)):
        known.count = 0
        assert reader.read(texts) is not None
        assert known.count == asked


def test_not_every_line_of_a_long_log_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_lists, "_MOST_KNOWN", 100)
    store, known = HashDetails(), dict[bytes, int]()
    reader = ComponentLines(store, known)
    for number in range(500):
        text = component("x", str(number))
        code = reader.read([text.encode()])
        assert code is not None
        assert told(store, code) == [text]
    assert len(known) <= 101


@settings(max_examples=25)
@given(drawn=lists())
def test_lines_are_put_together_as_components_are_joined(drawn: list[list[str]]) -> None:
    store = HashDetails()
    reader = ComponentLines(store, {})
    for texts in drawn:
        lines = "\n".join(texts).encode("utf-8", "surrogatepass").split(b"\n") if texts else []
        expected = join_components(line.decode("utf-8", "replace") for line in lines)
        set_code = reader.read(lines)
        if set_code is not None:
            assert told(store, set_code) == expected
        else:
            assert not expected or HashDetails().add(expected)[1]
