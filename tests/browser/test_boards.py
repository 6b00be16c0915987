"""The way to TensorBoard: a job's outputs have events, its card a button, and the button a tab."""

from __future__ import annotations

import pytest

from tests.browser.lab import SCREENSHOTS

CELL = """%%paijob --name curves
import os
from tensorboard.summary import Writer

writer = Writer(os.path.join(os.environ["PAI_OUTPUT_DIR"], "runs"))
for step in range(20):
    writer.add_scalar("loss", 1 / (step + 1), step)
writer.close()"""
PLAIN = """%%paijob --name plain
import os, pathlib
pathlib.Path(os.environ["PAI_OUTPUT_DIR"], "loss.txt").write_text("0.05")"""


def test_tensorboard_opens_from_a_card(lab):
    """O32: one press, and a tab shows what the job has written; the link that stays leads to the same one."""
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: make test-browser")
    page = lab.page
    lab.notebook("curves.ipynb", "%load_ext paijupyter", CELL, PLAIN)
    lab.open("curves.ipynb")
    lab.select_first_cell()
    lab.run_cells(3)
    curves, plain = lab.card(0), lab.card(1)
    for card in (curves, plain):
        lab.wait_state(card, "succeeded")
        card.get_by_role("button", name="Outputs").click()
    plain.get_by_role("button", name="Pull").wait_for()
    assert not plain.get_by_role("button", name="TensorBoard").is_visible()

    with page.context.expect_page() as opened:
        curves.get_by_role("button", name="TensorBoard").click()
    board = opened.value
    board.get_by_text("loss", exact=True).first.wait_for()
    board.get_by_text("0.05", exact=True).first.wait_for()
    assert board.title() == "TensorBoard"
    board.screenshot(path=str(SCREENSHOTS / "tensorboard.png"))

    said = curves.locator(".jp-PaiCard-outputs [role='status']")
    said.get_by_text("until nobody has used it for 30 minutes").wait_for()
    lab.shoot("card-tensorboard-light")
    link = said.get_by_role("link", name="Open TensorBoard")
    assert board.url.startswith(link.evaluate("each => each.href").split("#")[0])
    look = "each => [getComputedStyle(each).color, getComputedStyle(each).textDecorationLine]"
    assert link.evaluate(look)[1] == "underline" and link.evaluate(look)[0] != said.evaluate(look)[0]
    lab.theme("JupyterLab Dark")
    lab.shoot("card-tensorboard-dark")
