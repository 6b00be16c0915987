"""The form: filled in, planned, submitted; the same document as text; secrets that rest nowhere."""

from __future__ import annotations

TRAIN = """import sys
print("learning rate", sys.argv[1])
"""


def open_form(lab, **arguments):
    """Open a form as a command does; return it."""
    lab.page.evaluate("args => window.jupyterapp.commands.execute('paijupyter:form', args)", arguments)
    form = lab.page.locator(".jp-PaiForm").last
    form.wait_for()
    return form


def field(form, label: str):
    """Return the input of a label."""
    return form.get_by_label(label, exact=False).first


def planned(form, ok: bool = True) -> None:
    """Wait until the plan is about what the form says, and what it says."""
    form.locator(f".jp-PaiPlan:not([aria-busy]) .jp-PaiPlan-verdict[data-ok={str(ok).lower()}]").wait_for()


def submit(lab, form) -> None:
    """Submit, and say yes."""
    form.locator(".jp-PaiForm-submit").click()
    lab.page.locator(".jp-Dialog .jp-mod-accept").click()


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
    assert "2 tasks" in form.locator(".jp-PaiForm-submit").inner_text()
    assert "lr = 0.5" in form.locator(".jp-PaiPlan").inner_text()
    form.locator(".jp-PaiPlan summary", has_text="file").first.click()
    form.locator(".jp-PaiPlan-files li", has_text="train.py").wait_for()
    lab.shoot("form-light")
    lab.theme("JupyterLab Dark")
    lab.shoot("form-dark")
    lab.theme("JupyterLab Light")

    submit(lab, form)
    card = page.locator(".jp-PaiPage .jp-PaiCard")
    lab.wait_state(card, "succeeded", seconds=60)
    (job,) = lab.get("jobs")["jobs"]
    assert job["name"].startswith("by-form-") and job["taskTotal"] == 2
    assert job["parameters"] == {"lr": 0.5}
    assert "learning rate 0.5" in lab.read(f"paijupyter/v1/jobs/{job['id']}/logs?task=worker-0")
