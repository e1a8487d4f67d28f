"""Types and validators of topic configs, as Apache Kafka 4.3.1 reads and checks their values.

A type reads a text (`read`) and validates the value, or raises with Kafka's message. Measured: 90
values for each of the 33 topic configs, in CreateTopics
(`tests/broker/topic_configs_measured.json`).

Numbers are read as in Java: surrounding blanks are ignored, a sign is allowed, and every decimal
digit of Unicode counts. After `Invalid value` Kafka's message has the text itself if it could not
be read, and the value that was read if the validator refused it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ottla.broker.arguments.arguments import INT32_MAX, INT64_MAX
from ottla.log.types import Unpacked

_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `trim` removes."""
_LONGEST_NUMBER = 40
"""Most digits of a number, with leading zeros: Python refuses numbers of some thousand digits."""
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEX_DIGITS = r"([0-9a-f]+\.?|[0-9a-f]*\.[0-9a-f]+)"
_HEX_DOUBLE = re.compile(
    rf"(?P<number>[+-]?0x{_HEX_DIGITS}p[+-]?\d+)[fd]?", re.ASCII | re.IGNORECASE
)
_COMMAS = re.compile(r"\s*,\s*", re.ASCII)
_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")


class UnreadableError(ValueError):
    """A text that Kafka refuses. The message is the reason in Kafka's message."""

    def __init__(self, why: str, value: str | None = None, *, whole: bool = False) -> None:
        super().__init__(why)
        self.value = value
        """How Kafka's message writes the value; None: as the text itself."""
        self.whole = whole
        """Whether the message is Kafka's whole message."""


Read: TypeAlias = Callable[[str, str], Unpacked]


class ConfigType(NamedTuple):
    """A type with its validator."""

    word: str
    """Kafka's name of the type and what its validator allows, for pages."""
    read: Read
    """`read(name, text)` returns the value. Raises `UnreadableError`."""
    written: str
    """What a user writes for it in Python, for error messages."""
    takes_truth: bool = False
    takes_number: bool = False
    takes_fraction: bool = False


def whole_number(text: str) -> int | None:
    """The decimal integer in a text, as Java reads it; None if there is none."""
    digits = text.strip(_BLANKS)
    unsigned = digits[1:] if digits[:1] in {"-", "+"} else digits
    if not unsigned.isdecimal() or len(unsigned) > _LONGEST_NUMBER:
        return None
    return int(digits)


def _at_most(word: str, largest: int, least: int, most: int | None, *, besides: int | None) -> Read:
    def read(_: str, text: str) -> int:
        value = whole_number(text)
        if value is None or not -largest - 1 <= value <= largest:
            raise UnreadableError(f"Not a number of type {word}")
        if besides is not None:
            if value != besides and not least <= value <= (most or largest):
                why = f"Value must be between {least} and {most} or equal to {besides}"
                raise UnreadableError(why, str(value))
            return value
        if value < least:
            raise UnreadableError(f"Value must be at least {least}", str(value))
        if most is not None and value > most:
            raise UnreadableError(f"Value must be no more than {most}", str(value))
        return value

    return read


def _range(least: int, most: int | None, smallest: int, besides: int | None) -> str:
    if most is not None:
        said = f", {least} to {most}"
    else:
        said = f", at least {least}" if least > smallest else ""
    return said if besides is None else f"{said} or {besides}"


def int_type(least: int, most: int | None = None, besides: int | None = None) -> ConfigType:
    """A 32 bit integer from `least` to `most`, or the value `besides`."""
    word = "int" + _range(least, most, -INT32_MAX - 1, besides)
    read = _at_most("INT", INT32_MAX, least, most, besides=besides)
    return ConfigType(word, read, "a whole number", takes_number=True)


def long_type(least: int = -INT64_MAX - 1) -> ConfigType:
    """A 64 bit integer from `least` on."""
    word = "long" + _range(least, None, -INT64_MAX - 1, None)
    read = _at_most("LONG", INT64_MAX, least, None, besides=None)
    return ConfigType(word, read, "a whole number", takes_number=True)


