"""The part of the client for what jobs were made of, and for notebooks that are jobs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import quoted

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient


class HistoryClient:
    """Asks the server about what jobs were made of."""

    def __init__(self, client: JobsClient) -> None:
        self._client = client

    def provenance(self, ref: str) -> dict[str, Any]:
        """Return package, cells, parameters, environment, images and versions of a job."""
        return dict(self._client.ask("GET", quoted("jobs", ref, "provenance")))

    def diff(self, before: str, after: str) -> dict[str, Any]:
        """Return what changed from one job to another, and in their results."""
        return dict(self._client.ask("GET", quoted("jobs", before, "diff"), {"with": after}))

    def rerun(self, ref: str, secrets: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Submit exactly the same once more.

        Returns:
            The JobView of the new job, with ``differs``: what may not be the same.

        Raises:
            Conflict: its package or its interpreter is gone, or secrets are needed.
        """
        body: dict[str, Any] = {"requestId": str(uuid.uuid4())}
        if secrets:
            body["secrets"] = dict(secrets)
        return dict(self._client.ask("POST", quoted("jobs", ref, "rerun"), body=body))

    def report(self, refs: Sequence[str], title: str | None = None, tag: str | None = None) -> dict[str, Any]:
        """Return a notebook, as JSON, that shows jobs side by side."""
        body = {"jobs": list(refs), "title": title, "tag": tag}
        return dict(self._client.ask("POST", "/v1/report", body=body))

    def document_of(self, notebook: str, **options: Any) -> dict[str, Any]:
        """Return the job document that runs a notebook, and the parameters that it declares.

        Args:
            notebook: absolute path; through a Jupyter server a path below its root.
            options: ``name parameters until timeout roles install folder``.
        """
        return dict(self._client.ask("POST", "/v1/document/notebook", body={"notebook": notebook, **options}))
