"""When a log was last written, by which its year is known."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cachescope.readers.logs.byte_source import modified_s


def test_it_is_the_time_of_the_file_and_now_where_it_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x")
    os.utime(log, (1_000_000_000, 1_000_000_000))
    assert modified_s(str(log)) == 1_000_000_000
    began = time.time()
    assert modified_s(str(tmp_path / "gone.log")) >= began
