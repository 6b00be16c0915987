"""The job server of PaddlePaddle's design, below the Jupyter server and through the real engine."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from paijupyter import paths
from paijupyter.client import start

V1 = ("paijupyter", "paddle", "v1")


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch):
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


def archive(*entries: tuple[str, bytes], mode: str = "w:gz", link: str | None = None) -> bytes:
    """Return a tar archive of files, and one symbolic link if asked."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        if link is not None:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            tar.addfile(info)
    return out.getvalue()


async def test_from_archive_to_end(jp_fetch):
    """P3, P24, P31: package, submit, list, look, stop, by the design's routes and words."""

    async def ask(*path: str, method: str = "GET", **body: Any) -> Any:
        text = json.dumps(body) if method == "POST" else None
        return json.loads((await jp_fetch(*V1, *path, method=method, body=text)).body)

    assert (await ask("version"))["version"]
    script = (
        b"import os, time\nprint('trainer', os.environ['PADDLE_TRAINER_ID'], flush=True)\ntime.sleep(600)\n"
    )
    for path in ("package", "packages"):
        made = await jp_fetch(*V1, path, method="POST", body=archive(("train.py", script)))
        package = json.loads(made.body)
        assert (made.code, package["files"]) == (201, 1)
    job = await ask(
        "trainer", "job", method="POST", name="digits", entry="python train.py", jobPackage=package["sha256"],
        parallelism=2, pservers=0, memory="500M",
    )  # fmt: skip
    assert (job["job_name"], job["trainers"], job["pservers"]) == ("digits", 2, 0)
    assert job["size"] == "2 trainers, 0 parameter servers"
    assert [each["name"] for each in (await ask("jobs"))["jobs"]] == [job["name"]]
    assert [each["name"] for each in (await ask("jobs/"))["jobs"]] == [job["name"]]
    log = ("paijupyter", "v1", "jobs", job["id"], "logs")
    for _ in range(600):
        text = (await jp_fetch(*log, params={"task": "trainer-1"})).body
        if text:
            break
        await asyncio.sleep(0.05)
    stopped = json.loads((await jp_fetch(*V1, "jobs", job["name"], method="DELETE")).body)
    assert stopped["state"] == "stopped"
    assert (await ask("jobs", job["name"]))["state"] == "stopped"
    log_text = (await jp_fetch(*log, params={"task": "trainer-1"})).body
    assert log_text.startswith(b"trainer 1\n")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "tar"),
        (b"no archive at all", "tar"),
        (archive(("train.py", b"x" * 100_000), mode="w")[:50_000], "tar"),
        (archive(mode="w"), "no file"),
        (archive(("../out.py", b"x")), "outside"),
        (archive(("a.py", b"x"), link="/etc/passwd"), "tar"),
        (archive(("a.py", b"x"), link="../../x"), "outside"),
    ],
    ids=["nothing", "no archive", "cut off", "empty", "path out", "absolute link", "link out"],
)
async def test_what_is_no_whole_package_is_refused(jp_fetch, body, words):
    """D8: nothing of it is taken; paths cannot leave their root."""
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*V1, "package", method="POST", body=body, allow_nonstandard_methods=True)
    assert refused.value.code == 422
    problem = json.loads(refused.value.response.body)
    assert words in problem["detail"]
    assert not list((paths.data_dir() / "packages").glob("*"))
    assert not list((paths.data_dir() / "uploads").iterdir())


async def test_wrong_fields_are_all_named(jp_fetch):
    """D1: an unknown field is not dropped."""
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*V1, "trainer", "job", method="POST", body='{"minInstance": 1, "trainers": 0}')
    assert refused.value.code == 422
    problems = json.loads(refused.value.response.body)["problems"]
    assert {each["path"] for each in problems} == {"/minInstance", "/trainers"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "version"),
        ("GET", "jobs/"),
        ("GET", "jobs/x"),
        ("DELETE", "jobs/x"),
        ("POST", "trainer/job"),
        ("POST", "package"),
        ("POST", "packages"),
    ],
)
async def test_nobody_gets_in_without_a_token(jp_fetch, http_server_client, jp_base_url, method, path):
    """D10: the original started its notebooks with an empty token and without the XSRF check."""
    url = f"{jp_base_url}paijupyter/paddle/v1/{path}"
    body = b"{}" if method == "POST" else None
    with pytest.raises(HTTPClientError) as refused:
        await http_server_client.fetch(url, method=method, body=body, follow_redirects=False)
    assert refused.value.code == 403
