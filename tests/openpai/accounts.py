"""Users, their tokens, and what may be asked how often."""

from __future__ import annotations

import base64
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.openpai.answers import Refused

LOGIN_SECONDS = 7 * 24 * 3600
SHORTEST_PASSWORD = 6


@dataclass
class User:
    """A user of the cluster."""

    name: str
    password: str
    virtual_clusters: list[str] = field(default_factory=lambda: ["default"])
    storages: list[str] = field(default_factory=list)
    admin: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the record that every user can read, key of job SSH and all."""
        return {
            "username": self.name,
            "grouplist": ["default"],
            "email": f"{self.name}@example.com",
            "extension": {"jobSSH": {"key": "PRIVATE-KEY-OF-JOB-SSH", "pubKey": "ssh-rsa public"}},
            "admin": self.admin,
            "virtualCluster": list(self.virtual_clusters),
            "storageConfig": list(self.storages),
        }


@dataclass
class Token:
    """A token that the server knows. `expires`: seconds since the epoch, None for an application's."""

    user: str
    issued: float
    expires: float | None

    @property
    def application(self) -> bool:
        """Whether it is an application's."""
        return self.expires is None


class Accounts:
    """Users and tokens."""

    def __init__(self) -> None:
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}

    def login(self, body: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Return the answer to a login.

        Raises:
            Refused: 400 with one of three codes.
        """
        name, password = str(body.get("username", "")), str(body.get("password", ""))
        if len(password) < SHORTEST_PASSWORD:
            raise Refused(
                400,
                "InvalidParametersError",
                'child "password" fails because ["password" length must be at least 6 characters long]',
            )
        if name not in self.users:
            raise Refused(400, "NoUserError", f"User {name} is not found.")
        if self.users[name].password != password:
            raise Refused(400, "IncorrectPasswordError", "Password is incorrect.")
        token = self.issue(name, now, now + LOGIN_SECONDS)
        return {"user": name, "token": token, "admin": self.users[name].admin}

    def issue(self, user: str, now: float, expires: float | None = None) -> str:
        """Return a new token."""
        token = f"ey.{secrets.token_urlsafe(24)}"
        self.tokens[token] = Token(user, now, expires)
        return token

    def who(self, headers: Mapping[str, str], now: float) -> Token:
        """Return the token of a request.

        Raises:
            Refused: 401: there is none, or it is no longer good.
        """
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if not given:
            raise Refused(401, "UnauthorizedUserError", "Guest is not allowed to do this operation.")
        if scheme == "Basic":
            try:
                given = base64.b64decode(given).decode().partition(":")[2]
            except ValueError:
                given = ""
        token = self.tokens.get(given)
        if token is None or (token.expires is not None and token.expires <= now):
            raise Refused(401, "UnauthorizedUserError", "Your token is invalid.")
        return token


@dataclass
class Limits:
    """Requests that are let through in a window, per kind; as deployed by default."""

    all: int = 600
    list: int = 120
    submit: int = 3600
    _used: Counter[tuple[str, int]] = field(default_factory=Counter)

    WINDOWS = {"all": 60, "list": 60, "submit": 3600}  # noqa: RUF012 - seconds

    def count(self, kind: str, now: float) -> dict[str, str]:
        """Count a request and return the headers of its answer.

        Raises:
            Refused: 429, a text and no JSON.
        """
        window = self.WINDOWS[kind]
        limit = getattr(self, kind)
        key = (kind, int(now // window))
        self._used[key] += 1
        headers = {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(0, limit - self._used[key])),
        }
        if self._used[key] > limit:
            raise TooMany({**headers, "Retry-After": str(window), "Content-Type": "text/html; charset=utf-8"})
        return headers


class TooMany(Exception):
    """More requests than the limit lets through."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("429")
        self.headers = headers
