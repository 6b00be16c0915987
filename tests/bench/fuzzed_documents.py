"""Random job documents, and the original's schema as their judge."""

from __future__ import annotations

import copy
import json
import random
import re
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from paijupyter.errors import InvalidDocument
from paijupyter.protocol import check, read, render_commands
from paijupyter.protocol.findings import Findings
from paijupyter.protocol.javascript import Timestamp
from paijupyter.protocol.structure import check_structure

_LARGEST_SEED = 3000
_SEED = """\
protocolVersion: 2
name: fuzz_1
type: job
jobRetryCount: 1
prerequisites:
  - {name: image, type: dockerimage, uri: "python:3.11", auth: {username: u, password: <% $secrets.P %>}}
  - {name: code, type: script, uri: "https://example.org/x.git", plugin: p, require: [image]}
  - {name: set, type: data, uri: ["hdfs://x"]}
  - {name: out, type: output, uri: "hdfs://y"}
parameters: {lr: 0.1, on: true, names: [a, b], deep: {er: 1}}
secrets: {P: "x"}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    data: set
    output: out
    script: code
    completion: {minFailedInstances: 1, minSucceededInstances: null}
    taskRetryCount: 0
    extraContainerOptions: {shmMB: 64, infiniband: false}
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0, ports: {tb: 1}}
    commands: ["python x.py --lr <% $parameters.lr %>", "echo <% $script.name %> <% $output.uri %>"]
  ps:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands: [sleep 1]
deployments:
  - name: prod
    taskRoles: {worker: {preCommands: [a], postCommands: [b]}}
defaults: {deployment: prod, virtualCluster: default}
extras: {gangAllocation: true, paijupyter: {version: 1, env: {A: b}, outputs: ["*.npz"], timeLimit: 60}}
"""
# fmt: off
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1.5, 2.0, 1e400, 2**40, "", "2", "a", "a b", "é", "\x00", "1", "null",
    "job", "image", "<% $parameters.lr %>", "<% $secrets.P", "<%{%>", "$(FC_X)", "******", [], {}, [1], ["a"],
    [None], {"a": 1}, {"name": "x"}, {"name": "x", "type": "data"}, [[[[]]]], {"": ""}, "2001-01-01", "0x1F",
    [{"name": "x", "type": "dockerimage", "uri": "y"}], "1_000", "~", "yes", "x" * 300, "a\nb", " a ",
    "\u2028", "\ud800",
)
_KEYS = (
    "name", "type", "uri", "version", "instances", "a-b", "1a", "", "é", "constructor", "__proto__",
    "toString",
)
_TEXT = (
    "\t", "\r\n", "\ufeff", ":", "- ", "&a ", "*a", "<<: ", "{", "}", "[", "]", "'", '"', "|\n", ">-\n", "#",
    "!!str ", "!!js/undefined ", "%YAML 1.1\n", "---\n", "...\n", "? ", "\x00", "\x85", "\n  ", "  ", "\n",
    ",", "@", "`",
)
# fmt: on


def judge(lot: int, count: int, corpus: str) -> tuple[int, int, int]:
    """Read, check, render a lot of documents; return tracebacks, other verdicts, and how many were judged."""
    source = random.Random(lot)
    tracebacks = differ = judged = 0
    for _ in range(count):
        text = _fuzzed(source, corpus)
        try:
            verdicts = _verdicts(text, corpus)
        except Exception:  # what is counted here
            tracebacks += 1
            print(f"--- lot {lot}\n{text!r}\n{traceback.format_exc()}", file=sys.stderr)
            continue
        if verdicts is not None:
            judged += 1
            differ += verdicts[0] != verdicts[1]
            if verdicts[0] != verdicts[1]:
                print(f"--- lot {lot}: ours {verdicts[0]}, theirs {verdicts[1]}\n{text!r}", file=sys.stderr)
    return tracebacks, differ, judged


