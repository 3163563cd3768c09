"""Profile-guided dynamic shapes: ``dynamo/code_state_<key>.pkl``, torch 2.6 to 2.15."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, content_reader
from cachescope.readers.json_record import well_formed
from cachescope.readers.pickles.inert_pickle import Stub, global_name, loads_harmless
from cachescope.readers.reading import Reading

CODE_STATE: Final = "code_state_"
"""How the name of a file begins."""
_SHOWN: Final = 20


def fill_code_state(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
    """Note the frames for which torch knows how their inputs varied.

    Mirrors ``put_local_code_state`` (torch/_dynamo/pgo.py): a ``defaultdict`` of ``CodeId`` to ``CodeState``.
    """
    if not name.startswith(CODE_STATE):
        # A "/" in the job id turned its first part into a folder (2.6).
        entry.cache_key = f"{entry.cache_key}/{well_formed(name.removesuffix('.pkl'))}"
    state = loads_harmless(data)
    made_of = global_name(state)
    if not isinstance(state, Stub) or made_of != "collections.defaultdict":
        raise DamagedContent(f"no code state: holds {made_of or type(state).__name__}")
    frames = list(_frames(state))
    entry.detail = ", ".join(frames[:_SHOWN])
    if len(frames) > _SHOWN:
        entry.detail += f" and {len(frames) - _SHOWN} more"


def _frames(state: Stub) -> Iterator[str]:
    for code, _ in state.pairs:
        if not isinstance(code, Stub) or code.name != "CodeId":
            raise DamagedContent("no code state: a key that is no CodeId")
        file, line, name = (code.state.get(part) for part in ("filename", "firstlineno", "name"))
        yield well_formed(f"{str(name)[:100]} ({str(file)[:300]}:{str(line)[:20]})")


read_code_state = content_reader(fill_code_state)
