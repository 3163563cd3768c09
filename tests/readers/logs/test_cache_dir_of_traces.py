"""The cache directory of a run is the one that the recorder set, whichever log tells of it."""

import json

import pytest

from tests.conftest import Recording
from tests.readings import read_once


@pytest.mark.parametrize("way", ["trace", "text"])
@pytest.mark.parametrize(
    ("version", "name"),
    [("2.13.0", "other_directory"), ("2.6.0", "config_flip"), ("2.15.0", "training"), ("2.10.0", "training")],
)
def test_it_is_told(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    set_to = {step["environment"]["TORCHINDUCTOR_CACHE_DIR"] for step in steps}
    runs = read_once(folder / way).runs
    told = set(runs["cache_dir"].dropna())
    assert told <= set_to and told
    assert not runs["is_cut"].any()
    if version == "2.13.0" and way == "trace":
        assert runs["cache_dir"].tolist() == [
            step["environment"]["TORCHINDUCTOR_CACHE_DIR"] for step in steps
        ]
