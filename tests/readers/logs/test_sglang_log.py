"""Logs made of the words of each release of SGLang, which were read off its wheels (tests/data/make_messages.py)."""

import json
import re
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.summary import counts_text
from cachescope.catalogue import messages

MESSAGES = json.loads((Path(messages.__file__).parent / "messages.json").read_text())["sglang"]["messages"]
HEADS = "[2026-11-24 15:00:07] ", "[2026-11-24 15:00:07 TP0] ", "[2026-11-24 15:00:07.123 DP1 TP0 EP0] "


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("text", [row["text"] for row in MESSAGES if row["means"]])
def test_what_it_says_of_its_graphs_is_quoted_and_nothing_denied(
    text: str, head: str, tmp_path: Path
) -> None:
    said = re.sub(r"%\.2f", "4.20", text).replace("%s", "inductor")
    path = tmp_path / "server.log"
    path.write_text(f"{head}server_args=ServerArgs()\n{head}{said}\n{head}The server is fired up!\n")
    scope = cachescope.read(path)
    assert scope.problems["message"].tolist() == [f"SGLang's log says of its cache: {said}"]
    assert scope.lookups.empty
    assert "does not say that there was none" in counts_text(scope)


def test_other_lines_of_it_make_no_log_of_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("".join(f"{head}Compiling a plan, loading the graph store\n" for head in HEADS))
    with pytest.raises(cachescope.SourceError, match="holds no"):
        cachescope.read(path)
