"""The rules of a cache audit, each with its level, meaning and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachescope.terms import AUDIT_LEVELS

DANGER, WARNING, UNPROVEN, NOTE = AUDIT_LEVELS

_DO_NOT_LOAD: Final = "Do not let torch load this cache; delete it, and let torch compile again."
_MAKE_AGAIN: Final = "Delete the file; torch makes it again."
_VOUCH: Final = (
    "Trust it as much as you trust everyone who could write it, or vouch for the files with --lock FILE."
)
_OWN: Final = "Make yourself the owner of the cache, and remove write permission for all others: chown -R, chmod -R go-w."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit."""

    name: str
    level: str
    meaning: str
    advice: str


_ALL: Final = (
    Rule("pickle-dangerous-global", DANGER,
         "a pickle names a function or class that no torch entry names: loading it imports it",
         _DO_NOT_LOAD),
    Rule("pickle-computed-call", DANGER,
         "a pickle calls, names or changes an object in a way that no torch entry does",
         _DO_NOT_LOAD),
    Rule("pickle-odd-program", WARNING,
         "a pickle or archive is not as torch writes it: extension codes, persistent ids, frames that hide a program, what stands "
         "behind its end, an archive of two meanings",
         _DO_NOT_LOAD),
    Rule("guard-runs-code", DANGER,
         "a guard expression or a stride, which torch evaluates as Python, contains more than arithmetic over sizes, or its result is not "
         "bounded",
         _DO_NOT_LOAD),
    Rule("code-changed", DANGER,
         "generated code, which torch runs without checking, does not match the hash in its name", _MAKE_AGAIN),
    Rule("code-not-as-torch", WARNING,
         "Python that torch runs is not as torch's code generators of 2.4 to 2.15 write it", _DO_NOT_LOAD),
    Rule("setting-runs-code", DANGER,
         "a stored configuration of a kernel, of which torch makes Python, holds more than numbers", _DO_NOT_LOAD),
    Rule("path-escapes", DANGER,
         "an entry would write or load a file outside its place in the cache", _DO_NOT_LOAD),
    Rule("entry-misnamed", WARNING,
         "an intact entry does not have the name that its content hashes to, or is in the folder of another key: torch "
         "did not write it like this, but loads it anyway", _MAKE_AGAIN),
    Rule("entry-foreign-object", WARNING,
         "a pickle in the place of an entry is not an entry: torch unpickles it anyway", _MAKE_AGAIN),
    Rule("entry-odd-name", WARNING,
         "a file among entries has a name that torch does not use: torch loads every file in a key's folder", _MAKE_AGAIN),
    Rule("entry-not-read", WARNING,
         "what loading it would do is not known: it could not be opened, exceeds a limit, or changed while it was read",
         "Audit it as a user who may read it, or delete it; torch makes it again."),
    Rule("entry-damaged", NOTE,
         "torch cannot load it, and everything before the damaged place is known to be safe",
         _MAKE_AGAIN),
    Rule("unknown-file", NOTE, "a file or folder that no torch and no Triton is known to write; neither opens it",
         "Ask who put it there."),
    Rule("anyone-can-write", DANGER,
         "every user of the machine can write here, and so can run code in every process that uses the cache", _OWN),
    Rule("group-can-write", WARNING, "a group can write here, and so can run code in every process that uses the cache", _OWN),
    Rule("other-owner", WARNING,
         "it belongs to a user who is neither you nor root, and who can change it at any time", _OWN),
    Rule("root-replaceable", DANGER,
         "a folder above the cache lets others write or belongs to somebody else: the whole cache can be replaced",
         "Put the cache below folders that only you and root can write."),
    Rule("special-bits", WARNING, "a file that runs with the permissions of its owner or group; torch makes no such file", _OWN),
    Rule("predictable-name", NOTE,
         "the cache is in a folder for all users under a name that can be guessed: whoever creates it first owns it",
         "Set TORCHINDUCTOR_CACHE_DIR to a folder below your home."),
    Rule("link-out", WARNING, "a link leads out of the cache: torch follows it, but its target was not audited",
         "Replace the link with its target, and audit that."),
    Rule("link-inside", NOTE, "a link inside the cache; torch makes no links there", "Ask who put it there."),
    Rule("link-broken", WARNING, "a link that leads nowhere, or to itself: whoever makes its target decides what is loaded",
         "Delete the link."),
    Rule("hard-link", WARNING,
         "the file has another name outside this cache, and can be changed through it", "Copy the file and delete the link."),
    Rule("special-file", DANGER, "a pipe, socket or device: it was not opened; torch would wait for it or read whatever it supplies",
         "Delete it."),
    Rule("native-code", UNPROVEN,
         "machine code, byte code, or code in another language than Python, which will run",
         _VOUCH),
    Rule("user-module", UNPROVEN,
         "a pickle names a module that is neither torch's nor Python's, such as the user's own: torch imports it when it loads the entry",
         "Load it only if you know that this module is your own and who wrote the entry."),
    Rule("user-kernel", UNPROVEN, "the text of a Triton kernel that the user wrote, which will run", _VOUCH),
    Rule("user-operator", UNPROVEN, "generated code calls an operator that is not torch's", _VOUCH),
    Rule("not-followed", UNPROVEN, "a pickle that is not looked at: the graph of a model, which names what it calls, or an object in generated code", _VOUCH),
    Rule("group-moved", NOTE,
         "the list of a kernel's files or of vLLM's artifacts names a folder other than its own: the directory was moved",
         "Delete the list; it is made again."),
    Rule("limit-reached", WARNING, "not everything was audited", "Audit the parts one by one."),
)  # fmt: skip
AUDIT_RULES: Final = {rule.name: rule for rule in _ALL}
