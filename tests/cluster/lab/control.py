"""The control plane: etcd, API server, controller manager, scheduler, and who may enter."""

from __future__ import annotations

import base64
import json
import secrets
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.lab.build import program
from tests.cluster.lab.places import (
    API_PORT,
    API_SERVICE,
    ETCD_PEER_PORT,
    ETCD_PORT,
    GATEWAY,
    KUBECONFIG,
    NODE,
    SERVICES,
    STATE,
)
from tests.cluster.lab.processes import run, start, stop

_KEYS = STATE / "keys"
_SERVER = f"https://{GATEWAY}:{API_PORT}"
_USERS = {
    "admin": ("lab-admin", "system:masters"),
    "node": (f"system:node:{NODE}", "system:nodes"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}


def enter(user: str) -> Path:
    """Return the kubeconfig file of one of the control plane's users."""
    return KUBECONFIG if user == "admin" else _KEYS / f"{user}.kubeconfig"


def kubeconfig(token: str, namespace: str = "default") -> str:
    """Return the text of a kubeconfig for this cluster and a token."""
    authority = base64.b64encode((_KEYS / "ca.crt").read_bytes()).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "lab", "cluster": {"server": _SERVER, "certificate-authority-data": authority}}
            ],
            "users": [{"name": "lab", "user": {"token": token}}],
            "contexts": [
                {"name": "lab", "context": {"cluster": "lab", "user": "lab", "namespace": namespace}}
            ],
            "current-context": "lab",
        },
        indent=1,
    )


def up() -> None:
    """Start the control plane; on a state folder of before it finds its objects again."""
    if not (_KEYS / "tokens.csv").exists():
        _make_keys()
    start_etcd()
    start_api_server()
    start(
        "kube-controller-manager",
        [
            program("kubernetes", "kube-controller-manager"),
            f"--kubeconfig={enter('controller-manager')}",
            f"--authentication-kubeconfig={enter('controller-manager')}",
            f"--authorization-kubeconfig={enter('controller-manager')}",
            "--bind-address=127.0.0.1",
            "--secure-port=16257",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={_KEYS / 'accounts.key'}",
            f"--root-ca-file={_KEYS / 'ca.crt'}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            # A dead node is known after half a minute, not after a minute: tests wait for it.
            "--node-monitor-period=2s",
            "--node-monitor-grace-period=25s",
        ],
        lambda: _healthy(16257),
    )
    start(
        "kube-scheduler",
        [
            program("kubernetes", "kube-scheduler"),
            f"--kubeconfig={enter('scheduler')}",
            f"--authentication-kubeconfig={enter('scheduler')}",
            f"--authorization-kubeconfig={enter('scheduler')}",
            "--bind-address=127.0.0.1",
            "--secure-port=16259",
            "--leader-elect=false",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ],
        lambda: _healthy(16259),
    )


def start_etcd() -> None:
    """Start etcd; it does not wait for the disk: this state is nobody's treasure."""
    url, peers = f"http://127.0.0.1:{ETCD_PORT}", f"http://127.0.0.1:{ETCD_PEER_PORT}"
    start(
        "etcd",
        [
            program("etcd"),
            f"--data-dir={STATE / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=warn",
        ],
        lambda: answers(f"{url}/health"),
    )


def start_api_server() -> None:
    """Start the API server (again, after :func:`stop_api_server`)."""
    start(
        "kube-apiserver",
        [
            program("kubernetes", "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
            f"--bind-address={GATEWAY}",
            f"--advertise-address={GATEWAY}",
            f"--secure-port={API_PORT}",
            f"--tls-cert-file={_KEYS / 'server.crt'}",
            f"--tls-private-key-file={_KEYS / 'server.key'}",
            f"--token-auth-file={_KEYS / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={_KEYS / 'accounts.key'}",
            f"--service-account-signing-key-file={_KEYS / 'accounts.key'}",
            f"--service-cluster-ip-range={SERVICES}",
            "--kubelet-preferred-address-types=Hostname",
            "--enable-admission-plugins=NodeRestriction",
            # Pods leave a dead node after half a minute, not after five.
            "--default-unreachable-toleration-seconds=30",
            "--default-not-ready-toleration-seconds=60",
            "--feature-gates=ImageVolume=true",
            # Services without a selector lead extension API servers on the bridge (Kueue's visibility).
            "--enable-aggregator-routing=true",
            f"--requestheader-client-ca-file={_KEYS / 'ca.crt'}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={_KEYS / 'proxy.crt'}",
            f"--proxy-client-key-file={_KEYS / 'proxy.key'}",
            "--profiling=false",
        ],
        api_ready,
    )


def stop_api_server(seconds: float = 15) -> None:
    """End the API server alone; the rest of the lab goes on without it."""
    stop("kube-apiserver", seconds)


def api_ready() -> bool:
    """Say whether the API server answers and has finished its start."""
    try:
        token = (_KEYS / "admin.token").read_text()
        trusted = ssl.create_default_context(cafile=str(_KEYS / "ca.crt"))
    except OSError:
        return False
    return answers(f"{_SERVER}/readyz", trusted, {"Authorization": f"Bearer {token}"})


def answers(
    url: str, trusted: ssl.SSLContext | None = None, headers: dict[str, str] | None = None, seconds: float = 5
) -> bool:
    """Say whether an address answers with 200."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers or {}), timeout=seconds, context=trusted
        ) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _healthy(port: int) -> bool:
    """Ask a component's own health page; its certificate is its own and of this start."""
    untrusted = ssl.create_default_context()
    untrusted.check_hostname = False
    untrusted.verify_mode = ssl.CERT_NONE
    return answers(f"https://127.0.0.1:{port}/healthz", untrusted)


def _make_keys() -> None:
    """Make the authority, the certificates it signs, the key of service accounts, and everybody's token."""
    _KEYS.mkdir(parents=True, exist_ok=True)
    run(["openssl", "genrsa", "-out", _KEYS / "accounts.key", "2048"])
    make_authority(_KEYS)
    names = f"DNS:kubernetes.default.svc,DNS:localhost,IP:{GATEWAY},IP:127.0.0.1,IP:{API_SERVICE}"
    make_certificate(_KEYS, "server", "kube-apiserver", names)
    make_certificate(_KEYS, "proxy", "front-proxy-client", "DNS:front-proxy-client")
    lines = []
    for user, (name, group) in _USERS.items():
        token = secrets.token_hex(16)
        lines.append(f'{token},{name},{name},"{group}"' if group else f"{token},{name},{name}")
        enter(user).write_text(kubeconfig(token))
        enter(user).chmod(0o600)
        if user == "admin":
            (_KEYS / "admin.token").write_text(token)
    (_KEYS / "tokens.csv").write_text("\n".join(lines) + "\n")


def make_authority(folder: Path) -> None:
    """Make ``ca.key`` and ``ca.crt`` in a folder."""
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "3650",
        "-subj",
        "/CN=lab",
    ]
    run([*request, "-keyout", folder / "ca.key", "-out", folder / "ca.crt"])


def make_certificate(folder: Path, file: str, name: str, alternatives: str) -> None:
    """Make a key and a certificate that the folder's authority signs."""
    key, wish, signed = (folder / f"{file}.{end}" for end in ("key", "csr", "crt"))
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    run([*new, "-keyout", key, "-out", wish])
    extensions = folder / f"{file}.ext"
    extensions.write_text(f"subjectAltName={alternatives}\n")
    sign = ["openssl", "x509", "-req", "-days", "3650", "-CAcreateserial", "-in", wish, "-out", signed]
    run([*sign, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-extfile", extensions])
