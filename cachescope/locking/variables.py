"""The environment variables that enter keys: what torch makes of them, and those of this machine compared with the keys of a lock."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cachescope.catalogue.facts import FieldFacts, fields_of, nearest, versions
from cachescope.keys.detail_hash import detail_hashes
from cachescope.keys.key_fields import is_of_the_program
from cachescope.locking.facts import DIFFERS, EQUAL, UNKNOWN, Context, Fact, state_of
from cachescope.locking.lock import CacheLock, Rule, Variable
from cachescope.terms import AOTAUTOGRAD, CACHES
from cachescope.wording import listed, plural

SWITCH: Final = "switch"
INT: Final = "int"
TEXT: Final = "text"
OTHER: Final = "other"
_LONGEST: Final = 4000
_SHOWN: Final = 100

_CACHES_OFF: Final = "it switches caches off"
COMPILING_OFF: Final = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
"""The variables that switch torch.compile off where they are 1."""


@dataclass(frozen=True, slots=True)
class Off:
    """A value of a variable that no key holds, and with which the entries of some caches are not looked up."""

    value: str
    what: str = _CACHES_OFF
    caches: tuple[str, ...] = CACHES


# torch/_inductor/config.py, torch/_functorch/config.py, torch/compiler/config.py, torch/_dynamo/config.py,
# torch/_dynamo/eval_frame.py (`optimize`), 2.6 to 2.15.
OFF: Final = {
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": Off("1"),
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": Off("1"),
    "TORCHINDUCTOR_FX_GRAPH_CACHE": Off("0"),
    "TORCHINDUCTOR_AUTOGRAD_CACHE": Off("0", "it switches AOTAutograd's cache off", (AOTAUTOGRAD,)),
    "TORCH_CACHING_PRECOMPILE": Off("1", "with it AOTAutograd makes other keys", (AOTAUTOGRAD,)),
    **dict.fromkeys(COMPILING_OFF, Off("1", "it switches torch.compile off")),
}

CAPABILITY: Final = "ATEN_CPU_CAPABILITY"
"""The vector instructions that torch generates code for (torch/_inductor/cpu_vec_isa.py, `pick_vec_isa`); no key holds them."""

# The catalogue quotes torch's source: an expression of any other form is named, not evaluated.
_GET: Final = (
    r"os\.(?:environ\.get|getenv)\('(?P<name>\w+)'(?:, (?:'(?P<unset>[^']*)'|(?P<number>\d+)|None))?\)"
)
_FORMS: Final = {
    SWITCH: re.compile(_GET + r" == '1'"),
    INT: re.compile(rf"int\({_GET}\)"),
    TEXT: re.compile(_GET),
}
# Not made in a config module, so the catalogue quotes no expression: torch/_inductor/config.py, `cache_key_tag` by
# torch/compiler/config.py (2.6 to 2.15); ATen's number of threads, which it takes from OpenMP.
_KNOWN: Final = {
    ("TORCH_COMPILE_CACHE_KEY_TAG", "cache_key_tag"): Rule(TEXT, ""),
    ("OMP_NUM_THREADS", "cpp_runtime_thread_count"): Rule(INT, None),
}


def variables_of_keys(version: str | None = None) -> dict[str, dict[str, Rule]]:
    """By variable, the fields that it sets in the keys of a torch, and how.

    >>> found = variables_of_keys("2.13.0")
    >>> found["TORCHINDUCTOR_SHAPE_PADDING"]
    {'inductor_config[shape_padding]': Rule(kind='switch', unset='1')}
    >>> found["TORCHINDUCTOR_MULTI_KERNEL"]
    {'inductor_config[triton.multi_kernel]': Rule(kind='int', unset='0')}
    """
    newest, oldest = versions()[-1], versions()[0]
    read = newest if version is None else nearest(version, versions()) or oldest
    found: dict[str, dict[str, Rule]] = {}
    for facts in fields_of(read):
        if facts.in_key and not is_of_the_program(facts.field):
            for variable in facts.environment:
                found.setdefault(variable, {})[facts.field] = _rule(variable, facts)
    return found


def _rule(variable: str, facts: FieldFacts) -> Rule:
    if (known := _KNOWN.get((variable, facts.field))) is not None:
        return known
    for kind, form in _FORMS.items():
        match = form.fullmatch(facts.default or "")
        if match is not None and match["name"] == variable:
            return Rule(kind, match["unset"] if match["unset"] is not None else match["number"])
    return Rule(OTHER)


def hashes_of(rule: Rule, text: str | None) -> frozenset[str] | None:
    """The hashes that a field may have if its variable is set to a text, by either protocol; None if not known.

    >>> from cachescope.keys.detail_hash import detail_hash
    >>> detail_hash(True) in hashes_of(Rule("switch", "0"), "1")
    True
    >>> hashes_of(Rule("int", "1"), "many") is None
    True
    """
    given = rule.unset if text is None else text
    value: object
    if rule.kind == SWITCH:
        value = given == "1"
    elif rule.kind == TEXT:
        value = given
    elif rule.kind == INT and given is not None and given.isascii() and given.isdecimal() and len(given) < 19:
        value = int(given)
    else:
        return None
    return detail_hashes(value)


def shown_value(text: str | None) -> str:
    """A value for people."""
    return "not set" if text is None else repr(text)


def environment(names: Iterable[str]) -> dict[str, str | None]:
    """What some variables are here; of a long value the beginning and a hash, and no byte that is not UTF-8."""
    return {name: None if (text := os.environ.get(name)) is None else _plain(text) for name in names}


def _plain(text: str) -> str:
    plain = os.fsencode(text).decode("utf-8", "backslashreplace")
    if len(plain) <= _LONGEST:
        return plain
    return f"{plain[:_SHOWN]}… sha256 {hashlib.sha256(os.fsencode(text)).hexdigest()}"


_FIELDS_NAMED: Final = 3
_VECTORS: Final = {"avx512": "avx512f", "avx2": "avx2", "default": None}
_OTHER_CODE: Final = "no key holds it, so torch loads code that was made for other vector instructions: it may not compile, or compute wrong numbers"
_THREADS: Final = "OMP_NUM_THREADS"
_THREAD_COUNT: Final = "cpp_runtime_thread_count"


def variable_facts(lock: CacheLock, here: Mapping[str, str | None]) -> Iterator[Fact]:
    """A fact for each variable that changed, and a single one if none did."""
    found = [
        fact
        for name, variable in lock.variables.items()
        if here.get(name) != variable.value and (fact := _fact(name, variable, here.get(name), lock))
    ]
    if all(fact.state == EQUAL for fact in found):
        known = plural(len(lock.variables), "variable")
        yield Fact("variables", EQUAL, None, None, f"{known} that enter keys or switch caches off")
    yield from found
    if here.get(_THREADS) is None and (threads := _threads(lock)) is not None:
        yield threads


def _threads(lock: CacheLock) -> Fact | None:
    """The number of threads, which keys of code for the CPU hold since torch 2.13; None if none does."""
    held = {field.text or "" for one in lock.contexts if (field := one.get(_THREAD_COUNT)) is not None}
    if not held:
        return None
    reason = (
        f"torch counts the cores itself unless {_THREADS} says the number; the system has {os.cpu_count()}"
    )
    return Fact("threads", UNKNOWN, listed(sorted(held), _FIELDS_NAMED), None, reason, None)


def _fact(name: str, variable: Variable, here: str | None, lock: CacheLock) -> Fact | None:
    """A variable that is not what it was; None if that changes nothing."""
    locked, mine = shown_value(variable.value), shown_value(here)
    if name in OFF:
        off = OFF[name]
        if here != off.value or not any(file.kind in off.caches for file in lock.entries()):
            return None
        return Fact(name, DIFFERS, locked, mine, off.what, loses=off.caches)
    if name == CAPABILITY:
        is_for_cpu = any("cpu" in file.device_types for file in lock.entries())
        made, makes = (_vectors(value, lock.machine.cpu_features or ()) for value in (variable.value, here))
        return Fact(name, DIFFERS, locked, mine, _OTHER_CODE) if is_for_cpu and made != makes else None
    what = f"it sets {listed(variable.fields, _FIELDS_NAMED)}"
    concerned = [any(field in context for field in variable.fields) for context in lock.contexts]
    if not any(concerned):
        return None if lock.contexts else Fact(name, DIFFERS, locked, mine, what, None)
    holds = [
        _holds(context, variable, here) if is_concerned else True
        for context, is_concerned in zip(lock.contexts, concerned, strict=True)
    ]
    if all(holds):
        return Fact(name, EQUAL, locked, mine, f"{what}, here to what the keys hold")
    lost = frozenset(at for at, one in enumerate(holds) if one is False)
    if not lost:
        reason = f"{what}; the keys hold something else than it gives here, or what it gives is not known"
        return Fact(name, DIFFERS, locked, mine, reason, None)
    return Fact(name, state_of(holds), locked, mine, f"{what}, which the keys hold", lost)


def _vectors(capability: str | None, features: Sequence[str]) -> str | None:
    """The vector instructions of a capability; unless it names some, the best of a CPU."""
    if capability in _VECTORS:
        return capability
    return next((name for name, feature in _VECTORS.items() if feature in features), None)


def _holds(context: Context, variable: Variable, here: str | None) -> bool | None:
    """Whether the keys of a context hold what a variable gives here.

    False only if they hold what it gave where the lock was made: else a program may have set the option itself.
    """
    fields = [(context[name].detail_hash, rule) for name, rule in variable.fields.items() if name in context]
    given = [(held, hashes_of(rule, here), hashes_of(rule, variable.value)) for held, rule in fields]
    if any(mine is not None and held not in mine and held in (was or ()) for held, mine, was in given):
        return False
    return True if all(held in (mine or ()) for held, mine, _ in given) else None
