"""The form: filled in, planned, submitted; the same document as text; secrets that rest nowhere."""

from __future__ import annotations

import json

from tests.browser.forming import SOURCE, exported, field, open_form, planned, stored_by, submit
from tests.resting import holders

CANARY = "c4n4ry-of-the-form"
TRAIN = """import sys
print("learning rate", sys.argv[1])
"""


def test_from_a_folder_to_a_job_that_ran(lab):
    """O4-O27, P22: opened from the launcher, filled in, planned, submitted after a question, watched."""
    page = lab.page
    (lab.root / "train.py").write_text(TRAIN)
    lab.open()
    page.locator(".jp-LauncherCard", has_text="Job").first.click()
    form = page.locator(".jp-PaiForm")
    form.wait_for()

    # What is required says so, in the form and in the plan; Submit says why it cannot be pressed.
    planned(form, ok=False)
    assert form.locator(".jp-PaiForm-submit").get_attribute("aria-disabled") == "true"
    assert "required" in form.locator("label", has_text="Commands").inner_text()
    lab.shoot("form-empty-light")
    form.locator(".jp-PaiPlan .jp-PaiPlan-problems button").first.click()
    assert page.evaluate("document.activeElement.closest('.jp-PaiField').dataset.path").endswith("/commands")

    form.get_by_label("Name", exact=True).fill("by-form")
    field(form, "Commands").fill("python train.py <% $parameters.lr %>")
    form.get_by_label("Add to: Parameters").click()
    form.get_by_label("Parameters: name").fill("lr")
    form.get_by_label("Parameters: value").fill("0.5")
    form.get_by_label("Parameters: value").blur()
    field(form, "Instances").fill("2")
    planned(form)
    form.locator(".jp-PaiForm-submit", has_text="Submit 2 tasks").wait_for()
    planned(form)
    assert "lr = 0.5" in form.locator(".jp-PaiPlan").inner_text()
    form.locator(".jp-PaiPlan summary", has_text="file").first.click()
    form.locator(".jp-PaiPlan-files li", has_text="train.py").wait_for()
    lab.shoot("form-light")
    lab.theme("JupyterLab Dark")
    lab.shoot("form-dark")
    lab.theme("JupyterLab Light")

    submit(lab, form)
    card = page.locator(".jp-PaiPage .jp-PaiCard")
    lab.wait_state(card, "succeeded", seconds=120)
    (job,) = lab.get("jobs")["jobs"]
    assert job["name"].startswith("by-form-") and job["taskTotal"] == 2
    assert job["parameters"] == {"lr": 0.5}
    assert "learning rate 0.5" in lab.read(f"paijupyter/v1/jobs/{job['id']}/logs?task=worker-0")


def test_the_same_document_as_text(lab):
    """O27: comments, order and untouched bytes stay; problems are marked at their lines; both are one."""
    page = lab.page
    lab.open()
    form = open_form(lab, document=SOURCE, folder="")
    planned(form)
    field(form, "Instances").fill("3")
    form.locator(".jp-PaiForm-submit", has_text="Submit 3 tasks").wait_for()
    form.get_by_role("tab", name="YAML").click()
    text = form.locator(".jp-PaiYaml .cm-content")
    text.wait_for()
    assert exported(lab, form) == SOURCE.replace("instances: 1", "instances: 3")

    # What is wrong is marked at its line, also while nothing can be read from the text.
    line = text.locator(".cm-line", has_text="instances: 3")
    line.click()
    page.keyboard.press("End")
    page.keyboard.type("0x")
    form.locator('.jp-PaiYaml-mark[data-severity="error"]', has_text="instances: 30x").wait_for()
    lab.shoot("form-yaml-light")
    page.keyboard.press("Backspace")
    form.locator(".jp-PaiForm-submit", has_text="Submit 30 tasks").wait_for()
    text.locator(".cm-line", has_text="commands:").click()
    page.keyboard.press("End")
    page.keyboard.type("]]")
    form.locator(".jp-PaiForm-why", has_text="The YAML cannot be read").wait_for()
    form.get_by_role("button", name="Undo").click()
    form.locator(".jp-PaiForm-submit", has_text="Submit 30 tasks").wait_for()
    assert exported(lab, form) == SOURCE.replace("instances: 1", "instances: 30")

    # Roles: copied, renamed, removed; the rest of the text stays.
    form.get_by_role("tab", name="Form").click()
    form.get_by_role("button", name="Copy the role worker").click()
    copy = form.locator('[data-role="worker2"]')
    copy.get_by_label("Role", exact=True).fill("ps")
    copy.get_by_label("Role", exact=True).press("Enter")
    form.locator('[data-role="ps"]').get_by_label("Instances").fill("1")
    form.locator(".jp-PaiForm-submit", has_text="Submit 31 tasks").wait_for()
    form.get_by_role("button", name="Remove the role worker").click()
    form.locator(".jp-PaiForm-submit", has_text="Submit 1 task").wait_for()
    assert exported(lab, form).startswith(SOURCE[: SOURCE.index("  worker:")])


