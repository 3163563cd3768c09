"""What is known of a value from its column: the columns whose values are hidden, or judged, as wholes.

All other values are free text, in which every word must be known. A new column needs nothing here to be safe.
"""

from __future__ import annotations

from typing import Final

# Column, or key of a JSON form -> the kind of its stand-ins. Their values are no sentences: blanks separate no words in them.
WHOLE: Final = {
    **dict.fromkeys(
        (
            "source",
            "sources",
            "path",
            "paths",
            "root",
            "cache_dir",
            "folder",
            "file",
            "entry_path",
            "link",
            "report",
        ),
        "path",
    ),
    **dict.fromkeys(("host", "hostname", "node"), "host"),
    **dict.fromkeys(("user", "owner", "mail", "email"), "user"),
    **dict.fromkeys(("function", "callee"), "function"),
    "uuid": "uuid",
    **dict.fromkeys(("pci", "pci_bus_id", "pci_device_id", "pci_domain_id"), "bus"),
}
# Numbers that identify one board.
NUMBERS_HIDDEN: Final = frozenset({"pci_bus_id", "pci_device_id", "pci_domain_id"})
# Columns in which a text of the right form is a key or a hash of torch or cachescope; elsewhere it may be a commit.
KEYS: Final = frozenset(
    {
        "cache_key", "code_key", "fx_keys", "kernel_keys", "triton_hashes", "child_key", "other_key", "other_code_key",
        "isolation_key", "what_if_key", "detail_hash", "torch_detail_hash", "torch_version_hash", "triton_version_hash",
    }
)  # fmt: skip
