"""What is said to someone whose misses have one cause: the error that was logged, one upgrade, the directory that is really searched.

The words of torch are those of 2.13: programs with a tensor subclass, a DeviceMesh and os.environ.setdefault were run with it.
"""

import json
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.preflight import PreflightAnswer
from cachescope.answers.summary import counts_text, footer
from cachescope.report.preflight import preflight_blocks
from cachescope.report.terminal import terminal_lines
from tests.conftest import Archive, Recording
from tests.made import CODE, fx, run, scope_of

PREFIX = "1126 10:07:59.249000 18386 torch/_inductor/codecache.py:1052] [0/0] "
ERROR = "AttributeError: Can't pickle local object 'WeakValueDictionary.__init__.<locals>.remove'"


def test_a_bypass_quotes_the_error_that_stands_in_the_same_log(tmp_path: Path) -> None:
    traceback = ("Traceback (most recent call last):", '  File "codecache.py", line 646', ERROR)
    lines = [f"W{PREFIX}{text}" for text in ("Failed to pickle cache key", *traceback)]
    bypass = "Bypassing autograd cache due to: Failed to pickle cache key"
    log = tmp_path / "torch.log"
    log.write_text("\n".join([*lines, f"I{PREFIX}{bypass}", ""]))
    scope = cachescope.read(log)
    assert scope.lookups["bypass_reason"].tolist() == [f"Failed to pickle cache key: {ERROR}"]
    (cause,) = scope.causes.itertuples()
    assert ERROR in cause.summary and "_stable_hash_for_caching" in cause.advice
    # Without the error it is said where it stands.
    log.write_text(f"I{PREFIX}{bypass}\n")
    assert "The warning just before it" in cachescope.read(log).causes["advice"].iloc[0]


def test_a_trace_has_the_error_in_the_traceback_of_the_bypass(tmp_path: Path) -> None:
    causes = [*("Traceback (most recent call last):\n", '  File "codecache.py", line 646\n'), f"{ERROR}\n"]
    said = {
        "key": None, "cache_state": "bypass", "cache_bypass_reason": "Failed to pickle cache key",
        "cache_bypass_exception_type": "BypassFxGraphCache", "cache_bypass_hard_exception": True,
        "cache_bypass_traceback": [*causes, "torch._inductor.codecache.BypassFxGraphCache: Failed to pickle cache key\n"],
    }  # fmt: skip
    payload = json.dumps(said)
    about = {"artifact": {"name": "aotautograd_cache_bypass", "encoding": "json"}, "has_payload": "0" * 32}
    log = tmp_path / "dedicated_log_torch_trace_x.log"
    log.write_text(f"V{PREFIX.replace('[0/0] ', '')}{json.dumps(about)}\n\t{payload}\n")
    assert cachescope.read(log).lookups["bypass_reason"].tolist() == [f"Failed to pickle cache key: {ERROR}"]


def test_one_upgrade_is_one_cause_in_text_logs_too(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "upgrade") / "text")
    assert scope.causes.query("verdict == 'key_changed'")["misses"].tolist() == [4]
    assert not scope.causes["summary"].eq("first lookups, or changed graphs").any()
    # A trace names both versions, and as many fields.
    fields = [
        len(cause.fields)
        for source in ("text", "trace")
        for cause in cachescope.read(recording("2.13.0", "upgrade") / source).causes.itertuples()
        if cause.verdict == "key_changed"
    ]
    assert fields == [210, 210]


MESH = "(<torch._library.opaque_object.FakeOpaqueObject object at 0x7f0>, 'torch.distributed.device_mesh.DeviceMesh', DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1)))"


@pytest.mark.parametrize(
    ("example", "is_named"), [(MESH, True), ("TensorMetadata(dtype=torch.float32)", False)]
)
def test_a_mesh_among_the_inputs_may_be_why_keys_differ_and_no_field(example: str, is_named: bool) -> None:
    details = {"gm": CODE, "example_inputs[0]": example}
    runs = [run(fx(key, details=details, at=at, took=1)) for key, at in (("f11", 0), ("f22", 100))]
    (advice,) = [i.advice for i in scope_of(*runs).causes.itertuples() if i.verdict == "no_detail_differs"]
    assert ("DeviceMesh" in advice) is is_named


