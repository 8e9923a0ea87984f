"""Settings of `connect`: frozen values, checked once on the way in, and the rules that check them."""

from __future__ import annotations

import difflib
import os
import re
import secrets
import socket
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Literal, Protocol, TypedDict, get_args

from msgspec import Struct, field

from bucketq.errors import SettingInvalid

Mode = Literal["auto", "direct", "broker"]
Duration = float | timedelta
"""Seconds, or a timedelta."""

DAY_S = 86_400.0
CENTURY_S = 36_500 * DAY_S
TEXT_CHARS_MAX = 256
_UNCLEAN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Rule(Protocol):
    """Says what a value may be."""

    def check(self, name: str, value: object) -> object:
        """The value as it is kept. Raises `SettingInvalid`, with the rule, if it can't be."""
        ...

    def parse(self, name: str, text: str) -> object:
        """The same from text, as environment variables are."""
        ...


class Whole(Struct, frozen=True):
    """An int in a range; a bool is none."""

    low: int
    high: int

    def check(self, name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise _refused(name, f"an integer from {self.low:,} to {self.high:,}", value)
        return int(value)

    def parse(self, name: str, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise _refused(name, f"an integer from {self.low:,} to {self.high:,}", text) from None
        return self.check(name, number)


class Seconds(Struct, frozen=True):
    """A finite number of seconds in a range, or a timedelta."""

    low: float
    high: float = CENTURY_S

    def check(self, name: str, value: object) -> float:
        if isinstance(value, timedelta):
            value = value.total_seconds()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(name, self._rule, value)
        # a comparison with NaN is never true
        if not self.low <= value <= self.high:
            raise _refused(name, self._rule, value)
        return float(value)

    def parse(self, name: str, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise _refused(name, self._rule, text) from None
        return self.check(name, number)

    @property
    def _rule(self) -> str:
        return f"seconds (a number or a timedelta) from {self.low:g} to {self.high:g}"


class Choice(Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, name: str, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise _refused(name, "one of " + ", ".join(map(repr, self.words)), value)
        return value

    def parse(self, name: str, text: str) -> str:
        return self.check(name, text)


class Flag(Struct, frozen=True):
    """True or False; nothing else counts as one of them."""

    def check(self, name: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise _refused(name, "True or False", value)
        return value

    def parse(self, name: str, text: str) -> bool:
        word = text.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise _refused(name, "true or false", text)


class Text(Struct, frozen=True):
    """Printable text of 1 to 256 characters: no control characters, no lone surrogates."""

    def check(self, name: str, value: object) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= TEXT_CHARS_MAX or not is_clean(value):
            raise _refused(name, f"text of 1 to {TEXT_CHARS_MAX} characters without control characters", value)
        return str(value)

    def parse(self, name: str, text: str) -> str:
        return self.check(name, text)


class Nullable(Struct, frozen=True):
    """What another rule allows, or None."""

    rule: Rule

    def check(self, name: str, value: object) -> object:
        return None if value is None else self.rule.check(name, value)

    def parse(self, name: str, text: str) -> object:
        return None if text.strip().lower() in ("", "none") else self.rule.parse(name, text)


def is_clean(text: str) -> bool:
    """Whether text has neither control characters nor lone surrogates."""
    return _UNCLEAN.search(text) is None


def unknown(what: str, name: str, known: Iterable[str]) -> SettingInvalid:
    """The error for a name that is not among the known ones."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return SettingInvalid(f"no {what} is called {name!r}{hint} Known: {', '.join(known)}")


def shown(value: object) -> str:
    """A value for an error message: short, whatever it is."""
    try:
        text = ascii(value)
    except Exception:
        text = "something that can't be shown"
    return text if len(text) <= 80 else text[:77] + "..."


def _refused(name: str, rule: str, value: object) -> SettingInvalid:
    return SettingInvalid(f"{name} must be {rule}; got {shown(value)} ({type(value).__name__})")


def default_worker() -> str:
    """Host, process and something random, so that two workers are never confused."""
    host = socket.gethostname()
    return f"{host[:100] if host and is_clean(host) else 'host'}-{os.getpid()}-{secrets.token_hex(3)}"


class Options(TypedDict, total=False):
    """The settings of `connect`, as callers name them. Durations are seconds or timedeltas."""

    mode: Mode
    payload_bytes_max: int
    commit_interval: Duration
    batch_count_max: int
    batch_bytes_max: int
    clock_skew_max: Duration
    archive_retention: Duration | None
    inline_bytes_max: int
    conflict_timeout: Duration
    probe: bool
    worker: str


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a client, checked. Made by `Settings.checked`."""

    mode: Mode = "auto"
    """`direct` commits by itself, `broker` insists on a broker, `auto` takes a broker if one answers."""
    payload_bytes_max: int = 256 << 10
    """Of a payload, result or progress, encoded."""
    commit_interval_s: float = 0.0
    batch_count_max: int = 10_000
    batch_bytes_max: int = 4 << 20
    clock_skew_max_s: float = 600.0
    archive_retention_s: float | None = None
    inline_bytes_max: int = 1 << 20
    """Past this size of the state a queue goes from inline to log mode."""
    conflict_timeout_s: float = 60.0
    probe: bool = True
    """Whether the store is probed for conditional writes before it is trusted."""
    worker: str = field(default_factory=default_worker)
    """The name under which this client claims, unless the claim says another."""

    @classmethod
    def checked(cls, environ: Mapping[str, str] | None = None, /, **given: object) -> Settings:
        """Settings as given, else from `BUCKETQ_<NAME>` variables (of `os.environ`), else the defaults.

        Raises `SettingInvalid` for an unknown name and for a value that can't be.
        """
        environ = os.environ if environ is None else environ
        for name in given:
            if name not in _RULES:
                raise unknown("setting of connect", name, _RULES)
        values: dict[str, object] = {}
        for name, (field_name, rule) in _RULES.items():
            variable = f"BUCKETQ_{name.upper()}"
            if name in given:
                values[field_name] = rule.check(name, given[name])
            elif variable in environ:
                values[field_name] = rule.parse(variable, environ[variable])
        return cls(**values)  # type: ignore[arg-type]


_BYTES_MAX = 1 << 30

_RULES: dict[str, tuple[str, Rule]] = {
    "mode": ("mode", Choice(get_args(Mode))),
    "payload_bytes_max": ("payload_bytes_max", Whole(1, _BYTES_MAX)),
    "commit_interval": ("commit_interval_s", Seconds(0.0, 3_600.0)),
    "batch_count_max": ("batch_count_max", Whole(1, 1_000_000)),
    "batch_bytes_max": ("batch_bytes_max", Whole(1, _BYTES_MAX)),
    "clock_skew_max": ("clock_skew_max_s", Seconds(1.0, 365 * DAY_S)),
    "archive_retention": ("archive_retention_s", Nullable(Seconds(0.0))),
    "inline_bytes_max": ("inline_bytes_max", Whole(0, _BYTES_MAX)),
    "conflict_timeout": ("conflict_timeout_s", Seconds(0.1, 3_600.0)),
    "probe": ("probe", Flag()),
    "worker": ("worker", Text()),
}
