"""The checker of declared JSON: what it refuses is what a library refuses, and it says where and why in one sentence."""

import json
import random
from typing import Any

import pytest

from cachescope.checked_json import WrongValueError, check_of
from cachescope.locking.lock import SCHEMA
from tests.locking.test_lock_text import ODD, places

FILE = {
    "path": "a/b", "kind": "fxgraph", "size": 1, "sha256": "0" * 64, "key": "f1", "context": 0, "needs": ["f2"],
}  # fmt: skip
MACHINE = [
    "torch_version", "torch_key", "cuda", "hip", "triton_version", "triton_key", "devices", "cpu_features",
]  # fmt: skip
LOCK = {
    "cachescope_lock": 1, "cachescope": "0.1",
    "machine": {"python_version": "3.12", "architecture": "x86_64", **dict.fromkeys(MACHINE)},
    "variables": {"X": {"value": None, "fields": {"f": ["switch", None]}}},
    "contexts": [{"like": None, "without": [], "fields": {"f": ["a" * 51, "x"]}}],
    "processes": [{"torch_version": "2.13.0", "python_version": None, "rank": 3}], "files": [FILE],
    "links": {"l": ".", "m": "a/b"}, "expected": [{"cache": "fxgraph", "key": "f1"}],
}  # fmt: skip


@pytest.mark.slow
def test_it_refuses_what_a_library_refuses() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    check, validator = check_of(schema), jsonschema.Draft202012Validator(schema)
    check(LOCK)
    chosen, refused = random.Random(2), 0
    for _ in range(1500):
        changed = json.loads(json.dumps(LOCK))
        container, key = chosen.choice(list(places(changed)))
        if isinstance(container, dict) and chosen.random() < 0.2:
            container[chosen.choice(["odd", "path", "context", "fields"])] = container.pop(key)
        else:
            container[key] = chosen.choice(ODD)
        try:
            check(changed)
        except WrongValueError:
            refused += 1
            assert not validator.is_valid(changed), changed
        else:
            assert validator.is_valid(changed), changed
    assert 300 < refused < 1500


@pytest.mark.parametrize(("changed", "said"), [
    ({"files": 1}, "files is 1, not a list"),
    ({"files": [FILE, {**FILE, "size": True}]}, "files[1].size is true, not a whole number"),
    ({"files": [{**FILE, "size": -1}]}, "files[0].size is -1, not a number from 0 to 9223372036854775807"),
    ({"files": [{**FILE, "odd": 1}]}, "files[0].odd is not declared"),
    ({"files": [{"path": "a"}]}, "files[0] has no kind"),
    ({"files": [{**FILE, "sha256": "0" * 64 + "\n"}]}, "files[0].sha256 is the text"),
    ({"links": {"l": "../x"}}, "links.l is the text '../x', not a path in a directory"),
    ({"links": {"/l": "."}}, "links./l is the text '/l', not a path in a directory"),
    ({"cachescope": "x" * 30_000}, "cachescope is a text of more than 20000 characters"),
    ({"contexts": [{"like": 1, "without": [], "fields": {}}]}, "contexts[0].like is 1, not 0 or null"),
    ({"variables": {"X": {"value": None, "fields": {"f": ["int"]}}}}, "variables.X.fields.f has 1 items, not 2"),
])  # fmt: skip
def test_it_says_where_and_what(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        check_of(json.loads(SCHEMA.read_text()))({**LOCK, **changed})
    assert str(caught.value).startswith(said)


def test_a_word_that_it_does_not_know_is_no_schema() -> None:
    with pytest.raises(ValueError, match="uniqueItems"):
        check_of({"type": "array", "items": {"type": "array", "uniqueItems": True}})
