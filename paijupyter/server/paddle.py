"""The routes of PaddlePaddle's job server, below ``<base_url>/paijupyter/paddle/v1/``."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from paijupyter.server.handlers import RESOURCE, AnyHandler, PassOn, UploadHandler


class PaddlePackageHandler(UploadHandler):
    """A trainer package, passed on while it arrives."""

    _method = "POST"

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Pass the engine's answer back."""
        await self.answer()


class PaddleSubmitHandler(PassOn):
    """Submitting a job, which is running code."""

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Submit."""
        await self.pass_on(self.request.body)


class PaddleListHandler(PassOn):
    """The list of jobs; the design ends its path with a slash."""

    def target(self) -> str:
        """Return path and query for the engine."""
        path, mark, query = super().target().partition("?")
        return path.rstrip("/") + mark + query

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """List."""
        await self.pass_on()


_V1 = "/paijupyter/paddle/v1"
RULES = [
    (rf"{_V1}/packages?", PaddlePackageHandler),
    (rf"{_V1}/trainer/job", PaddleSubmitHandler),
    (rf"{_V1}/jobs/?", PaddleListHandler),
    (rf"{_V1}/(?:version|jobs/[^/]+)", AnyHandler),
]