@pytest.mark.parametrize(("tag", "evidence"), [({"cache_key_tag": ""}, "inferred"), ({}, "recorded")])
def test_that_no_field_differs_is_inferred_where_hashes_cannot_be_compared(
    tag: dict[str, str], evidence: str
) -> None:
    """The hash of an empty tag that is not torch's own is one of a pickler with a memo."""
    details = {"gm": CODE, "example_inputs[0]": MESH, **tag}
    runs = [run(fx(key, details=details, at=at, took=1)) for key, at in (("f11", 0), ("f22", 100))]
    misses = scope_of(*runs).misses
    assert misses["evidence"][misses["verdict"] == "no_detail_differs"].tolist() == [evidence]


@pytest.mark.parametrize(
    ("searched", "is_said"), [("/tmp/torchinductor_me", True), ("/scratch/cache", False)]
)
def test_a_program_in_the_default_directory_may_have_set_it_too_late(searched: str, is_said: bool) -> None:
    before = fx("f11", details={"gm": CODE}, at=0, took=1, entry_path="/baked/fxgraph/11/f11/x")
    after = fx("f11", details={"gm": CODE}, at=100, took=1)
    runs = [run(before, cache_dir="/baked"), run(after, cache_dir=searched)]
    (advice,) = [i.advice for i in scope_of(*runs).causes.itertuples() if i.kind == "another directory"]
    assert advice.startswith("Use one directory") and ("setdefault" in advice) is is_said


def test_a_pre_flight_names_the_directory_that_the_program_itself_would_search(archive: Archive) -> None:
    folder = archive("preflights/2.13.0")
    answer = PreflightAnswer.of(cachescope.read(folder / "as_baked", folder / "cache"))
    (other,) = answer.elsewhere
    said = " ".join(line.text for line in terminal_lines(preflight_blocks(answer)))
    assert not Path(other).exists() and f"would itself look in {other}" in said
    # Of recordings, of which nothing says where they lie, there is no word.
    assert PreflightAnswer.of(cachescope.read(folder / "as_baked")).elsewhere == ()


def test_unknown_outcomes_stand_beside_the_rate_with_their_reason() -> None:
    lookups = [fx("f1", "hit", at=0), fx("f2", at=1), fx("f3", "unknown", at=2)]
    scope = scope_of(run(*lookups))
    assert "1 hit, 1 missed, 1 of unknown outcome (50 % of the 2 known by count" in counts_text(scope)
    said = "unknown: 1, for the log ends before its outcome, has lost the line of it, or is"
    assert said in footer(Chosen(scope))
    seen = scope_of(run(*lookups[:2]))
    assert "known" not in counts_text(seen) and "unknown" not in footer(Chosen(seen))
    # Those of another run are not among the lookups of this one.
    both = scope_of(run(*lookups[:2]), run(*lookups))
    assert ["unknown: 1" in Cards.of(Chosen.of_runs(both, {one})).rest for one in (0, 1)] == [False, True]


def test_two_sides_of_an_upgrade_differ_by_it(recording: Recording) -> None:
    """As `explain` says it: one difference, not a table of the fields that each key has of the new torch."""
    traces = cachescope.read(recording("2.13.0", "upgrade") / "trace")
    lines = repr(cachescope.compare("run:0", "run:1", traces)).split("\n")
    (at,) = [at for at, line in enumerate(lines) if line.startswith("4 keys: ")]
    told = " ".join(" ".join(lines[at + 1 :]).split())
    said = "torch 2.10.0+cu128 -> 2.13.0+cpu; with it each key differs in 204 to 209 other fields; "
    assert said in told
    assert "not there" not in told
