"""Rows of the route table for profiles, stored secrets and the doctor."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import settings
from paijupyter.engine.route import Answer, Route

_PROFILE = Answer("The profile.", s.named("Profile"))

SETTINGS_ROUTES = (
    Route(
        "GET",
        "/v1/profiles",
        settings.profiles,
        "List the profiles",
        {
            200: Answer(
                "The profiles, the default one first.",
                s.record(
                    "profiles",
                    profiles=s.many(s.named("Profile")),
                    default=s.TEXT,
                    problems=s.many(s.TEXT),
                    file=s.TEXT,
                    adminFiles=s.many(s.TEXT),
                ),
            )
        },
    ),
    Route(
        "POST",
        "/v1/profiles",
        settings.add_profile,
        "Write a new profile into the user's file",
        {201: _PROFILE},
        body=s.strict("name settings", name=s.PLAIN, settings=s.OBJECT),
        problems=(409, 422, 501),
    ),
    Route(
        "GET",
        "/v1/profiles/{profile}",
        settings.get_profile,
        "Return one profile, each field with who has said it",
        {200: _PROFILE},
        problems=(404,),
    ),
    Route(
        "DELETE",
        "/v1/profiles/{profile}",
        settings.remove_profile,
        "Take a profile out of the user's file",
        {204: Answer("It is gone."), 200: Answer("What administrators say of it.", s.named("Profile"))},
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/profiles/{profile}/edit",
        settings.edit_profile,
        "Change fields of a profile in the user's file",
        {200: _PROFILE},
        body=s.strict("", set=s.OBJECT, unset=s.many(s.PLAIN)),
        problems=(404, 409, 422, 501),
    ),
    Route(
        "POST",
        "/v1/profiles/{profile}/default",
        settings.choose_profile,
        "Make a profile the default one",
        {200: _PROFILE},
        body=s.strict(),
        problems=(404, 422),
    ),
    Route(
        "POST",
        "/v1/profiles/{profile}/test",
        settings.test_profile,
        "Ask a profile's backend what it can do",
        {
            200: Answer(
                "Whether it answers, and with what.",
                s.record(
                    "name ok message hint problems",
                    name=s.TEXT,
                    kind=s.TEXT,
                    ok=s.FLAG,
                    message=s.TEXT,
                    hint=s.TEXT,
                    problems=s.many(s.TEXT),
                    capabilities=s.maybe(s.OBJECT),
                ),
            )
        },
        body=s.strict(),
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/secrets",
        settings.list_secrets,
        "List the names of the secrets in the keyring, never a value",
        {200: Answer("The names.", s.record("names", names=s.many(s.TEXT)))},
        problems=(422, 501),
    ),
    Route(
        "PUT",
        "/v1/secrets/{name}",
        settings.put_secret,
        "Store a secret in the keyring",
        {204: Answer("It is stored.")},
        body=s.strict("value", value=s.TEXT),
        problems=(422, 501),
    ),
    Route(
        "DELETE",
        "/v1/secrets/{name}",
        settings.remove_secret,
        "Remove a secret from the keyring",
        {204: Answer("It is gone.")},
        problems=(404, 422, 501),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/secrets",
        settings.give_secrets,
        "Give a job that waits for the values of its secrets those values again",
        {200: Answer("The job.", s.named("Job"))},
        body=s.SECRETS_REQUEST,
        problems=(404, 409, 422, 501),
    ),
    Route(
        "GET",
        "/v1/doctor",
        settings.doctor,
        "Check folders, disk, clock, keyring and profiles",
        {
            200: Answer(
                "The checks, each with what mends it.",
                s.record(
                    "checks",
                    checks=s.many(
                        s.record(
                            "name ok message fix",
                            name=s.TEXT,
                            ok=s.FLAG,
                            message=s.TEXT,
                            fix=s.TEXT,
                            needed=s.FLAG,
                        )
                    ),
                ),
            )
        },
    ),
)
