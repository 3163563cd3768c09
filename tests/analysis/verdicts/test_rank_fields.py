"""Fields that differ by the rank alone: pairs of sets in, worked out by hand."""

import pytest

from cachescope.analysis.verdicts.ranks import all_hold_a_rank
from cachescope.details import HashDetails
from tests.made import component

DEVICE = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='{}'))"
CUDA, CPU = "cuda', index={}", "cpu"

# Fields before and after, the ranks of both, and whether they differ by it.
CASES: dict[str, tuple[dict[str, str], dict[str, str], tuple[int, int], bool]] = {
    "nothing differs": ({"a": "/r0"}, {"a": "/r0"}, (0, 1), False),
    "a path": ({"a": "/r0"}, {"a": "/r1"}, (0, 1), True),
    "a path of other ranks": ({"a": "/r0"}, {"a": "/r1"}, (0, 2), False),
    "a path the other way round": ({"a": "/r0"}, {"a": "/r1"}, (1, 0), False),
    "one rank is not known": ({"a": "/r0"}, {"a": "/r7"}, (0, -1), True),
    "the other rank is not known": ({"a": "/r0"}, {"a": "/r7"}, (-1, 0), True),
    "no rank is known": ({"a": "/r5"}, {"a": "/r3"}, (-1, -1), True),
    "of equal ranks": ({"a": "/r0"}, {"a": "/r1"}, (1, 1), False),
    "two fields": ({"a": "/r0", "b": "x2"}, {"a": "/r1", "b": "x3"}, (0, 1), True),
    "two fields, one by a word": ({"a": "/r0", "b": "x"}, {"a": "/r1", "b": "y"}, (0, 1), False),
    "two fields, one by more": ({"a": "/r0", "b": "x2"}, {"a": "/r1", "b": "x4"}, (0, 1), False),
    "a field that is equal besides": ({"a": "/r0", "b": "x"}, {"a": "/r1", "b": "x"}, (0, 1), True),
    "two numbers by one rank": ({"a": "/r0/5"}, {"a": "/r1/6"}, (0, 1), True),
    "two numbers by two": ({"a": "/r0/5"}, {"a": "/r1/7"}, (-1, -1), True),
    "two numbers, not both by the rank": ({"a": "/r0/5"}, {"a": "/r1/7"}, (0, 1), False),
    "another word beside it": ({"a": "/r0/x"}, {"a": "/r1/y"}, (0, 1), False),
    "a field on one side": ({"a": "/r0"}, {"a": "/r0", "b": "/r1"}, (0, 1), False),
    "a field on the other side": ({"a": "/r0", "b": "/r1"}, {"a": "/r0"}, (0, 1), False),
    "a bare number": ({"a": "0"}, {"a": "1"}, (0, 1), False),
    "a bare number that counts ranks": ({"config[local_rank]": "0"}, {"config[local_rank]": "1"}, (0, 1), True),
    "a bare number that counts ranks otherwise": ({"config[rank]": "0"}, {"config[rank]": "2"}, (0, 1), False),
    "the index of a device": ({"my_device_index": "0"}, {"my_device_index": "1"}, (0, 1), True),
    "a name that only begins so": ({"config[rankings]": "0"}, {"config[rankings]": "1"}, (0, 1), False),
    "the device of an input": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))}, {"example_inputs[0]": DEVICE.format(CUDA.format(5))}, (0, 1), True),
    "another kind of device": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))}, {"example_inputs[0]": DEVICE.format(CPU)}, (0, 1), False),
    "the size of an input": (
        {"example_inputs[0]": DEVICE.format(CPU)}, {"example_inputs[0]": DEVICE.format(CPU).replace("[8]", "[9]")}, (0, 1), False),
    "the size and the device": (
        {"example_inputs[0]": DEVICE.format(CUDA.format(0))},
        {"example_inputs[0]": DEVICE.format(CUDA.format(1)).replace("[8]", "[9]")}, (0, 1), False),
    "the graph": ({"gm": "f(0)"}, {"gm": "f(1)"}, (0, 1), False),
    "bytes": ({"a": "\x000"}, {"a": "\x001"}, (0, 1), False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_whether_keys_differ_by_the_rank_alone(case: str) -> None:
    store = HashDetails()

    def code(fields: dict[str, str]) -> int:
        found, rejected = store.add(component(name, text) for name, text in {"same": "1", **fields}.items())
        assert found is not None and not rejected
        return found

    before, after, ranks, is_by_rank = CASES[case]
    apart = None if -1 in ranks else ranks[1] - ranks[0]
    assert all_hold_a_rank(store, store.changes(code(before), code(after)), apart) is is_by_rank
