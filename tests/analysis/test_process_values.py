"""Values of one process in two printed values; the texts are made by hand, those of real keys are in `test_real_values.py`."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.differences import FieldChange, field_change, field_changes
from cachescope.analysis.process_values import differs_by
from cachescope.analysis.verdicts.change_advice import process_advice
from cachescope.details import HashDetails
from cachescope.keys.detail_hash import detail_hash
from tests.made import set_of

SECOND = 10**9
BEGAN = 1_763_900_000 * SECOND


@dataclass(frozen=True)
class Process:
    rank: int | None = None
    pid: int | None = None
    start_time: int | None = None
    end_time: int | None = None


ONE = Process(3, 47_110, BEGAN, BEGAN + 60 * SECOND)
OTHER = Process(1, 47_112, BEGAN + 3600 * SECOND, BEGAN + 3660 * SECOND)
ADDRESS = "<__main__.Pass object at 0x7f{}3c0>"
UUID = "{}b7b2f3c-1f0d-4aaa-8bbb-1212ab121212"

# Field, both texts, what is said without and with what is known of both processes.
CASES = [
    # A rank: of both processes and named so; behind such a name; where it is the rank of both.
    ("metadata", "{'rank': '3'}", "{'rank': '1'}", "apparently differs by rank", "differs by rank"),
    ("metadata", "{'rank': 3}", "{'rank': 1}", "apparently differs by rank", "differs by rank"),
    ("x", "model_rank3", "model_rank1", "apparently differs by rank", "differs by rank"),
    ("x", "/out/rank_3/model", "/out/rank_1/model", "apparently differs by rank", "differs by rank"),
    ("x", "--rank 3 --fast", "--rank 1 --fast", "apparently differs by rank", "differs by rank"),
    ("x", "[('rank', 3), ('a', 4)]", "[('rank', 1), ('a', 4)]", "apparently differs by rank", "differs by rank"),
    ("config[rank]", "3", "1", "apparently differs by rank", "differs by rank"),
    ("x", "RANK=3", "RANK=1", "apparently differs by rank", "differs by rank"),
    # There are several local ranks in a job.
    ("x", "local_rank=3", "local_rank=0", "apparently differs by rank", "apparently differs by rank"),
    ("x", "local_rank=-1", "local_rank=0", "apparently differs by rank", "apparently differs by rank"),
    ("x", "tp_rank: 1", "tp_rank: 0", "apparently differs by rank", "apparently differs by rank"),
    ("x", "shard-3", "shard-1", None, "apparently differs by rank"),
    ("x", "/out/3/model", "/out/1/model", "differs by path", "apparently differs by rank"),
    # It is not the rank of these processes, or that of a matrix.
    ("x", "{'rank': 8}", "{'rank': 16}", "apparently differs by rank", None),
    ("x", "{'lora_rank': 8}", "{'lora_rank': 16}", None, None),
    ("x", "lora_rank8", "lora_rank16", None, None),
    ("x", "{'level': 3}", "{'level': 1}", None, None),
    ("config[level]", "3", "1", None, None),
    ("x", "cuda:3", "cuda:1", None, None),
    ("x", "1.3.0", "1.1.0", None, None),
    # Process ids.
    ("cache_key_tag", "job-47110", "job-47112", None, "differs by pid"),
    ("x", "47110", "47112", None, "differs by pid"),
    ("x", "{'pid': 47110}", "{'pid': 47112}", "apparently differs by pid", "differs by pid"),
    ("x", "{'ppid': 9}", "{'ppid': 8}", "apparently differs by pid", "apparently differs by pid"),
    # Times: at which both ran; with a fraction; behind such a name.
    ("x", "1763900001", "1763903601", None, "differs by time"),
    ("x", "1763900001000", "1763903601000", None, "differs by time"),
    ("x", "1763900001.25", "1763903601.5", "apparently differs by time", "differs by time"),
    ("x", "built_at=1663900001", "built_at=1663903601", "apparently differs by time", "apparently differs by time"),
    ("x", "2025-11-23T12:40:40.123", "2025-11-23T12:41:40.9", "differs by time", "differs by time"),
    ("x", "a 2025-11-23 12:40:40 b", "a 2025-11-23 12:41:40 b", "differs by time", "differs by time"),
    ("x", "run_20251123_124040", "run_20251123_124140", "differs by time", "differs by time"),
    ("x", "run-2025-11-23T12-40-40", "run-2025-11-24T12-40-40", "differs by time", "differs by time"),
    ("x", "12345678-123456", "12345679-123456", None, None),
    ("x", "20251123-124040", "20251123-124140", "differs by time", "differs by time"),
    ("x", "1663900001", "1663903601", None, None),
    ("x", "1663900001.25", "1663903601", None, None),
    ("x", "2.13.0.dev20251122", "2.13.0.dev20251123", None, None),
    ("x", "20251123124040", "20251123124140", "differs by time", "differs by time"),
    ("x", "202511231240401", "202511231241401", None, None),
    ("x", "runs/Nov23_12-40-40_a", "runs/Nov23_12-41-40_a", "differs by time", "differs by time"),
    ("x", "Sun Nov 23 12:40:40 2025", "Sun Nov 23 12:41:40 2025", "differs by time", "differs by time"),
    ("x", "{'d': datetime.datetime(2025, 11, 23, 12, 40, 40, 5)}", "{'d': datetime.datetime(2025, 11, 23, 12, 41)}", "differs by time", "differs by time"),
    # Paths.
    ("x", "/tmp/a", "/tmp/b", "differs by path", "differs by path"),
    ("x", "{'d': '/tmp'}", "{'d': '/scratch'}", "differs by path", "differs by path"),
    ("x", "file:///tmp/a/c", "file:///tmp/b/c", "differs by path", "differs by path"),
    ("x", "~/a.bin", "~/b.bin", "differs by path", "differs by path"),
    ("x", "C:\\tmp\\a", "C:\\tmp\\b", "differs by path", "differs by path"),
    ("x", "out/a", "out/b", None, None),
    ("x", "8/2", "4/2", None, None),
    ("x", "{'/a/b', '/c/d'}", "{'/c/d', '/a/b'}", None, None),
    # Ports and hosts.
    ("x", "{'master_port': '29500'}", "{'master_port': '29501'}", "apparently differs by port", "apparently differs by port"),
    ("x", "tcp://10.0.0.1:29500", "tcp://10.0.0.1:29501", "differs by port", "differs by port"),
    ("x", "tcp://node-a:29500", "tcp://node-b:29501", "differs by host and port", "differs by host and port"),
    ("x", "127.0.0.1:4000/a", "127.0.0.2:4000/a", "differs by host", "differs by host"),
    ("x", "localhost:29500", "localhost:29501", "differs by port", "differs by port"),
    ("x", "model.py:1234", "model.py:1235", None, None),
    ("x", "{'host': 'trainer-0'}", "{'host': 'trainer-1'}", "apparently differs by host", "apparently differs by host"),
    ("x", "HOSTNAME=gpu7.lab", "HOSTNAME=gpu8.lab", "apparently differs by host", "apparently differs by host"),
    ("x", "{'hostname': '3f2a9c1b7d4e'}", "{'hostname': 'aa2a9c1b7d4e'}", "apparently differs by host", "apparently differs by host"),
    ("x", "node_name=alpha", "node_name=beta", "apparently differs by host", "apparently differs by host"),
    ("x", "MASTER_ADDR=10.0.0.1", "MASTER_ADDR=10.0.0.2", "apparently differs by host", "apparently differs by host"),
    ("x", "{'host': 'cpu'}", "{'host': 'cuda'}", None, None),
    ("x", "{'hostname': '-'}", "{'hostname': 'gpu7'}", None, None),
    ("x", "{'hostname': '17'}", "{'hostname': '18'}", None, None),
    ("x", "9.1.0.70", "9.1.1.17", None, None),
    ("x", "{'support': 4000}", "{'support': 4001}", None, None),
    ("x", "{'port': 'auto'}", "{'port': '29500'}", None, None),
    ("x", "{'port': '9'}", "{'port': '29500'}", None, None),
    ("x", "{'port': '29500'}", "{'port': '65536'}", None, None),
    # Addresses of objects.
    ("x", ADDRESS.format("aa1"), ADDRESS.format("bb2"), "differs by address", "differs by address"),
    ("x", "{'id': 140037563482320}", "{'id': 139637563482336}", "apparently differs by address", "apparently differs by address"),
    ("x", "{'id': 140037563482321}", "{'id': 139637563482336}", None, None),
    ("x", "0x7ffaa13c0", "0x7ffaa13d0", None, None),
    ("x", "<0x7ffaa13c0>", "<0x7ffaa13d0>", None, None),
    ("x", "an object at 0x7ffaa13c0", "an object at 0x7ffaa13d0", None, None),
    # Random numbers.
    ("x", UUID.format("a"), UUID.format("c"), "apparently differs by random number", "apparently differs by random number"),
    ("x", "run-" + UUID.format("a"), "run-" + UUID.format("c"), "apparently differs by random number", "apparently differs by random number"),
    ("x", UUID.format("a").replace("-", ""), UUID.format("c").replace("-", ""), "apparently differs by random number", "apparently differs by random number"),
    ("x", "{'seed': 12345678}", "{'seed': 87654321}", "apparently differs by random number", "apparently differs by random number"),
    ("x", "{'seed': 0}", "{'seed': 1}", None, None),
    ("x", "a" * 31 + "1", "b" * 31 + "2", None, None),
    ("x", "0.08838834764831845", "0.10206207261596577", None, None),
    # Several, and others besides.
    ("x", "{'rank': 3, 'port': 29500}", "{'rank': 1, 'port': 29501}", "apparently differs by rank and port", "apparently differs by rank and port"),
    ("x", "{'rank': 3, 'mode': 'a'}", "{'rank': 1, 'mode': 'b'}", "apparently differs by rank, and otherwise", "differs by rank, and otherwise"),
    ("x", "{'rank': 3, 'peer': 1}", "{'rank': 1, 'peer': 3}", "apparently differs by rank, and otherwise", "differs by rank, and otherwise"),
    ("x", "{'a_rank': 3}", "{'b_rank': 1}", None, None),
    ("x", "{'a': '/a/b', 'c': '/c/d'}", "{'a': '/c/d', 'c': '/a/b'}", "differs by path", "differs by path"),
    # What is no value of a process.
    ("x", "True", "False", None, None),
    ("x", "64", "32", None, None),
    ("default_dtype", "torch.float32", "torch.float64", None, None),
    ("x", "default", "max-autotune", None, None),
    ("x", "none", "high", None, None),
    ("x", "", "/tmp/a", None, None),
    ("x", "{'rank': 3}", "{}", None, None),
    ("system_info[device]", "{'rank': 3}", "{'rank': 1}", None, None),
    ("torch_version", "/a/b", "/a/c", None, None),
    ("example_inputs[0]", "/a/b", "/a/c", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "before", "after", "alone", "known"), CASES)
def test_a_kind_is_named_on_positive_evidence_alone(
    field: str, before: str, after: str, alone: str | None, known: str | None
) -> None:
    for sides, wanted in (((None, None), alone), ((ONE, OTHER), known)):
        found = differs_by(field, before, after, sides)
        assert (None if found is None else found.words) == wanted
        assert differs_by(field, after, before, sides[::-1]) == found


@pytest.mark.parametrize("sides", [(ONE, None), (None, OTHER), (ONE, replace(OTHER, rank=None))])
def test_one_process_that_is_known_is_not_enough(sides: tuple[Process | None, Process | None]) -> None:
    found = differs_by("metadata", "{'rank': '3'}", "{'rank': '1'}", sides)
    assert not found.is_certain
    assert differs_by("x", "shard-3", "shard-1", sides) is None
    # But one rank that is another one is enough against it.
    assert differs_by("metadata", "{'rank': '2'}", "{'rank': '0'}", sides) is None


def test_a_small_number_is_a_pid_where_its_name_says_so() -> None:
    """Processes of a container count from 1, and so does much else."""
    sides = Process(pid=7), Process(pid=8)
    assert differs_by("x", "7", "8", sides) is None
    found = differs_by("x", "{'pid': 7}", "{'pid': 8}", sides)
    assert found is not None and found.is_certain


def test_a_time_may_be_of_any_day_of_a_long_process() -> None:
    day = 86_400 * SECOND
    sides = (Process(start_time=BEGAN, end_time=BEGAN + 5 * day),) * 2
    texts = [str((BEGAN + days * day) // SECOND) for days in (3, 4)]
    assert differs_by("x", *texts, sides) is not None
    short = [replace(side, end_time=None) for side in sides]
    assert differs_by("x", *texts, (short[0], short[1])) is None


@pytest.mark.parametrize("sides", [(ONE, None), (None, OTHER)])
def test_a_time_of_one_process_may_be_any_number(sides: tuple[Process | None, Process | None]) -> None:
    assert differs_by("x", "1763900001", "1763903601", sides) is None


TEXTS = st.one_of(
    st.text(),
    st.text("rank_port:/=0123 '\"{}()[],.-x", max_size=200),
    st.sampled_from([text for case in CASES for text in case[1:3]]),
)
TOLD = st.tuples(TEXTS, TEXTS, TEXTS) | st.sampled_from([case[:3] for case in CASES])
PROCESSES = st.one_of(st.none(), st.builds(Process, *[st.one_of(st.none(), st.integers())] * 4))


@given(told=TOLD, one=PROCESSES, other=PROCESSES)
def test_any_texts_are_judged_alike_in_both_directions(
    told: tuple[str, str, str], one: Process | None, other: Process | None
) -> None:
    field, before, after = told
    found = differs_by(field, before, after, (one, other))
    assert differs_by(field, after, before, (other, one)) == found
    assert differs_by(field, before, before, (one, other)) is None
    if found is not None:
        assert found.kinds
        assert len(set(found.kinds)) == len(found.kinds)


@given(
    before=st.integers(0, 10**9),
    after=st.integers(0, 10**9),
    name=st.from_regex(r"[a-z]{1,12}", fullmatch=True),
)
def test_a_number_alone_is_nothing_unless_its_name_says_so(before: int, after: int, name: str) -> None:
    found = differs_by("x", f"{{'{name}': {before}}}", f"{{'{name}': {after}}}")
    if not name.endswith(("rank", "pid", "port", "time", "seed", "date", "ts", "at", "now", "salt", "rand", "random",
                          "nonce", "token", "stamp", "clock", "built", "start", "created", "started")):  # fmt: skip
        assert found is None


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ("/" * 10**6, "/" * 10**6 + "a", None),
    ("{'rank': '3" + " " * 10**6 + "'}", "{'rank': '1" + " " * 10**6 + "'}", None),
    ("a" * 19_999, "a" * 19_998 + "b", None),
    ("rank=1 a" + "b" * 2_000, "rank=2 a" + "c" * 2_000, "apparently differs by rank, and otherwise"),
    ("a_" * 9_999, "a_" * 9_998 + "b_", None),
    ("/a" * 400, "/a" * 399 + "/b", "differs by path"),
    ("/a" * 9_999, "/a" * 9_998 + "/b", None),
    ("rank_" * 190 + "1", "rank_" * 190 + "2", "apparently differs by rank"),
    ("1-" * 9_999, "2-" * 9_999, None),
    ("{'rank': 1, " * 1_600, "{'rank': 2, " * 1_600, None),
    ("[" * 9_999 + "1", "[" * 9_999 + "2", None),
    ("-" * 19_999, "-" * 19_998 + ".", None),
    ("\x00" * 19_999, "\x01" * 19_999, None),
    ("a://" + "a" * 900 + ":1000", "a://" + "a" * 900 + ":2000", "differs by port"),
    ("2025-11-23T12:40:40" * 1_000, "2025-11-23T12:40:41" * 1_000, None),
])  # fmt: skip
def test_hostile_texts_are_left_alone_or_judged_soon(before: str, after: str, wanted: str | None) -> None:
    # A pattern that goes back over what it read would not come to an end.
    found = differs_by("x", before, after)
    assert (None if found is None else found.words) == wanted


def test_advice_speaks_of_each_kind_that_was_found() -> None:
    texts = "{'rank': 3, 'port': 29500}", "{'rank': 1, 'port': 29501}"
    plain = field_change("metadata", *texts)
    assert list(process_advice(plain)) == []
    rank, port = process_advice(plain._replace(process_values=differs_by("metadata", *texts)))
    assert rank.startswith("metadata apparently holds the rank of the process: keep it out of the key")
    assert port.startswith("metadata apparently holds a port: ")


@pytest.mark.parametrize(("before", "after", "sides", "said"), [
    ("'rank3'", "'rank1'", (ONE, OTHER), "differs by rank: "),
    # Code may contain any number: what is only apparent, or not all that differs, is not told.
    ("'rank3'", "'rank1'", (None, None), "'rank3' -> 'rank1'"),
    ("'rank3', 0", "'rank1', 1", (ONE, OTHER), "1 line of code gone"),
])  # fmt: skip
def test_of_code_only_what_is_certain_is_told(before: str, after: str, sides: Any, said: str) -> None:
    details = HashDetails()
    codes = (f"def forward(self, x):\n    y = f(x, {told})" for told in (before, after))
    one, other = (set_of(details, {"gm": code}) for code in codes)
    (found,) = field_changes(details, one, other, sides)
    assert found.summary.startswith(said)


def changed(before: object, after: object, *, text: tuple[str, str] | None = None) -> FieldChange:
    """What is said of two values as torch hashes them, printed as they are or as something else."""
    details = HashDetails()
    printed = text or (str(before), str(after))
    sets = [
        details.add([f"[{detail_hash(value)}] metadata: {shown}"])[0]
        for value, shown in zip((before, after), printed, strict=True)
    ]
    (found,) = field_changes(details, sets[0] or 0, sets[1] or 0)
    return found


def test_an_address_differs_only_where_it_is_part_of_what_is_hashed() -> None:
    one, other = ADDRESS.format("aa1"), ADDRESS.format("bb2")
    for before, after in ((one, other), ({"x": one}, {"x": other})):
        change = changed(before, after)
        assert (change.kind, change.differs_by) == ("value", ("address",))
        assert change.summary == f"differs by address: {before} -> {after}"
    # An object that is printed so: torch hashes what it holds.
    change = changed(1, 2, text=(one, other))
    assert (change.kind, change.differs_by) == ("opaque", ())
    change = changed(1, 2, text=(f"[{one}, '/a/b']", f"[{other}, '/a/c']"))
    assert (change.kind, change.differs_by) == ("value", ())


def test_bytes_are_no_value_of_a_process() -> None:
    assert changed(1, 2, text=("\x80\x04 /tmp/a", "\x80\x04 /tmp/b\ufffd")).differs_by == ()