def _verdicts(text: str | bytes, corpus: str) -> tuple[bool, bool] | None:
    try:
        document = read(text)
    except InvalidDocument as error:
        str(error)
        return None
    for target in ("paijupyter", "openpai"):
        [problem.to_json() for problem in check(document, target)]  # type: ignore[arg-type]
    try:
        render_commands(document)
    except InvalidDocument as error:
        str(error)
    if not corpus:
        return None
    found = Findings(document, "openpai")
    check_structure(found)
    ours = not any(problem.severity == "error" for problem in found.problems)
    return ours, _schema(corpus).is_valid(_as_javascript(document.data))


def _as_javascript(value: Any) -> Any:
    """Return a value as a JSON schema of JavaScript sees it: a date is an object, 2.0 is 2."""
    if isinstance(value, Timestamp):
        return {}
    if isinstance(value, dict):
        return {key: _as_javascript(item) for key, item in value.items()}
    return [_as_javascript(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=1)
def _schema(corpus: str) -> Any:
    parts = json.loads((Path(corpus) / "pai-derived" / "rest-server-protocol-v2.schema.json").read_text())
    whole = _resolved(parts["protocol"], parts["base"])
    whole.pop("$id", None)
    (role,) = whole["properties"]["taskRoles"]["patternProperties"].values()
    # Later versions of the original have it; this schema lets anything pass as one.
    role["properties"]["extraContainerOptions"]["properties"]["infiniband"] = {"type": "boolean"}
    return jsonschema.Draft7Validator(whole)


def _resolved(value: Any, base: Any) -> Any:
    """Write out `$ref` to the base and `$merge` (RFC 7396); `$` means the very end, as in JavaScript."""
    if isinstance(value, list):
        return [_resolved(item, base) for item in value]
    if isinstance(value, str):
        return re.sub(r"^(\^.*)\$$", r"\1\\Z", value)
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        found = base
        for key in filter(None, value["$ref"].partition("#")[2].split("/")):
            found = found[key]
        return {key: item for key, item in _resolved(found, base).items() if key != "$id"}
    if "$merge" in value:
        return _merged(_resolved(value["$merge"]["source"], base), _resolved(value["$merge"]["with"], base))
    # Roles and ports that are no mapping pass the schema, and then the original server breaks on them.
    kind = {"type": "object"} if "patternProperties" in value else {}
    return {**kind, **{_resolved(key, base): _resolved(item, base) for key, item in value.items()}}


def _merged(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return {**one, **{key: _merged(one.get(key), item) for key, item in other.items()}}


def _fuzzed(source: random.Random, corpus: str) -> str | bytes:
    text = source.choice(_seeds(corpus))
    if source.random() < 0.6:
        data = yaml.load(text, yaml.CSafeLoader)
        for _ in range(source.choice((1, 1, 1, 2, 4))):
            _mutate(data, source)
        return source.choice(_WRITERS)(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        at, length = source.randrange(len(text) + 1), source.choice((0, 0, 1, 1, 3, 20))
        text = text[:at] + source.choice(("", *_TEXT)) + text[at + length :]
    return text


def _mutate(data: Any, source: random.Random) -> None:
    here = data
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = source.choice(keys)
        if not isinstance(here[key], (dict, list)) or source.random() < 0.25:
            break
        here = here[key]
    what = source.randrange(5)
    if what == 0:
        del here[key]
    elif what == 1 and isinstance(here, dict):
        here[source.choice(_KEYS)] = here.pop(key)
    elif what == 2 and isinstance(here, dict):
        here[source.choice(_KEYS)] = copy.deepcopy(source.choice(_VALUES))
    else:
        here[key] = copy.deepcopy(source.choice(_VALUES))


def _as_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True)


def _as_yaml(data: Any) -> str:
    try:
        return yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=False)
    except UnicodeEncodeError:  # half a character can only be written as JSON
        return _as_json(data)


_WRITERS: tuple[Callable[[Any], str], ...] = (_as_json, _as_yaml, _as_yaml)


@lru_cache(maxsize=1)
def _seeds(corpus: str) -> list[str]:
    seeds = [_SEED] * 5
    for path in sorted(Path(corpus).rglob("*.y*ml")) if corpus else ():
        text = path.read_bytes().decode("utf-8", "replace")
        try:
            if len(text) <= _LARGEST_SEED and isinstance(yaml.load(text, yaml.CSafeLoader), dict):
                seeds.append(text)
        except yaml.YAMLError:
            continue
    return seeds
