"""Answers that are worked out once: what `functools.cached_property` is for a property, for a method with arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

Asked = TypeVarTuple("Asked")
Answer = TypeVar("Answer")


def kept(method: Callable[[Any, *Asked], Answer]) -> Callable[[Any, *Asked], Answer]:
    """A method whose answers are kept with its object, by its arguments.

    >>> class Asked:
    ...     times = 0
    ...     @kept
    ...     def often(self, word):
    ...         self.times += 1
    ...         return f"{word} {self.times}"
    >>> asked = Asked()
    >>> asked.often("a"), asked.often("b"), asked.often("a")
    ('a 1', 'b 2', 'a 1')
    """
    name = f"_kept_{method.__name__}"

    @wraps(method)
    def answer(self: Any, *asked: *Asked) -> Answer:
        known = self.__dict__.setdefault(name, {})
        if asked not in known:
            known[asked] = method(self, *asked)
        return known[asked]  # type: ignore[no-any-return]

    return answer
