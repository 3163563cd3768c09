"""The table of the compile caches of a serving start."""

from __future__ import annotations

from markup import page, table

from cachescope.readers.other_caches import known_caches


def caches_page() -> str:
    """Where each is looked for, what it is made again after, and where all that was read."""
    rows = [
        (
            one.name,
            ", then ".join(f"`{place}`" for place in one.places),
            ", ".join(f"`{name}`" for name in one.off),
            one.stale,
            one.source,
        )
        for one in known_caches()
    ]
    heads = ("cache", "where it is", "variables that switch it off", "made again after", "read off")
    return page(
        "Compile caches of a serving start",
        "What `cachescope entries --all` looks for. The first place whose variable is set is meant. `{home}` is the home folder, `{cache}` "
        "`XDG_CACHE_HOME` or `{home}/.cache`, `{tmp}` `TMPDIR` or `/tmp`, `{login}` and `{user}` the name of the user.",
        f":::{{container}} long-names\n{table(heads, rows)}\n:::",
    )
