"""Access: who may look, decided from the head of a request alone.

On this machine only, no token is needed; but a page of some other site, open in the same browser, is refused: a
request must name this machine as its host, and a websocket must come from the page that it serves. On other addresses
everything needs the token of the address, which the first page turns into a cookie.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

COOKIE = "lapjoint_token"
PASS_HEADER = "X-Lapjoint-Pass"
"""What the front adds to requests it lets through; the server behind it takes no websocket without it."""


@dataclass(frozen=True)
class Request:
    """The head of an HTTP request; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]

    @staticmethod
    def parse(head: bytes) -> Request | None:
        """None if this is no HTTP request, or has an address that cannot be split, such as `//[`."""
        try:
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, version = first.split(" ")
            pairs = [line.split(":", 1) for line in lines if line]
            headers = {name.strip().lower(): value.strip() for name, value in pairs}
            for address in (target, f"//{headers.get('host', '')}", headers.get("origin", "")):
                urlsplit(address)
        except ValueError:
            return None
        return Request(method, target, headers) if version.startswith("HTTP/1.") else None

    @property
    def is_websocket(self) -> bool:
        return self.headers.get("upgrade", "").lower() == "websocket"


@dataclass(frozen=True)
class Access:
    """The rule for one view."""

    host: str = "localhost"
    token: str | None = None
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    """What the front shows the server behind it."""

    @staticmethod
    def of(host: str) -> Access:
        """The rule for a view at that address: with a token unless only this machine can reach it."""
        return Access(host, None if is_local(host) else secrets.token_urlsafe(24))

    def refusal(self, request: Request) -> str | None:
        """Why a request is refused; None if it is not."""
        served = request.headers.get("host", "")
        if self.token is None:
            if not is_local(host_of(served)):
                return "this view is for this machine only; --host lets others in"
        elif not any(secrets.compare_digest(given, self.token) for given in given_tokens(request)):
            return "the address lacks the token that was printed when the view was started"
        origin = request.headers.get("origin")
        if request.is_websocket and origin is not None and urlsplit(origin).netloc.lower() != served.lower():
            return "a page of another site may not connect"
        return None

    def address(self, port: int) -> str:
        """What a user opens."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.token is None else f"/?token={self.token}"
        return f"http://{shown}:{port}{query}"


def given_tokens(request: Request) -> list[str]:
    """Tokens of a request: in the address, or in the cookie."""
    given = parse_qs(urlsplit(request.target).query).get("token", [])
    for part in request.headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            given.append(value)
    return [token for token in given if token.isascii()]


def host_of(value: str) -> str:
    """A host without its port."""
    return urlsplit(f"//{value}").hostname or ""


def is_local(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