def _double(_: str, text: str) -> float:
    value = parse_double(text.strip(_BLANKS))
    if value is None:
        raise UnreadableError("Not a number of type DOUBLE")
    if value < 0:
        raise UnreadableError("Value must be at least 0", java_double(value))
    if value > 1:
        raise UnreadableError("Value must be no more than 1", java_double(value))
    return value


def parse_double(text: str) -> float | None:
    """The double in a text, as Java reads it; None if there is none.

    >>> parse_double("1e-1d"), parse_double("0x1p-1"), parse_double("-0x.8p9999"), parse_double("x")
    (0.1, 0.5, -inf, None)
    """
    if found := _HEX_DOUBLE.fullmatch(text):
        try:
            return float.fromhex(found["number"])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    if not _DOUBLE.fullmatch(text):
        return None
    return float(text.rstrip("fFdD") if text[-1:] in "fFdD" else text)


def java_double(value: float) -> str:
    """A double as Java writes it.

    >>> java_double(2.0), java_double(6.048e8), java_double(0.0001), java_double(float("-inf"))
    ('2.0', '6.048E8', '1.0E-4', '-Infinity')
    """
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        exponent = str(math.floor(math.log10(abs(value))))
        digits = mantissa.replace("-", "").replace(".", "").strip("0") or "0"
        mantissa = ("-" if value < 0 else "") + f"{digits[0]}.{digits[1:] or '0'}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _boolean(_: str, text: str) -> bool:
    # Java's `equalsIgnoreCase` compares upper cases; the upper case of the long s (U+017F) is S.
    word = text.strip(_BLANKS).upper()
    if word not in {"TRUE", "FALSE"}:
        raise UnreadableError("Expected value to be either true or false")
    return word == "TRUE"


def string_type(*words: str) -> ConfigType:
    """One of these words."""

    def read(_: str, text: str) -> str:
        word = text.strip(_BLANKS)
        if word not in words:
            raise UnreadableError(f"String must be one of: {', '.join(words)}", word)
        return word

    return ConfigType(f"string: {', '.join(words)}", read, "a text")


def _split(text: str) -> list[str]:
    trimmed = text.strip(_BLANKS)
    return _COMMAS.split(trimmed) if trimmed else []


def list_type(*words: str) -> ConfigType:
    """A list of these words, separated by commas; it may be empty."""

    def read(name: str, text: str) -> list[str]:
        members = _split(text)
        if "" in members:
            why = f"Configuration '{name}' values must not be empty."
            raise UnreadableError(why, whole=True)
        for each in members:
            if each not in words:
                raise UnreadableError(f"String must be one of: {', '.join(words)}", each)
        return list(dict.fromkeys(members))

    return ConfigType(f"list of: {', '.join(words)}", read, "a text")


def _replicas(name: str, text: str) -> list[str]:
    members = _split(text)
    if members != ["*"] and not all(map(_REPLICA.fullmatch, members)):
        why = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise UnreadableError(why, f"[{', '.join(members)}]")
    return members


BOOLEAN = ConfigType("boolean", _boolean, "True or False", takes_truth=True)
DOUBLE = ConfigType("double, 0 to 1", _double, "a number", takes_number=True, takes_fraction=True)
REPLICAS = ConfigType("list of partition:broker, or *", _replicas, "a text")


def refusal_of(kind: ConfigType, name: str, text: str) -> str:
    """Kafka's message if it refuses this text for a config; empty if it accepts it."""
    try:
        kind.read(name, text)
    except UnreadableError as error:
        shown = text if error.value is None else error.value
        return str(error) if error.whole else invalid(name, shown, str(error))
    return ""


def invalid(name: str, value: str, why: str) -> str:
    """Kafka's message for a refused value of a config."""
    return f"Invalid value {value} for configuration {name}: {why}"
