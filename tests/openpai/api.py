"""The REST API v2: which call does what, in the order and the words of the original."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tornado.httputil import HTTPServerRequest

from tests.openpai import validating
from tests.openpai.accounts import TooMany
from tests.openpai.answers import Answer, Refused, html, of_json
from tests.openpai.calls import Call
from tests.openpai.job_calls import JobCalls

if TYPE_CHECKING:
    from tests.openpai.server import OpenPai

_PREFIX = re.compile(r"^(?:/rest-server)?/api/v2")
Handler = Callable[..., Answer]


class Api:
    """Answers requests.

    Args:
        server: what it answers for.
    """

    def __init__(self, server: OpenPai) -> None:
        self._server = server
        jobs = self._jobs = JobCalls(server)
        job = r"/jobs/([^/]+)"
        task = job + r"/attempts/([^/]+)/taskRoles/([^/]+)/taskIndex/(\d+)/attempts"
        # method, path, from which version, whether a token is needed, what answers
        self._routes: list[tuple[str, re.Pattern[str], float, bool, Handler]] = [
            (method, re.compile(path), since, guarded, handler)
            for method, path, since, guarded, handler in (
                ("GET", "/info", 0, False, self._info),
                ("GET", "/authn/info", 0, False, self._authn),
                ("POST", "/(?:authn/basic/login|tokens)", 0, False, self._login),
                ("POST", "/tokens/application", 1.0, True, self._new_application),
                ("GET", "/tokens/check", 1.6, True, self._check),
                ("GET", "/tokens", 0, True, self._tokens),
                ("DELETE", "/tokens/(.+)", 0, True, self._revoke),
                ("GET", "/users/([^/]+)", 0, True, self._user),
                ("GET", "/virtual-clusters", 0, True, self._clusters),
                ("GET", "/virtual-clusters/([^/]+)", 0, True, self._cluster),
                ("GET", "/cluster/sku-types", 1.0, True, self._skus),
                ("GET", "/storages", 1.0, True, self._storages),
                ("GET", "/storages/([^/]+)", 1.0, True, self._storage),
                ("GET", "/jobs", 0, True, jobs.jobs),
                ("POST", "/jobs", 0, True, jobs.submit),
                ("GET", job, 0, True, jobs.job),
                ("GET", job + "/config", 0, True, jobs.config),
                ("GET", job + "/ssh", 0, True, jobs.ssh),
                ("GET", job + "/events", 1.3, True, jobs.events),
                ("PUT", job + "/executionType", 0, True, jobs.execute),
                ("PUT", job + "/tag", 1.3, True, jobs.tag),
                ("DELETE", job + "/tag", 1.3, True, jobs.untag),
                ("GET", job + r"/attempts/([^/]+)", 1.3, True, jobs.attempt),
                ("GET", task, 1.3, True, jobs.task),
                ("GET", task + r"/(\d+)/logs", 1.4, True, jobs.logs),
            )
        ]

    def answer(self, request: HTTPServerRequest) -> Answer:
        """Answer a request; never raises."""
        path, found = request.path, _PREFIX.match(request.path)
        if path.startswith("/log-manager/"):
            return self._jobs.log(request)
        if not found:
            return html(200 if path == "/" else 404, "Platform for AI" if path == "/" else "404 Not Found")
        headers: dict[str, str] = {}
        try:
            answer = self._api(request, path[found.end() :].rstrip("/"), headers)
        except TooMany as error:
            answer = Answer(429, b"Too many requests, please try again later.", error.headers)
        except Refused as error:
            answer = error.answer()
        answer.headers = {"Access-Control-Allow-Origin": "*", **headers, **answer.headers}
        return answer

    def _api(self, request: HTTPServerRequest, path: str, headers: dict[str, str]) -> Answer:
        server = self._server
        if len(request.body) > validating.LIMIT_BYTES:
            raise Refused(413, None, "request entity too large")
        if request.headers.get("Content-Type", "").startswith("application/json"):
            Call(request, "", None).json()  # its parser comes before everything else
        headers.update(server.limits.count("all", server.now()))
        version = server.release
        for method, pattern, since, guarded, handler in self._routes:
            match = pattern.fullmatch(path)
            if match and method == request.method and version >= since:
                token = server.accounts.who(request.headers, server.now()) if guarded else None
                kind = {"GET": "list", "POST": "submit"}[method] if path == "/jobs" else None
                if kind:
                    headers.update(server.limits.count(kind, server.now()))
                call = Call(request, token.user if token else "", token)
                return handler(call, *map(unquote, match.groups()))
        raise Refused(404, "NoApiError", f"API {_PREFIX.sub('/api/v2', request.path)} is not found.")

    # -- who and what ------------------------------------------------------------------------------------

    def _info(self, call: Call) -> Answer:
        return of_json({
            "name": "PAI RESTful API",
            "version": self._server.version,
            "launcherType": "k8s",
            "authnMethod": self._server.authn,
        })  # fmt: skip

    def _authn(self, call: Call) -> Answer:
        basic = self._server.authn == "basic"
        uri = "/api/v1/authn/basic/login" if basic else "/api/v1/authn/oidc/login"
        method = "post" if basic else "get"
        return of_json({"authn_type": self._server.authn, "loginURI": uri, "loginURIMethod": method})

    def _login(self, call: Call) -> Answer:
        if self._server.authn != "basic":
            raise Refused(404, "NoApiError", f"API {call.request.path} is not found.")
        return of_json(self._server.accounts.login(call.json(), self._server.now()))

    def _own(self, call: Call) -> None:
        if call.token and call.token.application:
            message = "Applications are not allowed to do this operation."
            raise Refused(403, "ForbiddenUserError", message)

    def _new_application(self, call: Call) -> Answer:
        self._own(call)
        return of_json({"token": self._server.token(call.user), "application": True})

    def _check(self, call: Call) -> Answer:
        token = call.token
        assert token is not None
        times = {"iat": int(token.issued), **({"exp": int(token.expires)} if token.expires else {})}
        return of_json({
            "username": call.user,
            "application": token.application,
            "jobSpecific": False,
            "encodedFrameworkName": "",
            **times,
            "admin": self._server.accounts.users[call.user].admin,
        })  # fmt: skip

    def _tokens(self, call: Call) -> Answer:
        self._own(call)
        known = self._server.accounts.tokens
        return of_json({"tokens": [text for text, token in known.items() if token.user == call.user]})

    def _revoke(self, call: Call, token: str) -> Answer:
        self._own(call)
        self._server.revoke(token)
        return of_json({"message": "revoke successfully"})

    def _user(self, call: Call, name: str) -> Answer:
        if name not in self._server.accounts.users:
            raise Refused(400, "NoUserError", f"User {name} is not found.")
        return of_json(self._server.accounts.users[name].to_json())

    def _clusters(self, call: Call) -> Answer:
        return of_json({name: _cluster() for name in self._server.virtual_clusters})

    def _cluster(self, call: Call, name: str) -> Answer:
        if name not in self._server.virtual_clusters:
            raise Refused(404, "NoVirtualClusterError", f"Vc {name} not found")
        return of_json(_cluster())

    def _skus(self, call: Call) -> Answer:
        if "vc" in call.query and not self._server.skus:
            message = f"Cannot get sku types for virtual clyster {call.query['vc']}."
            raise Refused(404, "NoVirtualClusterError", message)
        return of_json(self._server.skus)

    def _storages(self, call: Call) -> Answer:
        granted = self._server.accounts.users[call.user].storages
        shown = [
            {
                "name": name,
                **({"share": storage["share"]} if "share" in storage else {}),
                "volumeName": f"{name}-pv",
                "default": number == 0,
            }
            for number, (name, storage) in enumerate(self._server.storages.items())
            if name in granted
        ]
        wanted = [each for each in shown if each["default"]] if call.query.get("default") == "true" else shown
        return of_json({"storages": wanted})

    def _storage(self, call: Call, name: str) -> Answer:
        if name not in self._server.storages:
            raise Refused(404, "NoStorageError", f"Storage {name} is not found.")
        if name not in self._server.accounts.users[call.user].storages:
            raise Refused(403, "ForbiddenUserError", f"User {call.user} is not allowed to access {name}.")
        return of_json({"name": name, "volumeName": f"{name}-pv", **self._server.storages[name]})


def _cluster() -> dict[str, Any]:
    total = {"cpu": 16, "memory": 65536, "gpu": 8, "vCores": 16, "GPUs": 8}
    used = {"cpu": 4, "memory": 8192, "gpu": 2, "vCores": 4, "GPUs": 2}
    return {
        "capacity": 100,
        "usedCapacity": 25,
        "dedicated": False,
        "resourcesUsed": used,
        "resourcesGuaranteed": total,
        "resourcesTotal": total,
        "maxCapacity": 100,
    }
