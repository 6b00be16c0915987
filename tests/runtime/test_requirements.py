"""Requirements of a package: checked, or installed once per set of them (P13). No registry is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from paijupyter.runtime.missing import MARK, requirement_lines


def wheel(folder: Path, name: str, version: str, needs: tuple[str, ...] = ()) -> None:
    """Make a small real wheel with a module and a script."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\ndef main():\n    print('{name} {version}')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {need}\n" for need in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-tool = {name}:main\n",
    }
    record = "".join(f"{path},,\n" for path in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


def test_never_goes_on_with_what_cannot_be_checked(asks):
    task = asks("./mine", policy="never")
    assert task.run("echo ran")["code"] == 0
    assert task.log == "[paijupyter] Requirements that cannot be checked: ./mine\nran\n"


@pytest.fixture
def wheels(isolated_home: Path) -> Path:
    """Return a folder of wheels that pip uses instead of a registry."""
    folder = isolated_home / "wheels"
    wheel(folder, "pjdemo", "1.0")
    wheel(folder, "pjdemo", "2.0")
    wheel(folder, "pjother", "1.0", needs=("pjdemo>=2; extra == 'more'",))
    return folder


@pytest.fixture
def asks(task, wheels):
    """Return the task with a requirements file in its package."""

    def ask(text: str, policy: str = "if-missing"):
        task.package({"requirements.txt": f"--no-index\n--find-links {wheels}\n{text}\n"})
        task.spec["requirements"]["policy"] = policy
        return task

    return ask


def environments(task) -> list[str]:
    folder = task.data / "environments"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


def test_missing_ones_are_installed_once(asks, make_task):
    """P13: with a cache; the next task with the same needs installs nothing."""
    task = asks("pjdemo>=1.5  # the newer one")
    command = (
        "pjdemo-tool; python -c 'import pjdemo, packaging, sys; print(sys.prefix)'; echo $VIRTUAL_ENV\n"
        'head -1 "$(command -v pjdemo-tool)"'
    )
    assert task.run(command)["code"] == 0, task.log
    (name,) = environments(task)
    prefix = str(task.data / "environments" / name)
    said = [line for line in task.log.splitlines() if not line.startswith("[paijupyter] ")]
    assert said == ["pjdemo 2.0", prefix, prefix, f"#!{prefix}/bin/python"]
    assert "[paijupyter] Installing requirements: pjdemo>=1.5\n" in task.log
    assert "[paijupyter] Successfully installed pjdemo-2.0\n" in task.log

    again = make_task("again")
    again.spec["requirements"] = task.spec["requirements"]
    again.spec["package"] = task.spec["package"]
    assert again.run("pjdemo-tool")["code"] == 0
    assert again.log == "pjdemo 2.0\n"
    assert environments(task) == [name]


def test_the_packages_of_the_kernels_environment_stay_visible(asks, task):
    """A kernel often runs in a virtual environment; its packages must be there too."""
    parent = task.home / "parent"
    venv.create(parent, with_pip=False)
    own = parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (own / "of_the_kernel.py").write_text("HERE = 1\n")
    import pip

    (own / "pip.pth").write_text(str(Path(pip.__file__).parent.parent) + "\n")
    asks("pjother").spec["python"] = str(parent / "bin" / "python")
    assert task.run("python -c 'import of_the_kernel, pjother; print(1)'; pjother-tool")["code"] == 0, (
        task.log
    )
    assert task.log.endswith("\n1\npjother 1.0\n")


def test_nothing_is_made_when_nothing_is_missing(asks):
    task = asks("pytest>=3\npytest ; python_version < '3'\nnot-there ; sys_platform == 'nowhere'")
    assert task.run("echo ok; echo ${VIRTUAL_ENV:-none}")["code"] == 0
    assert task.log == "ok\nnone\n"
    assert environments(task) == []


def test_never_only_checks_and_lists(asks):
    task = asks("pytest>=1000\nnot-there-1\npip", policy="never")
    record = task.run("echo ran")
    assert (record["reason"], record["code"]) == ("requirements", None)
    version = pytest.__version__
    assert record["message"] == (
        f"The requirements are not all installed: pytest>=1000 ({version} is installed), not-there-1. "
        "This job does not install them (install: never)."
    )
    assert task.log == f"[paijupyter] {record['message']}\n"
    assert environments(task) == []


def test_what_cannot_be_installed_fails_with_pips_words(asks):
    task = asks("pjdemo==7")
    record = task.run("echo ran")
    assert (record["reason"], record["code"]) == ("requirements", None)
    assert "No matching distribution found for pjdemo==7" in record["message"]
    assert record["message"].startswith("The requirements could not be installed: ")
    assert "ran" not in task.log
    assert environments(task) == [], "nothing half done stays"


def test_a_half_made_environment_is_made_anew(asks):
    task = asks("pjdemo")
    assert task.run("true")["code"] == 0
    (name,) = environments(task)
    folder = task.data / "environments" / name
    (folder / "complete").unlink()
    (folder / "bin" / "pjdemo-tool").unlink()
    for left in ("exit.json", "ready", "log", "log.index"):
        (task.folder / left).unlink()
    assert task.run("pjdemo-tool")["code"] == 0
    assert task.log.endswith("pjdemo 2.0\n")


def test_two_tasks_at_once_install_once(asks, make_task, until):
    first = asks("pjdemo<2")
    second = make_task("second")
    for name in ("requirements", "package"):
        second.spec[name] = first.spec[name]
    for each in (first, second):
        each.spec["command"] = "pjdemo-tool"
        each.start()
    assert [first.end()["code"], second.end()["code"]] == [0, 0]
    logs = first.log + second.log
    assert logs.count("pjdemo 1.0\n") == 2
    assert logs.count("Successfully installed") == 1


def test_stop_while_installing(asks, until):
    task = asks("pjdemo")
    (task.home / "slow.py").write_text("import time\nprint('begins', flush=True)\ntime.sleep(60)\n")
    archive = json.loads(Path(task.spec["package"]["manifest"]).read_text())
    assert archive["files"][0][0] == "requirements.txt"
    folder = task.home / "project"
    folder.mkdir()
    (folder / "setup.py").write_text((task.home / "slow.py").read_text())
    task.package({"requirements.txt": f"--no-index\n{folder}\n"})
    task.start()
    until(lambda: "Processing" in task.log, seconds=60)
    os.kill(task.process.pid, signal.SIGTERM)
    assert task.end()["reason"] == "stopped"
    assert environments(task) == []


def test_a_named_file_that_is_not_there(task):
    task.package({"a": ""})
    task.spec["requirements"] = {"file": "needs.txt", "policy": "never", "environments": str(task.data / "e")}
    record = task.run()
    assert record["message"] == "The requirements file `needs.txt` is not in the package."


def test_modules_of_the_package_do_not_disturb_the_tools(asks, task):
    asks("pytest")
    hide = "raise SystemExit('a module of the user')"
    text = f"--no-index\n--find-links {task.home}/wheels\npytest\n"
    task.package({"requirements.txt": text, "json.py": hide, "re.py": hide, "packaging.py": hide})
    assert task.run("echo ok")["code"] == 0, task.log
    assert task.log == "ok\n"


def test_missing_under_another_python(task, python, wheels):
    """The check runs in the task's interpreter, which may be as old as Python 3.6."""
    from paijupyter.backends.boot import boot_zipapp

    path = task.home / "requirements.txt"
    path.write_text("pip>=1\npip>=1000\nnot-there-1\n./local\n# comment\n-r more.txt\n")
    (task.home / "more.txt").write_text("setuptools-not-there ; python_version >= '3'\n-r requirements.txt\n")
    said = subprocess.run(
        [python, str(boot_zipapp(task.data)), "missing", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in said.stdout.splitlines() if line.startswith(MARK)]
    report = json.loads(line[len(MARK) :])
    assert [need.split(" ")[0] for need in report["missing"]] == [
        "pip>=1000",
        "not-there-1",
        "setuptools-not-there",
    ]
    assert report["unchecked"] == ["./local"]
    assert report["interpreter"]["executable"]
    assert len(report["texts"]) == 2


def test_extras_are_looked_into(task, wheels):
    from paijupyter.backends.boot import boot_zipapp

    target = task.home / "site"
    options = ["--no-deps", "--no-index", "--find-links", str(wheels), "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, "pjother"], check=True)
    path = task.home / "requirements.txt"
    path.write_text("pjother\npjother[more]\n")
    said = subprocess.run(
        [sys.executable, str(boot_zipapp(task.data)), "missing", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(target)},
        check=True,
    )
    assert json.loads(said.stdout.split(MARK)[1])["missing"] == ["pjdemo>=2"]


def test_lines_of_a_file(tmp_path):
    (tmp_path / "c.txt").write_text("only-a-constraint==1\n")
    path = tmp_path / "r.txt"
    path.write_text(
        "\ufeffa==1 \\\n  --hash=sha256:00\n--index-url https://example.invalid/simple\nb # why\nc@x#y\n"
        "-c c.txt\n-e ./mine\n-rmissing-dash.txt\n"
    )
    (tmp_path / "missing-dash.txt").write_text("d\n")
    texts: dict[str, str] = {}
    assert list(requirement_lines(str(path), texts)) == ["a==1", "b", "c@x#y", "-e ./mine", "d"]
    assert len(texts) == 3, "constraints count for the hash"
