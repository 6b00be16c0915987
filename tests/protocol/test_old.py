"""Documents of OpenPAI 0.13 and before are made into documents of today (O33)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import has_errors
from paijupyter.protocol import check, read, render_commands
from paijupyter.protocol.old import modernised

OLD = {
    "jobName": "tensorflow distributed",
    "image": "openpai/pai.run.tensorflow",
    "dataDir": "hdfs://10.0.0.1:9000/cifar10",
    "virtualCluster": "vc1",
    "gpuType": "K80",
    "retryCount": 2,
    "jobEnvs": {"LR": 0.1},
    "taskRoles": [
        {
            "name": "ps_server",
            "taskNumber": 2,
            "cpuNumber": 2,
            "memoryMB": 8192,
            "gpuNumber": 0,
            "portList": [{"label": "http-port", "beginAt": 8080, "portNumber": 2}],
            "command": "python train.py --job=ps \\\n  --data=$PAI_DATA_DIR",
            "minFailedTaskCount": 1,
        },
        {
            "name": "worker",
            "taskNumber": 1,
            "command": "python train.py",
            "shmMB": 64,
            "minSucceededTaskCount": 1,
        },
    ],
}


def test_o33_an_old_document_is_converted_and_what_changed_is_listed() -> None:
    text, changes = modernised(json.dumps(OLD))
    document = read(text)
    assert not has_errors(check(document)) and not has_errors(check(document, "openpai"))
    data = document.data
    assert (data["name"], data["jobRetryCount"]) == ("tensorflow-distributed", 2)
    assert data["defaults"] == {"virtualCluster": "vc1"}
    assert list(data["taskRoles"]) == ["psserver", "worker"]
    server = data["taskRoles"]["psserver"]
    assert server["resourcePerInstance"] == {"cpu": 2, "memoryMB": 8192, "gpu": 0, "ports": {"http_port": 2}}
    assert server["completion"] == {"minFailedInstances": 1}
    assert data["taskRoles"]["worker"]["extraContainerOptions"] == {"shmMB": 64}
    env = data["extras"]["paijupyter"]["env"]
    assert env == {"LR": "0.1", "PAI_DATA_DIR": "hdfs://10.0.0.1:9000/cifar10"}
    assert render_commands(document)["psserver"] == OLD["taskRoles"][0]["command"]  # type: ignore[index]
    said = "\n".join(map(str, changes))
    for word in ("0.13", "tensorflow-distributed", "psserver", "8080", "PAI_DATA_DIR", "gpuType"):
        assert word in said
    assert [each.message for each in changes if each.severity == "warning"] == [
        "`gpuType` is left out: a document of today has no field for it."
    ]


def test_all_other_texts_come_back_as_they_are() -> None:
    for text in ("", "jobName: a", '{"jobName"', '{"jobName": "a", "taskRoles": {}}', '["jobName"]',
                 '{"jobName": 1, "protocolVersion": 2, "taskRoles": []}'):  # fmt: skip
        assert modernised(text) == (text, [])


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@given(
    st.dictionaries(st.sampled_from(sorted(OLD)), VALUES),
    st.lists(st.dictionaries(st.sampled_from(sorted(OLD["taskRoles"][0])), VALUES), max_size=3),  # type: ignore[index]
)
def test_whatever_stands_in_it_gives_a_document_or_problems(job: dict[str, Any], roles: list[Any]) -> None:
    """No traceback: what makes no sense is found by the checks of today's document."""
    text, changes = modernised(json.dumps({**job, "jobName": job.get("jobName"), "taskRoles": roles}))
    assert changes
    check(read(text))
