"""A tar archive is read as the folder that it was made of: unpacked into a temporary one that goes when the process ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tarfile
import tempfile
import zlib
from typing import Final

from cachescope.errors import SourceError
from cachescope.readers.kinds import packed_in_tar

# Logs shrink to a thirtieth.
_MOST_TIMES: Final = 200
_MOST_MEMBERS: Final = 100_000


def unpacked(path: str) -> str:
    """The folder with the files of an archive; links and devices in it are left out."""
    room = tempfile.mkdtemp(prefix="cachescope-")
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    folder = os.path.join(room, os.path.basename(path))
    left = _MOST_TIMES * (os.path.getsize(path) + 1)
    try:
        with tarfile.open(path, "r|*") as archive:
            for number, member in enumerate(archive):
                left -= member.size
                if left < 0 or number == _MOST_MEMBERS:
                    raise SourceError(
                        path,
                        f"this tar archive holds more than {_MOST_TIMES} times its size, or {_MOST_MEMBERS:,} files: unpack it, and give its folder",
                    )
                # What would lie outside of it is left out, too.
                with contextlib.suppress(tarfile.FilterError):
                    if member.isfile():
                        archive.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise packed_in_tar(path) from error
    return folder
