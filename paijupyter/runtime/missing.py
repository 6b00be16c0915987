"""What of a requirements file is missing? Runs in the task's interpreter, with its packages.

``python boot.pyz missing FILE`` prints one line, :data:`MARK` and a JSON object: ``missing`` and
``unchecked`` requirements, the ``texts`` of all files involved, and what ``interpreter`` this is.
"""

import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

MARK = "paiboot-missing "
_FILE_OPTION = re.compile(r"(-r|--requirement|-c|--constraint)(?:\s*=?\s*)(.+)\Z")
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~;@(]|\Z)")


def main(argv: "List[str]") -> int:
    """Print the report on the file ``argv[2]``."""
    texts: "Dict[str, str]" = {}
    missing: "List[str]" = []
    unchecked: "List[str]" = []
    check = _checker()
    for line in requirement_lines(argv[2], texts):
        problem = check(line)
        if problem is None:
            unchecked.append(line)
        elif problem:
            missing.append(problem)
    report = {
        "missing": missing,
        "unchecked": unchecked,
        "texts": [texts[name] for name in sorted(texts)],
        "interpreter": interpreter(),
    }
    sys.stdout.write("\n" + MARK + json.dumps(report) + "\n")
    return 0


def interpreter() -> "Dict[str, Any]":
    """Return what tells this interpreter and its packages' places apart from others."""
    import site

    in_environment = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
    places = list(getattr(site, "getsitepackages", list)())
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return {
        "version": sys.version,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "environment": in_environment,
        "system": not in_environment or _sees_system(sys.prefix),
        "places": places,
    }


def _sees_system(prefix: str) -> bool:
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8") as stream:
            return re.search(r"include-system-site-packages\s*=\s*true", stream.read(), re.I) is not None
    except OSError:
        return True


def requirement_lines(path: str, texts: "Dict[str, str]", required: bool = True) -> "Iterator[str]":
    """Yield the requirements of a file and of the files that it names, each file once.

    Args:
        path: the requirements file.
        texts: gets the text of every file by its path.
        required: False for constraints, which ask for nothing.
    """
    real = os.path.realpath(path)
    if real in texts:
        return
    with open(path, encoding="utf-8-sig", errors="replace") as stream:
        texts[real] = stream.read()
    for line in re.sub(r"\\\r?\n", "", texts[real]).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        other = _FILE_OPTION.match(line)
        if other:
            wanted = required and "r" in other.group(1).lstrip("-")[:1]
            name = other.group(2).strip().strip("\"'")
            yield from requirement_lines(os.path.join(os.path.dirname(path), name), texts, wanted)
        elif required and (line.startswith(("-e", "--editable")) or (line and not line.startswith("-"))):
            yield re.split(r"\s--?[A-Za-z]", line, maxsplit=1)[0].strip() if line[0] != "-" else line


def _checker() -> "Any":
    """Return a function of one requirement: "" if met, what to say if not, None if it cannot tell."""
    for package in ("packaging", "pip._vendor.packaging", "setuptools._vendor.packaging"):
        try:
            module = __import__(package + ".requirements", fromlist=["Requirement"])
        except ImportError:
            continue
        return _Checker(module.Requirement).check
    return _name_only


def _name_only(line: str) -> "Optional[str]":
    """Look for the name alone: this interpreter has nothing that can read versions."""
    match = _NAME.match(line)
    if not match:
        return None
    return "" if _installed(match.group(1)) else line


class _Checker:
    def __init__(self, parse: "Any") -> None:
        self._parse = parse
        self._seen: "Set[str]" = set()

    def check(self, line: str) -> "Optional[str]":
        """Say whether one requirement, and those of its extras, are met."""
        try:
            wanted = self._parse(line)
        except ValueError:  # a path, an URL, a repository: InvalidRequirement
            return None
        return self._unmet(wanted, "")

    def _unmet(self, wanted: "Any", extra: str) -> str:
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            return ""
        found = _installed(wanted.name)
        if found is None:
            return _shown(wanted)
        version, needs = found
        if version and not wanted.specifier.contains(version, prereleases=True):
            return "%s (%s is installed)" % (_shown(wanted), version)
        for name in wanted.extras:
            if (wanted.name + name) in self._seen:
                continue
            self._seen.add(wanted.name + name)
            for need in needs:
                if "extra" in need:
                    problem = self._unmet(self._parse(need), name)
                    if problem:
                        return problem
        return ""


def _shown(wanted: "Any") -> str:
    return "%s%s" % (wanted.name, wanted.specifier)


def _installed(name: str) -> "Optional[Tuple[str, List[str]]]":
    """Return version and requirements of an installed distribution, or None."""
    try:
        from importlib import metadata
    except ImportError:  # before Python 3.8
        return _installed_before_metadata(name)
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    return found.version or "", list(found.requires or ())


def _installed_before_metadata(name: str) -> "Optional[Tuple[str, List[str]]]":
    for module in ("pkg_resources", "pip._vendor.pkg_resources"):
        try:
            resources = __import__(module, fromlist=["working_set"])
        except ImportError:
            continue
        old = resources.working_set.by_key.get(name.lower().replace("_", "-"))
        return None if old is None else (old.version, [])
    return None
