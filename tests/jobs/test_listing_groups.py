"""Lists fold groups: the jobs of no group, and those of one."""

from __future__ import annotations

import json

import pytest

from paijupyter.errors import NotFound
from tests.documents import document

TEMPLATE = document("echo {lr}", name="sweep-lr")


@pytest.mark.asyncio
async def test_jobs_of_a_group_are_listed_by_it_and_left_out_of_the_folded_list(bench, kit):
    """T7: a thousand experiments are one row, which opens by page."""
    alone = await bench.submit("alone")
    experiments = {"experiments": {str(each): {"lr": each} for each in (1, 2, 3)}}
    request = {"template": TEMPLATE, "experiments": json.dumps(experiments), "context": {"user": "ann"}}
    group, _ = await bench.service.groups.submit(request)
    await kit.eventually(lambda: len(bench.service.list(group=group["id"])["jobs"]) == 3)
    page = bench.service.list(group="sweep-lr", limit=2)
    assert len(page["jobs"]) == 2 and page["next"]
    assert len(bench.service.list(group="sweep-lr", limit=2, cursor=page["next"])["jobs"]) == 1
    assert [job["id"] for job in bench.service.list(group="-")["jobs"]] == [alone["id"]]
    assert len(bench.service.list()["jobs"]) == 4
    with pytest.raises(NotFound):
        bench.service.list(group="nothing-of-that-name")
