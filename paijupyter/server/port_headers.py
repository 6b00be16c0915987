"""What of a request goes on to a port of a task, and what of the answer comes back. Pure.

A program in a task never sees what belongs to the Jupyter server: its cookies, its token, its address. And
its answers hold only below its own path: cookies, redirects, and what speaks for a whole site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus, urlsplit, urlunsplit

from tornado.httputil import HTTPHeaders

COOKIE = "paijupyter-port-"  # before the name of a cookie of a task's program
_HOPS = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_NOT_UP = _HOPS | {
    "host",
    "cookie",
    "authorization",
    "origin",
    "referer",
    "expect",
    "forwarded",
    "x-xsrftoken",
}
_NOT_DOWN = _HOPS | {"set-cookie", "location", "clear-site-data", "strict-transport-security"}
_NOT_DOWN_STARTS = ("access-control-", "service-worker-", "x-jupyter")
_NOT_UP_STARTS = ("sec-websocket-", "x-forwarded-", "x-jupyter", "x-real-ip", "x-scheme", "x-proxy")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a port is seen from outside, and where it is.

    Attributes:
        prefix: its path on the Jupyter server, as it was asked for, without a slash at its end.
        port: its number on this host.
        protocol: of the request from outside, ``http`` or ``https``.
        host: ``Host`` of the request from outside.
    """

    prefix: str
    port: int
    protocol: str
    host: str

    @property
    def address(self) -> str:
        """Host and port as the program knows them."""
        return f"127.0.0.1:{self.port}"


def up(headers: Mapping[str, str], place: Place, *, has_token: bool) -> dict[str, str]:
    """Return the headers for the program.

    Args:
        headers: those of the request.
        place: where it goes.
        has_token: whether a token of the Jupyter server came with the request.
    """
    found = {
        name: value
        for name, value in headers.items()
        if name.lower() not in _NOT_UP and not name.lower().startswith(_NOT_UP_STARTS)
    }
    for name in _named_by(headers.get("Connection", "")):
        found = {key: value for key, value in found.items() if key.lower() != name}
    found |= {
        "Host": place.address,
        "X-Forwarded-Host": place.host,
        "X-Forwarded-Proto": place.protocol,
        "X-Forwarded-Prefix": place.prefix,
    }
    cookies = _cookies_up(headers.get("Cookie", ""))
    if cookies:
        found["Cookie"] = cookies
    authorization = headers.get("Authorization", "")
    if authorization.lower().startswith("basic ") and not has_token:
        found["Authorization"] = authorization  # the program's own: the Jupyter server knows no such
    if "Origin" in headers:
        # The handler has seen that it is ours.
        found["Origin"] = f"http://{place.address}"
    referer = _referer(headers.get("Referer", ""), place)
    if referer:
        found["Referer"] = referer
    return found


def down(headers: HTTPHeaders, place: Place) -> Iterable[tuple[str, str]]:
    """Yield the headers for the browser; some names come several times."""
    hops = _named_by(headers.get("Connection", ""))
    for name, value in headers.get_all():
        low = name.lower()
        if low == "set-cookie":
            cookie = _cookie_down(value, place)
            if cookie:
                yield name, cookie
        elif low in ("location", "content-location"):
            yield name, location(value, place)
        elif low not in _NOT_DOWN and low not in hops and not low.startswith(_NOT_DOWN_STARTS):
            yield name, value


def query(text: str, *, has_token: bool) -> str:
    """Return a query without the Jupyter server's token; all else stays as it was written."""
    if not has_token:
        return text
    return "&".join(part for part in text.split("&") if unquote_plus(part.partition("=")[0]) != "token")


def location(value: str, place: Place) -> str:
    """Return where a redirect leads, as seen from outside; one to another site stays as it is."""
    try:
        parts = urlsplit(value)
        own = parts.hostname in ("127.0.0.1", "localhost") and parts.port in (place.port, None)
    except ValueError:
        return value
    if parts.scheme not in ("", "http", "https"):
        return value
    if parts.netloc and not (own or parts.netloc == place.host):
        return value
    if not parts.netloc and not parts.path.startswith("/"):
        return value  # relative to where the browser is
    path = parts.path or "/"
    if path != place.prefix and not path.startswith(f"{place.prefix}/"):
        path = place.prefix + path
    return urlunsplit(("", "", path, parts.query, parts.fragment))


def _named_by(connection: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in connection.split(",") if name.strip())


def _cookies_up(text: str) -> str:
    cookies = (part.strip() for part in text.split(";"))
    return "; ".join(part.removeprefix(COOKIE) for part in cookies if part.startswith(COOKIE))


def _cookie_down(text: str, place: Place) -> str:
    cookie, *attributes = [part.strip() for part in text.split(";")]
    if not re.match(r"[^\s=;,]+=", cookie):
        return ""
    kept, path = [], "/"
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        if name.strip().lower() == "path" and value.strip().startswith("/"):
            path = value.strip()
        elif name.strip().lower() not in ("path", "domain") and attribute:
            kept.append(attribute)
    below = path if path.startswith(f"{place.prefix}/") else place.prefix + path
    return "; ".join([f"{COOKIE}{cookie}", f"Path={below}", *kept])


def _referer(value: str, place: Place) -> str:
    """Return the page that a request comes from if it is one of the program, as it knows it."""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    if parts.netloc != place.host or not parts.path.startswith(f"{place.prefix}/"):
        return ""
    inside = parts.path[len(place.prefix) :]
    return urlunsplit(("http", place.address, inside, query(parts.query, has_token=True), ""))
