"""Free text with a stand-in for every word that is not known to be harmless; given values and paths are hidden as wholes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from cachescope.report.redaction.vocabulary import (
    AMOUNTS,
    RUN,
    TIME,
    WORD,
    Vocabulary,
    is_harmless,
    is_torch_hash,
    trimmed,
)
from cachescope.wording import SHORT_KEY

_KINDS: Final = "path|url|user|host|uuid|bus|address|key|secret|function|name|value"
_MADE: Final = rf"<(?:{_KINDS})-\d{{1,9}}>"
_STAND_IN: Final = re.compile(_MADE)
_BEGINNING: Final = 6

# cachescope/readers/directory/places.py: the folders of a cache directory whose names torch gives.
_FOLDERS: Final = frozenset({"fxgraph", "aotautograd", "triton", "locks"})
_PREFIX: Final = re.compile(r"[a-z2-7]{2}")
_LINE: Final = re.compile(r"(?::\d{1,7}){1,2}$")
_OPTION: Final = re.compile(r"-[A-Za-z](?=[/\\~])|\w[\w.-]+:(?=[/\\~])")
_SEPARATOR: Final = re.compile(r"[/\\]")

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
# A bare 1 switches something on, also behind a name that looks like a secret's: `{"mine.tokenize": "1"}`, which marks a function.
_NOTHING: Final = frozenset({"", "None", "null", "…", "1"})

_ADDRESS: Final = r"[A-Za-z][A-Za-z0-9+.-]*:/{2,}[^\s'\"`<>|]*"
_TOKEN: Final = re.compile(
    rf"(?P<made>{_MADE})"
    # A quoted path may contain blanks.
    r"|(?<!\w)(?P<lead>[bru]{0,2})(?P<quote>['\"])(?=(?:[A-Za-z]:)?[/\\~]|\.{1,2}[/\\]|[A-Za-z][\w+.-]{0,30}:/{2})"
    r"(?P<quoted>[^'\"\n]{1,4096}?)(?P=quote)"
    rf"|(?P<address>{_ADDRESS})"
    r"|(?P<escape>\\[nrt](?![\w\\]))"
    rf"|(?P<run>{RUN})"
)
_COLONS: Final = re.compile(
    r"(?:(?<![\w.:-])|(?<=:))(?:[0-9A-Fa-f]{0,8}:){1,12}[0-9A-Fa-f]{0,8}(?:\.[0-9A-Fa-f]{1,3}){0,3}(?:%[\w.-]{1,40})?(?![\w-])"
)
_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}|&#?\w{1,10};|=[0-9A-F]{2}=")
_UUID: Final = re.compile(
    r"(?:[A-Za-z]+-)*[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[/\-.]\w+)*"
)
_BUS: Final = re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f])?")
# Used only to name stand-ins: other texts are hidden all the same.
_HOST: Final = re.compile(
    r"\d{1,3}(?:[.-]\d{1,3}){3}|ip-[\d-]+|(?:[\w-]+\.)+(?:local|internal|lan|corp|intranet|localdomain|svc|com|org|net|io|edu)",
    re.IGNORECASE,
)
# cachescope/notebook_cells.py: the hash of the text of a cell, from which a short one can be guessed.
_CELL: Final = re.compile(r"\bcell (?:\d{4,}|[0-9a-f]{8,})\b")
_WHOLE_RUN: Final = re.compile(RUN)
_MANY: Final = 50_000


class StandIns:
    """Maps texts to stand-ins. A number shows only which text came first."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self._taken: set[str] = set()

    def of(self, kind: str, text: str) -> str:
        """The stand-in of a text; its kind is that of the first occurrence."""
        if _STAND_IN.fullmatch(text):
            return text
        if text not in self._of:
            self._of[text] = self._next(kind)
        return self._of[text]

    def keep(self, text: str) -> str:
        """Keep a text that a source wrote like a stand-in: no other text gets that name."""
        self._taken.add(text)
        return text

    def _next(self, kind: str) -> str:
        while True:
            number = self._count[kind] = self._count.get(kind, 0) + 1
            if (made := f"<{kind}-{number}>") not in self._taken:
                return made


