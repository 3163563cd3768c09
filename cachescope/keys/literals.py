"""Python's literals and expressions in texts of a source: parsed, never evaluated, and without a word.

The compiler warns of what it parses (``invalid escape sequence``) on standard error, and quotes it as it is.
"""

from __future__ import annotations

import ast
import warnings


def literal_value(text: str) -> object:
    """The value of a literal.

    Raises
    ------
    ValueError
        If the text is none, or too deep to be parsed.

    Examples
    --------
    >>> literal_value("{'a': (1, None)}")
    {'a': (1, None)}
    """
    try:
        return ast.literal_eval(parsed_expression(text.lstrip(" \t")))
    except (TypeError, MemoryError, RecursionError) as error:
        # A list as the key of a dictionary is a TypeError.
        raise ValueError(f"no literal: {error}") from error


def parsed_expression(text: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises
    ------
    ValueError
        If the text is none, or too deep to be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"no expression: {error}") from error
