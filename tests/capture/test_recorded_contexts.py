"""What a recorded process says of itself at its end: real programs, however they end, and what is then known of them."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import cachescope
from cachescope.errors import SourceError
from tests.cli.conftest import Run, environment, run
from tests.programs import ran

__all__ = ["run"]
pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "ending_program.py"
SAMPLE = Path(cachescope.__file__).parent / "samples/config_flip"
UNKNOWN = ("not known", "Not known", "not decided", "no key")
Recorded = Callable[..., SimpleNamespace]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Records the program with a cache directory that all share; what it found in the run's folder, by process."""
    cache = tmp_path_factory.mktemp("cache")

    def record(end: str, *options: str, path: str = "", **variables: str) -> SimpleNamespace:
        folder = tmp_path_factory.mktemp("runs")
        env = environment(TORCHINDUCTOR_CACHE_DIR=str(cache), OMP_NUM_THREADS="2", **variables)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (path, env["PYTHONPATH"])))
        command = [sys.executable, "-m", "cachescope", "record", "-o", str(folder), "--"]
        done = ran([*command, sys.executable, *options, PROGRAM, *end.split(maxsplit=1)], env, status=None)
        scope = cachescope.read(folder) if [*folder.rglob("dedicated*")] else None
        found = sorted(file.name for file in folder.rglob("context-*"))
        return SimpleNamespace(done=done, folder=folder, cache=cache, scope=scope, files=found)

    return record


@pytest.mark.parametrize(("end", "status", "files"), [
    ("exit", 7, 1), ("fails", 1, 1), ("child", 0, 1), ("spawn", 0, 1), ("fork", 0, 1),
    # One of each process that made keys: not of a fork that made none.
    ("forks", 0, 2),
    # What ends at once says nothing, and without keys there is nothing to say.
    ("os._exit", 7, 0), ("signal", 128 + signal.SIGKILL, 0), ("nothing", 0, 0),
])  # fmt: skip
def test_each_process_that_made_keys_says_once_what_it_is(
    recorded: Recorded, end: str, status: int, files: int
) -> None:
    found = recorded(end)
    assert found.done.returncode == status
    # Nothing of ours is printed: the program's own error is its last word.
    said = [line for line in found.done.stderr.splitlines() if not line.startswith("cachescope:")]
    assert said[-1:] == (["ValueError: failed"] if end == "fails" else [])
    assert len(found.files) == files
    if end == "nothing":
        for folder in (found.folder, *found.folder.iterdir()):
            with pytest.raises(
                SourceError, match="cachescope record ran a command here, and no log with a word"
            ):
                cachescope.read(folder)
        # Nor is it left out without a word beside runs that were read, however deep it lies.
        (run,) = found.folder.iterdir()
        whole = found.folder / "of today" / "rank 0"
        whole.mkdir(parents=True)
        run.rename(whole / run.name)
        beside = cachescope.read(found.folder, SAMPLE)
        assert len(beside.lookups) == len(cachescope.read(SAMPLE).lookups)
        assert [*beside.problems["source"]] == [str(whole / run.name)]
    if found.scope is not None:
        contexts = found.scope.contexts
        assert contexts["run"].tolist() == found.scope.runs["run"].tolist()
        assert contexts["known_from"].tolist() == ["torch" if files else "hash_details"] * len(contexts)
    if files:
        pids = found.scope.runs["pid"].astype(str)
        assert found.files == sorted(f"context-{pid}.json" for pid in pids)


def test_ctrl_c_ends_it_as_without_us(recorded: Recorded) -> None:
    found = recorded("interrupt")
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(found.cache))
    alone = ran([sys.executable, PROGRAM, "interrupt"], env, status=None)
    assert found.done.returncode in (alone.returncode, 128 - alone.returncode)
    assert len(found.files) == 1


def test_nothing_that_the_process_knew_is_not_known(recorded: Recorded, tmp_path: Path, run: Run) -> None:
    # The user's own sitecustomize is the one that the program sees.
    (tmp_path / "sitecustomize.py").touch()
    found = recorded("truth", path=str(tmp_path))
    key, site, *paths = found.done.stdout.splitlines()[:4]
    assert site == str(tmp_path / "sitecustomize.py") and paths[0] == str(tmp_path)
    (context,) = found.scope.contexts.itertuples()
    assert context.missing_forms == () and context.settings
    folder, cache, lock = str(found.folder), str(found.cache), str(tmp_path / "lock")
    said = run("contexts", folder).out
    assert key in said and not any(word in said for word in UNKNOWN)
    assert "cpu_capability" in run("devices", folder).out
    predicted = cachescope.will_hit(cache, folder)
    assert predicted.loc[predicted["will_hit"] == "yes", "is_unsafe"].eq(False).all()
    assert not any(word in run("diff", cache, folder).out for word in UNKNOWN)
    assert not any(word in run("lock", cache, "-o", lock, "--expect", folder).out for word in UNKNOWN)


def test_without_it_the_answers_are_those_of_its_lookups(recorded: Recorded, run: Run) -> None:
    found = recorded("plain", "-I")
    assert found.files == [] and found.done.returncode == 0
    assert "reconstructed from hash details" in run("contexts", str(found.folder)).out
    assert cachescope.will_hit(found.cache, found.folder)["is_unsafe"].isna().any()


def test_an_option_of_a_compile_counts_before_what_was_set_at_the_end(recorded: Recorded) -> None:
    found = recorded("options")
    (context,) = found.scope.all_contexts.rows
    # Its lookups differ in it, so that it is not the configuration of all.
    assert context.missing_forms == ("inductor_configs",) and context.inductor_configs is None
    assert context.torch_version_hash and context.platform


def test_options_that_torch_prints_as_bytes_are_named_and_set_back(recorded: Recorded) -> None:
    before, changed = recorded("plain"), recorded("functorch")
    told = str(cachescope.read(before.folder, changed.folder).explain()).splitlines()
    assert told[1].endswith(
        "autograd_config, activation_memory_budget 1.0 -> 0.5; donated_buffer True -> False"
    )
    (settings,) = [
        line.partition(": ")[2] for line in told if line.startswith("do, just before the first compile")
    ]
    assert changed.scope.lookups["outcome"].tolist() == ["full_miss", "hit"]
    again = recorded(f"functorch {settings}")
    assert again.scope.lookups["outcome"].tolist() == ["hit", "hit"]


def test_redact_hides_what_it_says(recorded: Recorded, run: Run) -> None:
    found = recorded("plain", TORCHINDUCTOR_ZYQVORT="/home/zyqvort/model")
    (file,) = found.folder.rglob("context-*")
    assert "zyqvort" in file.read_text()
    host = json.loads(file.read_text())["host"]
    for words in (("contexts",), ("devices",), ("contexts", "--json"), ("explain", "--json")):
        said = run(*words, str(found.folder), "--redact").out
        assert "zyqvort" not in said and f'"{host}"' not in said and str(found.folder) not in said