class Phrases:
    """Finds any of many texts: by their beginnings, which are few, because files of one folder begin alike."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        lengths: dict[str, set[int]] = {}
        for text in self._texts:
            lengths.setdefault(text[:_BEGINNING], set()).add(len(text))
        # Many texts have few lengths: they are looked up, not tried one by one.
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}
        longest_first = sorted(lengths, key=len, reverse=True)
        self._beginnings = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def replaced(self, text: str, replace: Callable[[str], str]) -> str:
        """A text with every occurrence of one of them replaced."""
        if self._beginnings is None:
            return text
        parts, done, at = [], 0, 0
        while match := self._beginnings.search(text, at):
            at = match.start()
            ends = (text[at : at + length] for length in self._lengths[match[0]])
            found = next((one for one in ends if one in self._texts), None)
            if found is None:
                at += 1
                continue
            parts += [text[done:at], replace(found)]
            done = at = at + len(found)
        return "".join([*parts, text[done:]])


def is_place(run: str) -> bool:
    """Whether a text has the form of a path or an address."""
    return _SEPARATOR.search(run) is not None


def _parted(path: str, known: Vocabulary) -> tuple[str, str]:
    """Split a path into the place and the part below it that torch names."""
    at = path.rfind("/torch/")
    if at >= 0 and path[at + 1 :] in known.files:
        return path[:at], path[at:]
    stripped = path.rstrip("/")
    segments = stripped.split("/")
    first = len(segments)
    for at in range(len(segments) - 1, 0, -1):
        below = segments[at + 1] if at + 1 < len(segments) else ""
        if not _is_torchs(segments[at], below, known):
            break
        first = at
    tail = "".join(f"/{segment}" for segment in segments[first:])
    return "/".join(segments[:first]), tail + path[len(stripped) :]


def _is_torchs(segment: str, below: str, known: Vocabulary) -> bool:
    stem, _, ending = segment.partition(".")
    if segment in _FOLDERS or is_torch_hash(stem):
        return segment in _FOLDERS or not ending or is_harmless(segment, known)
    if segment.isdigit() and len(segment) <= 2 and below:
        return True
    if _PREFIX.fullmatch(segment):
        return is_torch_hash(below.partition(".")[0])
    return bool(ending) and "fused" in stem and is_harmless(segment, known)


def _kind(match: re.Match[str]) -> str:
    if match["secret"] or match["scheme"]:
        return "secret"
    if match["owned"]:
        return "host" if re.search("host|node", match["owned"], re.IGNORECASE) else "user"
    return "bus" if match["pci"] else "value"


class Texts:
    """Hides in texts what is not known to be harmless."""

    def __init__(self, known: Vocabulary) -> None:
        self._known = known
        self._stand_ins = StandIns()
        # Words of this source with their kinds, such as the name of a host; and keys in torch's form.
        self._kinds: dict[str, str] = {}
        self._keys: list[str] = []
        self._phrases = Phrases(())
        self._done: dict[str, str] = {}

    def learn(self, kinds: Mapping[str, str], keys: Collection[str]) -> None:
        """Learn which texts are paths, hosts or users, and which keys stay."""
        self._done.clear()
        self._kinds |= kinds
        self._keys = sorted({*self._keys, *keys})
        # Texts that are no run are not found by their words: a path with blanks, the name of a function with brackets.
        self._phrases = Phrases(text for text in self._kinds if not _WHOLE_RUN.fullmatch(text))

    def hidden(self, text: str) -> str:
        """The text with stand-ins."""
        made = self._done.get(text)
        if made is None:
            made = self._hidden(text)
            if len(text) < 1000 and len(self._done) < _MANY:
                self._done[text] = made
        return made

    def hidden_whole(self, kind: str, text: str) -> str:
        """Hide a value that is a path, a host or the like, whatever it consists of."""
        if not text or (kind in ("function", "key") and text in self._known.words):
            return text
        if "://" in text and all(trimmed(run) in self._known.words for run in _WHOLE_RUN.findall(text)):
            return text  # a page with a datasheet
        if _STAND_IN.fullmatch(text):
            return self._stand_ins.keep(text)
        return self._place(text) if kind == "path" else self._stand_ins.of(kind, text)

    def is_key(self, word: str) -> bool:
        """Whether a word is a key that stays, or a long enough beginning of one."""
        at = bisect_left(self._keys, word)
        return len(word) >= SHORT_KEY and at < len(self._keys) and self._keys[at].startswith(word)

    def _hidden(self, text: str) -> str:
        text = self._phrases.replaced(text, lambda found: self.hidden_whole(self._kinds[found], found))
        text = _CELL.sub(lambda match: self._stand_ins.of("path", match[0]), text)
        return _TOKEN.sub(self._token, _GIVEN.sub(self._given, text))

    def _given(self, match: re.Match[str]) -> str:
        """A value that is given to a name, hidden; the name before it stays."""
        name, sign, value = (group for group in match.groups() if group is not None)
        if match["variable"] and is_harmless(name, self._known):
            return match[0]
        quote = value[0] if value[0] in "'\"" else ""
        closed = quote if quote and value.endswith(quote) and len(value) > 1 else ""
        bare = value[len(quote) : len(value) - len(closed)]
        if bare in _NOTHING or _STAND_IN.fullmatch(bare):
            return match[0]
        return name + sign + quote + self._stand_ins.of(_kind(match), bare) + closed

    def _place(self, text: str) -> str:
        """A path with a stand-in for every part that is not torch's."""
        if AMOUNTS.fullmatch(text) or text in self._known.files:
            return text
        before = after = ""
        if (match := _OPTION.match(text)) and is_harmless(match[0].strip(":-"), self._known):
            before, text = match[0], text[match.end() :]
        if match := _LINE.search(text):
            text, after = text[: match.start()], match[0]
        place, tail = ("", text) if text in self._known.files else _parted(text, self._known)
        hidden = self._stand_ins.of("path", place) if place else ""
        return before + hidden + tail + after

    def _token(self, match: re.Match[str]) -> str:
        if match["made"]:
            return self._stand_ins.keep(match["made"])
        if match["escape"]:
            return match["escape"]
        if match["quoted"]:
            quote, text = match["quote"], match["quoted"]
            hidden = self._address(text) if "://" in text else self._place(text)
            return f"{match['lead']}{quote}{hidden}{quote}"
        return self._address(match["address"]) if match["address"] else self._run(match["run"])

    def _address(self, text: str) -> str:
        address = text.rstrip(".,:;!?)]}")
        known = address in self._known.words
        return (address if known else self._stand_ins.of("url", address)) + text[len(address) :]

    def _run(self, run: str) -> str:
        bare = trimmed(run)
        if bare in self._known.words or not bare:
            return run
        before, _, after = run.partition(bare)
        return before + self._bare(bare) + after

    def _bare(self, run: str) -> str:
        if run in self._kinds and not is_harmless(run, self._known):
            return self.hidden_whole(self._kinds[run], run)
        if _UUID.fullmatch(run):
            return self._stand_ins.of("uuid", run)
        if "@" in run.strip("@"):
            return self._stand_ins.of("url" if is_place(run) or ":" in run else "user", run)
        if is_place(run):
            return self._place(run)
        if run.startswith("~") and len(run) > 1:
            return self._stand_ins.of("path", run)
        if _ESCAPED.search(run):
            return self._stand_ins.of("value", run)
        if run.count(":"):
            run = _COLONS.sub(self._colons, run)
        return re.sub(rf"{_MADE}|{WORD.pattern}", self._word, run)

    def _colons(self, match: re.Match[str]) -> str:
        """Numbers between colons: times and ratios stay; addresses of networks and of boards do not."""
        text = match[0]
        parts = text.split(":")
        words = list(filter(None, parts))
        is_scope = bool(words) and not parts[-1].isdigit() and self._known.words.issuperset(words)
        if TIME.fullmatch(text) or is_scope:
            return text
        if len(parts) == 2 and all(part.isdigit() and len(part) < 7 for part in parts):
            return text
        if len(parts) == 2 and not (parts[0] and parts[1]):
            return text
        return self._stand_ins.of("bus" if _BUS.fullmatch(text) else "address", text)

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        if word.startswith("<") or is_harmless(word, self._known) or self.is_key(word):
            return word
        if word in self._kinds:
            return self.hidden_whole(self._kinds[word], word)
        if _UUID.fullmatch(word):
            return self._stand_ins.of("uuid", word)
        return self._stand_ins.of("host" if _HOST.fullmatch(word) else "name", word)
