"""The type of a JSON object whose names others choose: records of torch, snapshots, the answers of ``--json``.

What is in it is known only once it has been looked at. An object of our own, with names that we choose, is a dataclass.
"""

from __future__ import annotations

JsonObject = dict[str, object]
