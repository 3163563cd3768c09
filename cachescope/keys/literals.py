"""Parses Python literals and expressions in texts of a source: never evaluated, and without warnings.

The compiler's warnings about the text (``invalid escape sequence``) would go to standard error and quote it unescaped.
"""

from __future__ import annotations

import ast
import warnings


def literal_value(text: str) -> object:
    """The value of a literal.

    Raises
    ------
    ValueError
        If the text is no literal, or nested too deep to be parsed.

    Examples
    --------
    >>> literal_value("{'a': (1, None)}")
    {'a': (1, None)}
    """
    try:
        return ast.literal_eval(parsed_expression(text.lstrip(" \t")))
    except (TypeError, MemoryError, RecursionError) as error:
        # A list as a dictionary key raises TypeError.
        raise ValueError(f"no literal: {error}") from error


def parsed_expression(text: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises
    ------
    ValueError
        If the text is no expression, or nested too deep to be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"no expression: {error}") from error
