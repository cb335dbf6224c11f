"""Plain values (of JSON) as typed configurations, and back."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, field, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import msgspec

T = TypeVar("T")


def policy_field(default: Any) -> Any:
    """A field of a task's configuration that a policy relies on, such as how actions are scaled.

    A policy is refused by a task whose value differs from the one that it was trained with.
    """
    return field(default=default, metadata={"policy": True})


def to_plain(config: Any) -> dict[str, Any]:
    """A dataclass as JSON would have it: nested dictionaries, lists, numbers, texts."""
    return json.loads(json.dumps(asdict(config), default=str))


def with_defaults(values: Any, config: Any) -> Any:
    """Plain values from a file, with today's defaults for fields that are newer than it.

    Args:
        values: As `to_plain` gave them then.
        config: A dataclass of today whose fields count, its own dataclasses' too; its values do not.
    """
    if not is_dataclass(config) or not isinstance(values, dict):
        return values
    found = {name: with_defaults(value, getattr(config, name, None)) for name, value in values.items()}
    for new in (f for f in fields(config) if f.name not in values):
        if new.default is not MISSING or new.default_factory is not MISSING:
            default = new.default if new.default_factory is MISSING else new.default_factory()
            default = to_plain(default) if is_dataclass(default) else default
            found[new.name] = json.loads(json.dumps(default, default=str))
    return found


def from_plain(cls: type[T], values: Any, where: str) -> T:
    """A dataclass from plain values; what is left out has its default.

    Args:
        cls: The dataclass.
        values: As `to_plain` gives them.
        where: File and key, for messages.

    Raises:
        ValueError: A value has another type or is refused, a name is unknown, or one is missing that a policy
            relies on; the message names it.
    """
    _check_names(cls, values, where)
    return typed(values, cls, where)


def typed(value: Any, of: Any, where: str) -> Any:
    """A value as a type.

    Raises:
        ValueError: It is another; the message names the place and what was expected there.
    """
    try:
        return msgspec.convert(value, of, dec_hook=lambda kind, given: kind(given))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        words, _, path = str(error).partition(" - at `$")
        key = path.strip("`.")
        raise ValueError(" ".join(f"{where}: {f'{key}: ' if key else ''}{words}".split())) from error


def _check_names(cls: type, values: Any, where: str) -> None:
    if not isinstance(values, dict):
        raise ValueError(f"{where} must hold values by name, got {type(values).__name__}")
    known, kinds = {f.name: f for f in fields(cls)}, get_type_hints(cls)  # type: ignore[arg-type]
    unknown = sorted(values.keys() - known.keys())
    if unknown:
        raise ValueError(
            f"{where} has no '{unknown[0]}'; {cls.__name__} knows {', '.join(known) or 'nothing'}"
        )
    for name, found in known.items():
        if name not in values and found.metadata.get("policy"):
            raise ValueError(f"{where}: '{name}' is missing, and policies rely on it")
        if name in values and is_dataclass(kinds[name]):
            _check_names(kinds[name], values[name], f"{where}.{name}")  # type: ignore[arg-type]


NAMED = 3
"""So many differences are told one by one."""


def difference(before: Any, now: Any) -> str:
    """What differs between two trees of plain values, as `name: value, now value`; empty if nothing does."""
    lines = _differences(before, now, "")
    more = f"; and {len(lines) - NAMED} more" if len(lines) > NAMED else ""
    return "; ".join(lines[:NAMED]) + more


def _differences(before: Any, now: Any, name: str) -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted(before.keys() | now.keys())
        parts = [_differences(before.get(k), now.get(k), f"{name}.{k}" if name else k) for k in keys]
        return [line for part in parts for line in part]
    return [] if before == now else [f"{name}: {before}, now {now}"]