def test_secrets_go_to_the_store_and_rest_nowhere(ring, lab, until):
    """O20: typed values are in two requests and the task; in nothing that browser or notebook keep."""
    page = lab.page
    sent: list[tuple[str, str]] = []
    page.on("request", lambda each: CANARY in (each.post_data or "") and sent.append((each.method, each.url)))
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framesent", lambda frame: CANARY in str(frame) and sent.append(("WS", socket.url))
        ),
    )
    lab.open()
    form = open_form(lab, document=SOURCE.replace("[echo hi]", "['echo ${#STORED} ${#ASKED}']"), folder="")
    for name in ("STORED", "ASKED"):
        form.get_by_label("Add a secret").click()
        form.get_by_label("Name of the secret").fill(name)
        form.get_by_label("Name of the secret").press("Enter")
        form.locator("code", has_text=name).wait_for()
    form.get_by_label("Value of STORED").fill(CANARY)
    form.get_by_label("Value of STORED").press("Enter")
    form.locator("option:checked", has_text="keyring: STORED").wait_for(state="attached")
    assert form.get_by_label("Value of STORED").input_value() == ""
    assert CANARY in ring.read_text()
    planned(form)
    lab.shoot("form-secrets-light")
    form.locator(".jp-PaiForm-submit").click()
    page.locator(".jp-Dialog").get_by_label("Value of ASKED").fill(CANARY + "-2")
    lab.shoot("form-question-light")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    card = page.locator(".jp-PaiPage .jp-PaiCard")
    lab.wait_state(card, "succeeded", seconds=120)
    (job,) = lab.get("jobs")["jobs"]
    log = lab.read(f"paijupyter/v1/jobs/{job['id']}/logs?task=worker-0")
    assert f"{len(CANARY)} {len(CANARY) + 2}" in log

    assert [(method, url.split("/v1/")[1].split("?")[0]) for method, url in sent] == [
        ("PUT", "secrets/STORED"),
        ("POST", "jobs"),
    ]
    assert CANARY not in stored_by(page)
    # What a job that has ended needs no more is taken away; its own log is masked; the ring lies elsewhere.
    until(lambda: not holders(CANARY, lab.root.parent), seconds=60, why="no file to hold a value")
    assert CANARY not in json.dumps(lab.get(f"jobs/{job['id']}"))


def test_opened_from_everywhere(lab):
    """The palette, the notebook's toolbar, a cell's menu, an earlier job, and `%%paijob --form` in a cell."""
    page = lab.page
    lab.notebook(
        "every.ipynb", "%load_ext paijupyter", "%%paijob --form --name from-cell --param lr=0.1\nprint(lr)"
    )
    lab.open("every.ipynb")

    # The magic: the form opens beside the cell, with what the cell says; the output keeps a button.
    lab.select_first_cell()
    lab.run_cells(2)
    form = page.locator(".jp-PaiForm")
    form.wait_for(timeout=60_000)
    assert form.get_by_label("Name", exact=True).input_value() == "from-cell"
    assert form.get_by_label("Parameters: value").input_value() == "0.1"
    planned(form)
    submit(lab, form)
    lab.wait_state(page.locator(".jp-PaiPage .jp-PaiCard"), "succeeded", seconds=120)
    (job,) = lab.get("jobs")["jobs"]
    assert job["name"].startswith("from-cell-") and job["cell"]
    assert "0.1" in lab.read(f"paijupyter/v1/jobs/{job['id']}/logs?task=worker-0")

    # The toolbar: the whole notebook.
    page.locator(".lm-TabBar-tab", has_text="every.ipynb").first.click()
    page.get_by_role("button", name="Open the form").wait_for()
    page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="paijupyter-form"] jp-button').click()
    form = page.locator(".jp-PaiForm:visible")
    form.get_by_label("Name", exact=True).wait_for()
    assert form.get_by_label("Name", exact=True).input_value() == "every"

    # An earlier job: its document and package; submitted as a copy.
    form = open_form(lab, job=job["id"])
    planned(form)
    form.get_by_label("Parameters: value").fill("0.7")
    form.locator(".jp-PaiPlan", has_text="lr = 0.7").wait_for()
    planned(form)
    submit(lab, form)
    page.locator(".jp-PaiPage:visible .jp-PaiCard").wait_for()
    copy = next(each for each in lab.get("jobs")["jobs"] if each["id"] != job["id"])
    assert copy["parameters"] == {"lr": 0.7} and copy["packageSha256"] == job["packageSha256"]
