"""The recipes of the page on locks: their YAML holds together, and their very commands do what the page says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Recording

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "lock.md").read_text()
WORKFLOW, POD = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


def steps(job: str) -> list[str]:
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def status_of(command: list[str], folder: Path, **changed: str) -> int:
    """A command of cachescope, as a shell there would run it."""
    assert command[0] == "cachescope"
    env = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env={**env, "PYTHONPATH": str(ROOT), **changed},
        check=False, capture_output=True,
    ).returncode  # fmt: skip


def test_the_workflow_verifies_what_it_locked_and_then_trains() -> None:
    *_, record, lock = map(shlex.split, steps("bake"))
    *_, verify, train = map(shlex.split, steps("train"))
    assert record[:2] == ["cachescope", "record"]
    assert lock[:2] == ["cachescope", "lock"]
    assert verify[:2] == ["cachescope", "verify"]
    assert record[record.index("--") + 1 :] == train
    assert lock[lock.index("--expect") + 1] == record[record.index("--output") + 1]
    assert verify[2:] == [lock[lock.index("-o") + 1], lock[2]]
    (saved,) = [step["with"] for step in WORKFLOW["jobs"]["bake"]["steps"] if "save" in step.get("uses", "")]
    (restored,) = [i["with"] for i in WORKFLOW["jobs"]["train"]["steps"] if "restore" in i.get("uses", "")]
    assert saved == restored
    assert set(saved["path"].split()) == set(verify[2:])
    assert WORKFLOW["jobs"]["train"]["needs"] == "bake"
    assert WORKFLOW["jobs"]["train"]["env"] == WORKFLOW["jobs"]["bake"]["env"]


@pytest.mark.slow
def test_the_commands_of_the_workflow_run(recording: Recording, tmp_path: Path) -> None:
    made = recording("2.13.0", "training")
    shutil.copytree(made / "cache", tmp_path / "inductor-cache")
    shutil.copytree(made / "trace", tmp_path / "runs")
    lock = shlex.split(steps("bake")[-1])
    verify = shlex.split(steps("train")[-2])
    assert status_of(lock, tmp_path) == 0
    assert status_of(verify, tmp_path) == 0
    assert status_of(verify, tmp_path, TORCHINDUCTOR_SHAPE_PADDING="0") == 3
    path = next((tmp_path / "inductor-cache" / "fxgraph").rglob("*/f*/*"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert status_of(verify, tmp_path) == 3
    (tmp_path / "cache.lock").unlink()
    assert status_of(verify, tmp_path) == 1


def container(kind: str) -> dict[str, Any]:
    (found,) = POD["spec"][kind]
    return found  # type: ignore[no-any-return]


def test_what_is_verified_in_the_pod_is_what_trains() -> None:
    verifies, trains = container("initContainers"), container("containers")
    for part in ("image", "env", "resources"):
        assert verifies[part] == trains[part], part
    (mounted,) = verifies["volumeMounts"]
    assert mounted["readOnly"] is True
    assert {**mounted, "readOnly": None} == {**trains["volumeMounts"][0], "readOnly": None}
    *_, lock, directory = verifies["command"]
    assert directory == {one["name"]: one["value"] for one in trains["env"]}["TORCHINDUCTOR_CACHE_DIR"]
    assert lock.startswith(mounted["mountPath"] + "/")
    # A lock within the directory would be one of its files.
    assert not lock.startswith(directory + "/")
    assert {volume["name"] for volume in POD["spec"]["volumes"]} == {mounted["name"]}


@pytest.mark.slow
def test_the_command_of_the_init_container_runs(recording: Recording, tmp_path: Path) -> None:
    (mounted,) = container("initContainers")["volumeMounts"]

    def here(text: str) -> str:
        return re.sub(rf"^{mounted['mountPath']}(?=/)", str(tmp_path), text)

    command = [here(part) for part in container("initContainers")["command"]]
    shutil.copytree(recording("2.13.0", "training") / "cache", tmp_path / "inductor")
    variables = {one["name"]: here(one["value"]) for one in container("initContainers")["env"]}
    assert status_of(["cachescope", "lock", command[-1], "-o", command[-2]], tmp_path, **variables) == 0
    assert status_of(command, tmp_path, **variables) == 0
    (tmp_path / "inductor" / "more.py").write_text("import os")
    assert status_of(command, tmp_path, **variables) == 3
