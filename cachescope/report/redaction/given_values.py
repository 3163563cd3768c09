"""Values after a name, such as those of secrets, accounts and the environment: hidden whatever they are."""

from __future__ import annotations

import re
from typing import Final

from cachescope.report.redaction.forms import is_harmless
from cachescope.report.redaction.stand_ins import STAND_IN, StandIns
from cachescope.report.redaction.vocabulary import Vocabulary

# The ends of names, then what may follow. Every repetition has a bound: a line in a log may be a megabyte.
_GUARDED: Final = (
    r"(?:passwd|password|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|credential|authorization|bearer)"
    r"[\w-]{0,30}"
)
_OWNED: Final = (
    r"(?:user|username|logname|login|hostname|host|nodename|owner|mail|author|account|project|tenant|team)"
)
_VALUE: Final = (
    r"(?:(?:bearer|basic|digest|token)\s{1,8})?"
    # A quote may be left open where a text was cut.
    r"(?:\"[^\"\n]{0,4096}\"?|'[^'\n]{0,4096}'?|[^\s'\",;&()\[\]{}<>]{1,4096})"
)
# An equals sign, or a colon after a name in quotes.
_SIGN: Final = r"\\{0,4}[\"']?=|\\{0,4}[\"']\s{0,8}:\s{0,8}\\{0,4}"
_GIVEN: Final = re.compile(
    rf"(?i:(?P<secret>{_GUARDED})(?P<sign1>\\{{0,4}}[\"']?\s{{0,8}}[=:]\s{{0,8}}\\{{0,4}})(?P<value1>{_VALUE}))"
    r"|(?i:(?P<scheme>\b(?:bearer|basic))(?P<sign2>\s{1,8})(?P<value2>[\w.~+/=-]{6,4096}))"
    rf"|(?i:(?P<owned>{_OWNED})(?P<sign3>{_SIGN})(?P<value3>{_VALUE}))"
    rf"|(?P<variable>\b[A-Z][A-Z0-9_]{{2,80}})(?P<sign4>{_SIGN})(?P<value4>{_VALUE})"
    r"|(?P<pci>\bpci_(?:bus|device|domain)_id)(?P<sign5>=)(?P<value5>\w{1,64})"
)
_NOTHING: Final = frozenset({"", "None", "null", "…"})


def without_given_values(text: str, known: Vocabulary, stand_ins: StandIns) -> str:
    """A text with such values hidden; the names before them stay.

    Parameters
    ----------
    text : str
    known : Vocabulary
        Variables of an environment that it names keep their values, which are checked like other words.
    stand_ins : StandIns
    """

    def hidden(match: re.Match[str]) -> str:
        name, sign, value = (match[group] for group in _groups(match))
        if match["variable"] and is_harmless(name, known):
            return match[0]
        quote = value[0] if value[0] in "'\"" else ""
        closed = quote if quote and value.endswith(quote) and len(value) > 1 else ""
        bare = value[len(quote) : len(value) - len(closed)]
        if bare in _NOTHING or re.fullmatch(STAND_IN, bare):
            return match[0]
        return name + sign + quote + stand_ins.of(_kind(match), bare) + closed

    return _GIVEN.sub(hidden, text)


def _groups(match: re.Match[str]) -> tuple[str, str, str]:
    for number, name in enumerate(("secret", "scheme", "owned", "variable", "pci"), 1):
        if match[name] is not None:
            return name, f"sign{number}", f"value{number}"
    raise AssertionError(match)


def _kind(match: re.Match[str]) -> str:
    if match["secret"] or match["scheme"]:
        return "secret"
    if match["owned"]:
        return "host" if re.search("host|node", match["owned"], re.IGNORECASE) else "user"
    return "bus" if match["pci"] else "value"
