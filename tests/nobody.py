"""Work done by a user who may not read everything: tests may run as root, who may."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOBODY = 65_534


def as_nobody(work: Callable[[], object], *, below: Path) -> Any:
    """What `work` gives in a child that is not root, as JSON keeps it; `below` is a folder that it gets to."""
    for folder in (below, *below.parents):
        if os.stat(folder).st_mode & 0o005 != 0o005 and folder.owner() != "nobody":
            os.chmod(folder, os.stat(folder).st_mode | 0o055)
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(receiver)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            given = json.dumps(work())
            with open(sender, "w") as stream:
                stream.write(given)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(sender)
    with open(receiver) as stream:
        given = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return json.loads(given)
