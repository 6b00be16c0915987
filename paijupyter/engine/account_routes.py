"""Rows of the route table for logins and what a profile offers."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import accounts
from paijupyter.engine.route import Answer, Parameter, Route

_LOGIN = "/v1/profiles/{profile}/login"
_EXPIRES = s.maybe({"type": "number"})
_RESOURCES = s.record(
    "cpu memoryMB gpu", cpu={"type": "number"}, memoryMB={"type": "number"}, gpu={"type": "number"}
)

ACCOUNT_ROUTES = (
    Route(
        "GET",
        _LOGIN,
        accounts.get_account,
        "Say who is logged in at a profile's server; never with what",
        {
            200: Answer(
                "The user, empty for nobody; how one logs in there.",
                s.record(
                    "profile user where",
                    profile=s.TEXT,
                    user=s.TEXT,
                    where=s.TEXT,
                    expires=_EXPIRES,
                    expired=s.FLAG,
                    noKeyring=s.TEXT,
                    application=s.FLAG,
                    authn=s.TEXT,
                    page=s.TEXT,
                    variable=s.TEXT,
                    version=s.TEXT,
                ),
            )
        },
        problems=(401, 404, 409, 422, 502, 503),
    ),
    Route(
        "POST",
        _LOGIN,
        accounts.log_in,
        "Log in at a profile's server by user and password, or by a token; what it gives is kept",
        {
            200: Answer(
                "Who is logged in, and where that is kept.",
                s.record("profile user where", profile=s.TEXT, user=s.TEXT, where=s.TEXT, expires=_EXPIRES),
            )
        },
        body=s.strict(
            "",
            user=s.PLAIN,
            password=s.TEXT,
            token=s.TEXT,
            store={"type": "string", "enum": ["keyring", "file"]},
        ),
        problems=(401, 404, 409, 422, 502, 503),
    ),
    Route(
        "DELETE",
        _LOGIN,
        accounts.log_out,
        "Forget what logins have kept of a profile",
        {
            200: Answer(
                "Where it was, and the page that revokes tokens.",
                s.record("profile forgotten portal", profile=s.TEXT, forgotten=s.many(s.TEXT), portal=s.TEXT),
            )
        },
        problems=(404, 409, 422),
    ),
    Route(
        "GET",
        "/v1/profiles/{profile}/offers",
        accounts.get_offers,
        "Return what a form offers for a profile: virtual clusters, SKUs, storages, images",
        {
            200: Answer(
                "The choices; kept for some minutes.",
                s.record(
                    "profile virtualClusters skus storages images",
                    profile=s.TEXT,
                    user=s.TEXT,
                    virtualClusters=s.many(
                        s.record("name", name=s.TEXT, dedicated=s.FLAG, free=_RESOURCES, total=_RESOURCES)
                    ),
                    skus=s.OBJECT,
                    storages=s.many(s.record("name", name=s.TEXT, default=s.FLAG, own=s.FLAG, mount=s.TEXT)),
                    images=s.many(s.TEXT),
                ),
            )
        },
        query=(Parameter("refresh", "ask the server again", s.FLAG),),
        problems=(401, 403, 404, 422, 502, 503),
    ),
)
