"""What letters between server and hosts have: the values of each kind. One that lacks one of them is none: who receives
it gives up who has sent it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .link import Letter

Rule = Callable[[Any], bool]
WORKERS = 1 << 16
"""Numbers of workers and machines are below this."""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_room(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40


def _is_number(value: Any) -> bool:
    return type(value) is int and -1 <= value < WORKERS


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1e9


def _list_of(rule: Rule) -> Rule:
    return lambda value: type(value) is list and all(map(rule, value))


def _row_of(*rules: Rule) -> Rule:
    def is_row(value: Any) -> bool:
        return type(value) is list and len(value) == len(rules) and all(r(v) for r, v in zip(rules, value, strict=True))

    return is_row


def _is_ticket(value: Any) -> bool:
    return (
        type(value) is dict and value.keys() == {"at", "token"} and _is_place(value["at"]) and _is_token(value["token"])
    )


def _is_place(value: Any) -> bool:
    return _row_of(_is_text, lambda port: _is_count(port) and port < 1 << 16)(value)


def _is_token(value: Any) -> bool:
    return type(value) is str and len(value) % 2 == 0 and set(value) <= set("0123456789abcdef")


def _is_block(value: Any) -> bool:
    return (
        type(value) is dict and value.keys() == {"pid", "fd", "size", "inode"} and all(map(_is_count, value.values()))
    )


_NUMBERS = _list_of(_is_number)
_TEXTS = _list_of(_is_text)

ASKED: dict[str, dict[str, Rule]] = {
    "open": {"machine": _is_number, "memory": _list_of(_is_block)},
    "start": {
        "workers": _NUMBERS,
        "seconds": _is_duration,
        "scene": lambda value: value is None or _is_block(value),
        "params": lambda value: type(value) is dict,
        "rows": _row_of(_is_room, _is_room),
        "body_room": _is_room,
        "mail_room": _is_room,
    },
    "stop": {"workers": _NUMBERS},
    "listen": {"address": _is_text, "machines": _NUMBERS},
    "connect": {"tickets": _list_of(_row_of(_is_number, _is_text, _is_ticket))},
    "let in": {"seconds": _is_duration},
    "disconnect": {"machines": _NUMBERS},
    "make room": {"machines": _NUMBERS, "mail_room": _is_room, "body_room": _is_room},
    "step": {"workers": _NUMBERS},
    "give up": {"workers": _NUMBERS, "seconds": _is_duration},
    "offer": {"address": _is_text},
    "keep at": {"ticket": _is_ticket},
    "recall": {"worker": _is_number},
}
"""What the server sends hosts, by kind."""
ANSWERED: dict[str, dict[str, Rule]] = {
    "open": {"pid": _is_count, "digest": _is_text, "shared": _is_flag},
    "start": {"pids": _list_of(_row_of(_is_number, _is_count)), "errors": _TEXTS},
    "listen": {"tickets": _list_of(_row_of(_is_number, _is_ticket))},
    "connect": {"errors": _TEXTS},
    "let in": {"missing": _NUMBERS},
    "answers": {"workers": _NUMBERS, "failed": _NUMBERS, "alone": _is_flag},
    "who": {"late": _list_of(_row_of(_is_number, _is_duration)), "waiting": _NUMBERS, "sending": _is_flag},
    "offer": {"ticket": _is_ticket},
    "keep at": {"error": _is_text},
}
"""What hosts send the server."""


def checked(letter: Letter, table: dict[str, dict[str, Rule]]) -> Letter:
    """The letter, if it has the values of its kind; ValueError if not. Kinds that are not listed have none that are
    needed."""
    for name, rule in table.get(letter.kind, {}).items():
        if name not in letter.values or not rule(letter.values[name]):
            raise ValueError(f"a letter {letter.kind!r} without its {name}")
    return letter
