"""How the server of a profile is reached: its settings, its token and its share of the calls."""

from __future__ import annotations

from functools import partial

from paijupyter.backends.base import Profile
from paijupyter.backends.openpai.budget import Budget
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.settings import OpenPaiSettings, settings_of
from paijupyter.backends.openpai.tokens import token_of


def client_of(profile: Profile, settings: OpenPaiSettings | None = None) -> OpenPaiClient:
    """Return the client of a profile; it opens nothing yet.

    Raises:
        PaiJupyterError: ``bad-setting``.
    """
    settings = settings or settings_of(profile)
    own = settings.calls_per_minute
    return OpenPaiClient(
        settings.url,
        token=partial(token_of, profile),
        ca_file=settings.ca,
        rest_url=settings.rest_url,
        budget=Budget(own) if own else None,
    )
