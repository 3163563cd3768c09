"""``cachescope contexts``: which processes are alike, and what differs."""

import json
import re
from pathlib import Path

import cachescope
from cachescope.keys import isolation_key
from tests.cli.conftest import Run
from tests.conftest import Recording


def test_keys_groups_and_what_differs_are_shown(run: Run, recording: Recording) -> None:
    folder = recording("2.13.0", "isolation_context") / "contexts"
    done = run("contexts", folder)
    assert (done.status, done.err) == (0, "")
    for path in folder.iterdir():
        assert isolation_key(json.loads(path.read_text())) in done.out
    assert done.out.startswith("2 contexts: 2 groups of equals")
    assert "One key without inductor_configs, torch_determinism_configs" in done.out
    assert re.search(r"inductor_configs +deterministic +false +true\n", done.out)


def test_a_schema_file_says_which_forms_count(run: Run, recording: Recording, tmp_path: Path) -> None:
    folder = recording("2.13.0", "isolation_context") / "contexts"
    schema = tmp_path / "schema.json"
    schema.write_text(cachescope.IsolationSchema(False, True).to_json())
    printed = run("contexts", folder, "--schema", schema, "--json").json
    assert printed["schema"] == {"runtime_context": False, "compile_context": True}
    (group,) = printed["context_groups"]
    assert group["contexts"] == [0, 1]
    assert {row["isolation_key"] for row in printed["isolation_keys"]} == {group["isolation_key"]}
    assert len(printed["contexts"]) == 2 and printed["context_pairs"][0]["before"] == 0
