"""Job manifests as templates, and the article's own pipeline (T1, T8 to T14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paijupyter.errors import InvalidDocument
from paijupyter.experiments import fill, read_listing
from paijupyter.experiments.manifest import LOST, convert
from paijupyter.experiments.sweep import shape
from paijupyter.protocol import check, read

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "pipeline"

MANIFEST = """\
apiVersion: batch/v1
kind: Job
metadata: {name: ann-run-{0}, namespace: lab}
spec:
  backoffLimit: 1
  activeDeadlineSeconds: {seconds}
  template:
    metadata: {labels: {jobgroup: group-{1}}}
    spec:
      containers:
        - name: main
          image: {image}
          imagePullPolicy: Always
          command: ["python", "-u"]
          args: ["train.py", "--model", "{1}", "--data=$(DATA)", "$$(KEPT)", "two words"]
          env:
            - {name: DATA, value: "{path}"}
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
          resources:
            requests: {cpu: 1500m, memory: 1Gi}
            limits: {cpu: "2", memory: 1Gi, nvidia.com/gpu: "2"}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: shm, mountPath: /dev/shm}
      restartPolicy: Never
      volumes:
        - {name: data, persistentVolumeClaim: {claimName: data}}
        - {name: shm, emptyDir: {medium: Memory, sizeLimit: 256Mi}}
        - {name: spare, emptyDir: }
"""
EXPERIMENTS = """\
fields: [model]
common: {image: "lab/train:1", path: /data/x, seconds: 60}
experiments:
  1: {model: small}
  2: [large]
"""


def test_the_article_renders_byte_for_byte() -> None:
    """T1: the article's template, four experiments and three constants."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    listing = read_listing((CORPUS / "experiments.yaml").read_text())
    made = fill((CORPUS / "template.yaml").read_text(), listing)
    assert made.is_manifest and [each.key for each in made.filled] == ["1", "2", "3", "4"]
    for each in made.filled:
        assert each.text.encode() == (CORPUS / "expected" / f"{each.key}.yaml").read_bytes()
    codes = {each.code for each in made.problems}
    assert {"cephfs-removed", "volume-not-mounted", "path-not-mounted", "not-carried"} <= codes
    assert not [each for each in made.problems if each.severity == "error"]


def test_a_template_of_the_same_kind_renders_as_str_format_does() -> None:
    """T1, T2: where nothing else is in braces, the text is that of Python's own `str.format`."""
    template = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: user-experiment-{0}
spec:
  template:
    spec:
      containers:
        - image: {5}
          command:
            - "python"
          args:
            - "--model"
            - "{1}"
            - "{2}"
          env:
            - name: DIR
              value: "{4}"
  # {1} {3}
"""
    experiments = {1: ["resnet18", 32, "cifar10"], 2: ["resnet152", 64, "animals"]}
    constants = ["/some/dir", "registry/image:latest"]
    listing = read_listing(f"experiments: {experiments}\ncommon: {constants}\n")
    made = fill(template, listing)
    for each in made.filled:
        key = int(each.key)
        assert each.text == template.format(key, *experiments[key], *constants)


def test_a_manifest_becomes_a_job_document() -> None:
    """T1, T11, T12: image, command, args, env, resources; and a document that passes every check."""
    made = fill(MANIFEST, read_listing(EXPERIMENTS))
    document = read(made.filled[1].document)
    assert not [each for each in check(document) if each.severity == "error"]
    role = document.data["taskRoles"]["main"]
    assert role["commands"] == ["""python -u train.py --model large --data="${DATA}" '$(KEPT)' 'two words'"""]
    assert role["resourcePerInstance"] == {"cpu": 2, "memoryMB": 1024, "gpu": 2}
    assert role["extraContainerOptions"] == {"shmMB": 256}
    assert document.data["name"] == "ann-run-2" and document.data["jobRetryCount"] == 1
    ours = document.data["extras"]["paijupyter"]
    assert ours["env"] == {"DATA": "/data/x"} and ours["timeLimit"] == 60
    assert document.data["prerequisites"][0]["uri"] == "lab/train:1"


def test_all_that_is_lost_is_listed_with_its_line() -> None:
    """T1, T10, T13, T14."""
    made = fill(MANIFEST, read_listing(EXPERIMENTS))
    lost = {each.line: each.message for each in made.problems if each.code == "not-carried"}
    assert sorted(lost) == [3, 8, 13, 18, 23, 27, 29]
    assert (
        "namespace" in lost[3] and "labels" in lost[8] and "imagePullPolicy" in lost[13] and "POD" in lost[18]
    )
    wrong = [each.message for each in made.problems if each.code == "volume-not-mounted"]
    assert wrong == ["Volume `spare` is declared and mounted nowhere."]


def one(**spec: Any) -> str:
    from paijupyter.protocol import write

    container = {"name": "main", "image": "x", "command": ["true"], **spec.pop("container", {})}
    pod = {"containers": [container, *spec.pop("more", [])], "restartPolicy": "Never", **spec.pop("pod", {})}
    return write(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "x"},
            "spec": {"backoffLimit": 0, **spec, "template": {"spec": pod}},
        }
    )


def test_nothing_is_lost_of_a_manifest_that_has_nothing_more() -> None:
    document, problems = convert(one())
    assert problems == [] and read(document).data["taskRoles"]["main"]["commands"] == ["true"]


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        (one(container={"command": "true"}), "not-a-list"),
        (one(container={"image": None}), "no-container"),
        (one(backoffLimit="many"), "not-a-number"),
        (one(container={"resources": {"limits": {"memory": "much"}}}), "bad-quantity"),
    ],
)
def test_what_cannot_be_run_is_refused(manifest: str, code: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        convert(manifest)
    assert code in [each.code for each in caught.value.problems]


def test_what_only_a_cluster_can_run_is_an_error_of_the_list() -> None:
    """T1: a cluster starts what the image says; elsewhere nobody knows what that is."""
    document, problems = convert(one(container={"command": []}))
    assert [(each.severity, each.code) for each in problems] == [("error", "no-command")]
    assert {each.code for each in problems} <= LOST
    assert read(document).data["taskRoles"]["main"]["commands"] == [
        "exit 127  # what the image starts by itself:"
    ]


def test_the_document_holds_the_manifest_for_a_cluster() -> None:
    """T1: as written, with everything that a job document cannot carry."""
    made = fill(MANIFEST, read_listing(EXPERIMENTS))
    for each in made.filled:
        kept = read(each.document).data["extras"]["paijupyter"]["kubernetes"]["manifest"]
        assert kept == yaml.safe_load(each.text)
    shapes = {shape(each.data) for each in made.filled}
    assert len(shapes) == 1, "experiments that differ in what only the manifest says are planned as one"


def test_further_containers_and_tasks() -> None:
    document, problems = convert(
        one(completions=3, parallelism=3, completionMode="Indexed", more=[{"name": "log", "image": "y"}])
    )
    assert read(document).data["taskRoles"]["main"]["instances"] == 3
    assert ["container `log`" in each.message for each in problems] == [True]


def test_a_gpu_request_must_equal_its_limit() -> None:
    """T11."""
    resources = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}
    assert "gpu-request" in [each.code for each in convert(one(container={"resources": resources}))[1]]
