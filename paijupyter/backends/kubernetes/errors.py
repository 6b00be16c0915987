"""What an API server answers when it does not do what it was asked, and what a person reads of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paijupyter.backends.remote import ServerError
from paijupyter.errors import PaiJupyterError

_SOON = frozenset({"ServerTimeout", "Timeout", "TooManyRequests", "ServiceUnavailable", "InternalError"})


class KubeError(ServerError):
    """An API server refused a request, or could not be reached.

    Attributes:
        status: HTTP status; 0 if there was no answer.
        reason: ``reason`` of the Status object (``NotFound``, ``AlreadyExists``, ``Forbidden`` …); without
            an answer one of ``Unreachable``, ``Timeout``, ``Tls`` and ``Config``.
        message: what the server or the network said.
        details: ``details`` of the Status object.
        retry_after: seconds that the server asks to wait, or None.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after = retry_after

    @classmethod
    def from_answer(cls, status: int, body: bytes, retry_after: str | None = None) -> KubeError:
        """Read a Status object; any other body becomes the message."""
        text = body.decode("utf-8", "replace").strip()
        found: Any = None
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except ValueError:
                found = None
        wait = float(retry_after) if retry_after and retry_after.isdigit() else None
        if not isinstance(found, dict) or found.get("kind") != "Status":
            return cls(status, _REASONS.get(status, ""), text[:2000] or f"HTTP status {status}", None, wait)
        return cls(
            status,
            str(found.get("reason") or _REASONS.get(status, "")),
            str(found.get("message") or f"HTTP status {status}"),
            found.get("details"),
            wait,
        )

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.status in (0, 429, 502, 503, 504) or self.reason in _SOON

    @property
    def is_unreachable(self) -> bool:
        """Whether nobody answered, or only a gateway in front."""
        return self.status in (0, 502, 503, 504) and self.reason != "Config"

    def for_people(self, doing: str) -> PaiJupyterError:
        """Return the error of the whole product.

        Args:
            doing: what was tried, as the end of "The cluster did not …" (``create the job``).
        """
        code, message, hint, status = _words(self, doing)
        return PaiJupyterError(code, message, hint, status)


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def _words(error: KubeError, doing: str) -> tuple[str, str, str, int]:
    said = error.message.rstrip(".")
    if error.status == 401:
        return (
            "cluster-login",
            f"The cluster does not accept these credentials, so it did not {doing}.",
            _LOGIN,
            401,
        )
    for applies, code, lead, hint, status in _RULES:
        if applies(error):
            return code, f"{lead.format(doing=doing)}: {said}.", hint, status
    return "cluster-refused", f"The cluster did not {doing}: {said}.", "", 502


_LOGIN = "Log in to the cluster again (`kubectl get pods` tells when it works), then try again."
_DID_NOT = "The cluster did not {doing}"
POD_SECURITY = (
    (
        "violates PodSecurity.*capab",
        "Set `security: restricted` and `runAsUser: 1000` in the profile, or use another namespace.",
    ),
    (
        "violates PodSecurity.*runAsNonRoot",
        "Set `runAsUser` in the profile to a number above 0, for example 1000, or use another namespace.",
    ),
)
"""What pod security refuses that a setting mends, the first that applies: what `security: baseline` leaves to
a container; root. Whoever may not look at the namespace learns it only so."""


def _refused(pattern: str, error: KubeError) -> bool:
    return error.status == 403 and re.search(pattern, error.message) is not None


# (when, code, how the sentence begins, what to do, HTTP status); the first that applies is said.
_RULES: tuple[tuple[Callable[[KubeError], bool], str, str, str, int], ...] = (
    (
        lambda error: error.reason == "Config",
        "bad-kubeconfig",
        "The cluster cannot be found",
        "Check the kubeconfig, or set `kubeconfig` and `context` in the profile.",
        422,
    ),
    (
        lambda error: error.reason == "Tls",
        "untrusted-cluster",
        "The API server's certificate is not trusted",
        "Put its authority into the kubeconfig (certificate-authority); it is never skipped by itself.",
        502,
    ),
    (
        lambda error: "failed calling webhook" in error.message,
        "webhook-down",
        _DID_NOT,
        "The webhook's controller does not answer: whoever runs the cluster must start it again.",
        503,
    ),
    (
        lambda error: error.is_unreachable,
        "cluster-unreachable",
        _DID_NOT,
        "Nothing is lost: what runs there runs on. Check the network, then try again.",
        503,
    ),
    (
        lambda error: error.status == 403 and "exceeded quota" in error.message,
        "over-quota",
        "The namespace's quota did not let it {doing}",
        "Stop jobs that hold the quota, ask for less, or have the quota raised.",
        409,
    ),
    *(
        (partial(_refused, pattern), "pod-security", "Pod security did not let it {doing}", hint, 422)
        for pattern, hint in POD_SECURITY
    ),
    (
        lambda error: error.status == 403 and "violates PodSecurity" in error.message,
        "pod-security",
        "Pod security did not let it {doing}",
        "Set what the namespace asks for in the profile's `podTemplate`, or use another namespace.",
        422,
    ),
    (
        lambda error: error.status == 403,
        "not-allowed",
        "The cluster's rules did not let it {doing}",
        "Ask whoever runs the cluster for this right; the guide's page on Kubernetes has the smallest Role.",
        403,
    ),
    (
        lambda error: error.status == 404,
        "not-found",
        _DID_NOT,
        "Check the names in the profile, above all `namespace`.",
        404,
    ),
    (
        lambda error: error.status in (400, 422),
        "cluster-refused",
        _DID_NOT,
        "Change what it names, then submit again.",
        422,
    ),
    (lambda error: error.is_passing, "cluster-busy", _DID_NOT, "Try again in a moment.", 503),
)
