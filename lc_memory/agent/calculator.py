"""Arithmetic for a model: a number from an expression, and nothing else can happen.

Read by Python's parser into a syntax tree of which only numbers, ``+ - * / // % **`` and brackets are
walked; there is no eval. Computed in fractions, so that 0.1 + 0.2 is 0.3. Refused before they cost anything:
a long text, deep nesting, a number of more than about a thousand digits.
"""

from __future__ import annotations

import ast
import operator
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, Inexact, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any

from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field

LONGEST = 500
"""Characters of an expression."""
DEEPEST = LONGEST // 2
"""Levels of the syntax tree: a sum has as many as it has terms."""
BITS = 4096
"""Of a numerator or denominator on the way; about 1200 decimal digits."""
DIGITS = 15
"""Significant digits of a result that no decimal number of up to 50 digits is."""

_SIGNS = str.maketrans(
    {"×": "*", "✕": "*", "·": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "—": "-", "^": "**"}
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PERCENT = re.compile(r"(?<=[\d)])\s*%(?=\s*(?:[-+*/),]|$))")  # "15%"; "10 % 3" is a remainder
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_TAKES = "numbers, + - * / // % ** and brackets"


def calculate(expr: str) -> str:
    """The value of an arithmetic expression, as text.

    Full-width characters, ``×``, ``÷``, ``^`` for a power, ``1,234`` and ``15%`` are understood.
    ToolException, which says what is wrong, for whatever else, and for numbers of no usual size.
    """
    if len(expr) > LONGEST:
        raise ToolException(f"the expression has {len(expr)} characters; at most {LONGEST} are taken")
    plain = unicodedata.normalize("NFKC", expr.translate(_SIGNS)).translate(_SIGNS)
    plain = _PERCENT.sub("/100", _THOUSANDS.sub("", plain)).strip().rstrip("=").strip()
    if not plain:
        raise ToolException("the expression is empty")
    try:
        tree = ast.parse(plain, mode="eval")
        return _shown(_value(tree.body, plain, 0))
    except ToolException:
        raise
    except ZeroDivisionError:
        raise ToolException("division by zero") from None
    except OverflowError:
        raise _too_large() from None
    except (SyntaxError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise ToolException(f"{expr!r:.80} is no arithmetic expression ({type(error).__name__})") from None


def _value(node: ast.expr, text: str, depth: int) -> Fraction:
    if depth > DEEPEST:
        raise ToolException(f"the expression is nested more than {DEEPEST} deep")
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _number(ast.get_source_segment(text, node) or "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        value = _value(node.operand, text, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, text, depth + 1), _value(node.right, text, depth + 1)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if type(node.op) in _BINARY:
            return _bounded(Fraction(_BINARY[type(node.op)](left, right)))
    raise ToolException(f"{type(node).__name__} is not arithmetic: only {_TAKES} are taken")


def _number(written: str) -> Fraction:
    try:
        number = Decimal(written)  # not float: all digits count; and 1e999999 stays three numbers
    except InvalidOperation:
        number = Decimal(int(written, 0))  # 0x1F, 0b11
    if number and abs(number.adjusted()) > BITS // 4:
        raise _too_large()
    return _bounded(Fraction(number))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if size > 1 and (size - 1) * abs(exponent.numerator) > BITS:  # it has at least as many bits
            raise _too_large()
        return _bounded(Fraction(base**exponent.numerator)) if size > 1 else _unit(base, exponent.numerator)
    root = float(base) ** float(exponent)
    if isinstance(root, complex):
        raise ToolException("a fractional power of a negative number is no real number")
    return Fraction(repr(root))


def _unit(base: Fraction, exponent: int) -> Fraction:
    """A power of 0, 1 or -1, whose exponent may be of any size."""
    if base == 0:
        if exponent < 0:
            raise ZeroDivisionError
        return Fraction(int(exponent == 0))
    return base if exponent % 2 else Fraction(1)


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS:
        raise _too_large()
    return value


def _too_large() -> ToolException:
    return ToolException(f"the numbers get too large: at most about {BITS * 3 // 10} digits are computed")


def _shown(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    with localcontext() as context:
        context.prec, context.traps[Inexact] = 50, True
        try:
            rounded = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
        except Inexact:
            context.prec, context.traps[Inexact] = DIGITS, False
            rounded = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    return f"{rounded:f}" if -7 < rounded.adjusted() < 21 else f"{rounded:E}"


class _Arguments(BaseModel):
    expr: str = Field(description="an arithmetic expression, such as (1+2)*3.5 or 2**10")


class CalculatorTool(BaseTool):
    """``calculator(expr)`` as a LangChain tool; see :func:`calculate`."""

    name: str = "calculator"
    description: str = (
        "Computes an arithmetic expression exactly: + - * / // % ** and brackets. 四则运算，如 1+2*3。"
    )
    args_schema: type[BaseModel] = _Arguments

    def _run(self, expr: str, **_: Any) -> str:
        return calculate(expr)


__all__ = ["CalculatorTool", "calculate"]
