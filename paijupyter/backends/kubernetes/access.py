"""How a cluster is reached: the kubeconfig or the pod's service account, read by the official client.

The only module that imports ``kubernetes``. Of it only the loaders of its configuration are used: they know
contexts, exec plug-ins, client certificates and token files. Its models, its ``Watch`` and its calls differ
between versions 31 and 37 in ways that lose data, so requests are made in ``transport.py``.
"""

from __future__ import annotations

import os
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.errors import MissingExtra

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access:
    """A loaded configuration: where the API server is, who we are, whom we trust. Blocks; for threads.

    Attributes:
        server: URL of the API server, without a slash at its end.
        namespace: the context's, or the pod's own; ``default`` if neither says.
        context: name of the context; ``in-cluster`` in a pod.
    """

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        """Load it.

        Raises:
            KubeError: reason ``Config``, if there is nothing to load or it cannot be used.
            MissingExtra: if the package ``kubernetes`` is not installed.
        """
        try:
            from kubernetes import client, config
        except ModuleNotFoundError as error:
            raise MissingExtra("kubernetes", "Running jobs on Kubernetes") from error
        self._lock = threading.Lock()
        self._configuration: Any = client.Configuration()
        try:
            if kubeconfig is None and context is None and _is_in_cluster():
                config.load_incluster_config(client_configuration=self._configuration)
                self.context, self.namespace = "in-cluster", _own_namespace()
            else:
                where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
                self.context, self.namespace = _chosen(config, where, context)
                config.load_kube_config(where, self.context, self._configuration)
        except (config.ConfigException, OSError, TypeError, KeyError, AttributeError) as error:
            # The loaders say a broken file by whatever breaks first.
            raise KubeError(0, "Config", f"The kubeconfig cannot be used: {error}") from error
        self.server = str(self._configuration.host).rstrip("/")

    def headers(self) -> dict[str, str]:
        """Return the headers that say who we are; a token that has run out is renewed first."""
        settings = self._configuration
        with self._lock:
            if settings.refresh_api_key_hook is not None:
                settings.refresh_api_key_hook(settings)
            # Version 36 renamed the key; some versions look for one name and store the other.
            for key in ("BearerToken", "authorization"):
                token = settings.api_key.get(key)
                if token:
                    prefix = settings.api_key_prefix.get(key)
                    return {"authorization": f"{prefix} {token}" if prefix else token}
            if settings.username:
                return {"authorization": settings.get_basic_auth_token()}
        return {}

    def tls(self) -> ssl.SSLContext | None:
        """Return whom to trust and our own certificate; None for plain HTTP."""
        if not self.server.startswith("https:"):
            return None
        settings = self._configuration
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert or None)
        if not settings.verify_ssl:
            # Only if the kubeconfig says insecure-skip-tls-verify in so many words.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
        return context

    @property
    def tls_server_name(self) -> str | None:
        """The name that the server's certificate is held against, where it is not the host's."""
        return getattr(self._configuration, "tls_server_name", None) or None

    @property
    def proxy(self) -> str | None:
        """URL of the proxy on the way, if there is one for this host."""
        proxy = getattr(self._configuration, "proxy", None)
        host = urlsplit(self.server).hostname or ""
        if not proxy or _is_exempt(host, getattr(self._configuration, "no_proxy", None) or ""):
            return None
        return str(proxy)


def _is_in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (_SERVICE_ACCOUNT / "token").exists()


def _own_namespace() -> str:
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def _chosen(config: Any, where: str, context: str | None) -> tuple[str, str]:
    contexts, current = config.list_kube_config_contexts(where)
    by_name = {each["name"]: each for each in contexts}
    chosen = context or current["name"]
    if chosen not in by_name:
        known = ", ".join(sorted(by_name)) or "none"
        raise KubeError(0, "Config", f"The kubeconfig has no context `{chosen}` (it has: {known})")
    return chosen, str((by_name[chosen].get("context") or {}).get("namespace") or "default")


def _is_exempt(host: str, no_proxy: str) -> bool:
    names = [name.strip().lstrip(".").lower() for name in no_proxy.split(",")]
    return "*" in names or any(name and (host == name or host.endswith(f".{name}")) for name in names)
