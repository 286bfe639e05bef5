"""Who may talk to the explorer, and what a browser may do with its answers.

A page elsewhere can point its own host name at 127.0.0.1 (DNS rebinding), or send requests across
origins; checking Host, Origin and Sec-Fetch-Site stops both. Beyond the own machine a token is
needed.
"""

import ipaddress
import re
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.explorer.pages import POLICY
from headscope.explorer.wire import RefusedError

COOKIE = "headscope_token"
_HOST = re.compile(
    r"(?:\[(?P<ipv6>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9](?:[a-z0-9._-]{0,252})))(?::[0-9]{1,5})?",
    re.ASCII,
)
HEADERS = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

# The page of one head may stand in a frame, such as that of a notebook on the same machine.
EMBEDDED = "/embed"
FRAMES = "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
EMBEDDED_HEADERS = {name: value for name, value in HEADERS.items() if name != "x-frame-options"} | {
    "content-security-policy": f"{POLICY}; {FRAMES}"
}


@dataclass(frozen=True)
class Access:
    """The address that the explorer listens on, and the token that visitors from elsewhere need."""

    host: str = "127.0.0.1"
    token: str | None = None

    @staticmethod
    def for_host(host: str) -> "Access":
        """No token on the own machine, a fresh one on any other address."""
        return Access(host, None if is_loopback(host) else secrets.token_urlsafe(24))


class Guard:
    """Checks every request before the app sees it and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = EMBEDDED_HEADERS if scope["path"] == EMBEDDED else HEADERS
                MutableHeaders(scope=message).update(headers)
            await send(message)

        answer = self._answer(scope) or self.app
        await answer(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        try:
            check_host(headers.get("host", ""), self.access.host)
            check_origin(headers, scope["method"])
            return self._admit(scope, headers)
        except RefusedError as refusal:
            return JSONResponse({"error": refusal.message}, refusal.status)

    def _admit(self, scope: Scope, headers: Headers) -> Response | None:
        if self.access.token is None or self._knows_token(_cookie(headers) or _bearer(headers)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        if scope["method"] == "GET" and self._knows_token(dict(query).get("token")):
            return self._remember(scope["path"], [pair for pair in query if pair[0] != "token"])
        raise RefusedError(
            401, "This explorer needs its token: open the address that `headscope serve` printed."
        )

    def _knows_token(self, given: str | None) -> bool:
        expected = self.access.token or ""
        return given is not None and secrets.compare_digest(given.encode(), expected.encode())

    def _remember(self, path: str, query: list[tuple[str, str]]) -> Response:
        """Move the token from the address, where it could be seen, into a cookie."""
        target = "/" + path.lstrip("/")  # never //host: that would leave this server
        answer = RedirectResponse(f"{target}?{urlencode(query)}" if query else target, 303)
        answer.set_cookie(COOKIE, self.access.token or "", httponly=True, samesite="strict")
        return answer


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    address = _ip(host)
    return address is not None and address.is_loopback


def check_host(header: str, bound: str) -> None:
    """Refuse names that could be somebody else's; an IP address cannot be rebound."""
    name = _host_name(header)
    if name and (is_loopback(name) or name == bound.lower()):
        return
    if name and not is_loopback(bound) and _ip(name) is not None:
        return
    raise RefusedError(421, f"The explorer does not answer to the host name {header[:80]!r}.")


def check_origin(headers: Headers, method: str) -> None:
    """Refuse requests that another site's page makes; following a link here is fine."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != headers["host"].lower():
        raise RefusedError(403, f"Requests from the origin {origin!r} are refused.")
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return
    if not (method == "GET" and headers.get("sec-fetch-mode") == "navigate"):
        raise RefusedError(403, "Requests from other sites are refused.")


def _host_name(header: str) -> str:
    """The name or address of a Host header; "" where it is not exactly host or host:port."""
    found = _HOST.fullmatch(header.lower())
    if found is None:
        return ""
    if found["ipv6"] is not None:
        return found["ipv6"] if isinstance(_ip(found["ipv6"]), ipaddress.IPv6Address) else ""
    return found["name"]


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _cookie(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _bearer(headers: Headers) -> str | None:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value if kind.lower() == "bearer" else None
