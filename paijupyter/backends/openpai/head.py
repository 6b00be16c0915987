"""The command of a task whose job carries something of ours: unpack it, check it by its hash, start it. Pure.

It is bash text inside a job document, so it has no `$$` and no `$(FC_…)`, which Kubernetes would rewrite, and
no reference but those meant to be filled in: the payload is a parameter, so that it stands in the document
once; each secret is a parameter that refers to it, which is how a value arrives unescaped (openpai.md 4.3).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from paijupyter.backends.openpai.payload import RUN

PAYLOAD = "paijupyter"
"""Name of the parameter that holds the payload."""
OUTPUTS = "paijupyter_outputs"
"""Name of the secret, and of its parameter, that says where outputs go."""
OUTPUTS_FILE = "outputs-to"
"""File that says so in a task."""
NO_PYTHON = 127
DAMAGED = 41
_OPEN = """\
import base64, hashlib, io, sys, tarfile
run, digest = sys.argv[1:3]
with open(run + "/payload", "rb") as stream:
    data = base64.b64decode(stream.read())
if hashlib.sha256(data).hexdigest() != digest:
    print("[paijupyter] The package is damaged: what came has another checksum.", flush=True)
    sys.exit({damaged})
tarfile.open(fileobj=io.BytesIO(data), mode="r:gz").extractall(run)
"""


def secret_parameter(number: int) -> str:
    """Return the name of the parameter for a secret of a number."""
    return f"paijupyter_secret_{number}"


def url_secret(number: int) -> str:
    """Return the name of the secret, and of its parameter, with the address of a package of a number."""
    return f"paijupyter_url_{number}"


def url_file(number: int) -> str:
    """Return the file that has that address in a task."""
    return f"url-{number}"


def command_of(
    role: str,
    digest: str,
    mark: str,
    secrets: Sequence[str],
    told: Mapping[str, str],
    python: str = "",
    *,
    by_shell: bool,
) -> str:
    """Return the command of a role's tasks.

    Args:
        role: its name.
        digest: sha256 of the payload.
        mark: a word that no line of any value is.
        secrets: their names, in the order of the spec.
        told: files that a task gets beside, and of each the parameter with its content.
        python: path of the interpreter, "" for what PATH has.
        by_shell: whether an image without Python can run it too.
    """
    given = [
        _here(f"secrets/{number}", f"<% $parameters.{secret_parameter(number)} %>", mark)
        for number in range(len(secrets))
    ]
    given += [_here(name, f"<% $parameters.{parameter} %>", mark) for name, parameter in told.items()]
    find = shlex.quote(python) if python else '"$(command -v python3 || command -v python || true)"'
    without = _by_shell(role, digest, secrets) if by_shell else _NO_PYTHON.format(code=NO_PYTHON)
    return "\n".join(
        [
            "umask 077",
            f'pai_run="${{PAIJUPYTER_RUN:-{RUN}}}"',
            'rm -rf "$pai_run"; mkdir -p "$pai_run/secrets"',
            _here("payload", f"<% $parameters.{PAYLOAD} %>", mark),
            *given,
            f"pai_python={find}",
            'if [ -z "$pai_python" ] || ! "$pai_python" -c "" 2>/dev/null; then',
            without,
            "fi",
            _here("open.py", _OPEN.format(damaged=DAMAGED).rstrip("\n"), mark),
            f'"$pai_python" -I -S -W ignore "$pai_run/open.py" "$pai_run" {digest}',
            'exec "$pai_python" -I -S "$pai_run/boot" openpai "$pai_run/spec.json"',
        ]
    )


_NO_PYTHON = """\
  echo "[paijupyter] The image has no Python, which the job's package, data or outputs need." >&2
  echo "[paijupyter] Use an image with Python 3.6 or newer, or set python in the profile." >&2
  exit {code}"""


def _by_shell(role: str, digest: str, secrets: Sequence[str]) -> str:
    lines = [
        'base64 -d "$pai_run/payload" > "$pai_run/payload.tar.gz"',
        "if command -v sha256sum >/dev/null; then",
        f'  echo "{digest}  $pai_run/payload.tar.gz" | sha256sum -c - >/dev/null || exit {DAMAGED}',
        "fi",
        'tar -xzf "$pai_run/payload.tar.gz" -C "$pai_run"',
    ]
    for number, name in enumerate(secrets):
        if name.isidentifier():
            lines.append(f'{name}="$(cat "$pai_run/secrets/{number}")"; export {name}')
    script = shlex.quote(f"commands/{role}.sh")
    lines.append(f'exec bash -o errexit -o nounset -o pipefail "$pai_run"/{script}')
    return "\n".join(f"  {line}" for line in lines)


def _here(name: str, text: str, mark: str) -> str:
    return f"cat > \"$pai_run/{name}\" <<'{mark}'\n{text}\n{mark}"
