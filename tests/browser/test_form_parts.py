"""The parts of the form: every kind of field, import, what comes back, every way in, by keyboard alone."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.browser.access import walk
from tests.browser.forming import SOURCE, exported, field, open_form, planned, stored_by, submit
from tests.openpai.server import OpenPai

CANARY = "c4n4ry-of-a-draft"
MORE_ROWS = '''
"""Give the table of fields one row more, in every process that reads it."""
import importlib.util
import sys


class More:
    def find_spec(self, name, path=None, target=None):
        if name != "paijupyter.protocol.fields":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        read = spec.loader.exec_module

        def exec_module(module):
            read(module)
            path = "/taskRoles/*/extraContainerOptions/infiniband"
            help = "Whether the tasks get the network device."
            row = module.Field(path, "InfiniBand", help, level="advanced", widget="switch", default="false")
            module.FIELDS = (*module.FIELDS, row)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, More())
'''
OLD = {
    "jobName": "old job",
    "image": "openpai/pai.run.tensorflow",
    "dataDir": "hdfs://host/data",
    "taskRoles": [{"name": "PS", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 512, "command": "sleep 1"}],
}
WITH_VALUES = SOURCE.replace(
    "uri: python:3.11-slim}", f"uri: python:3.11-slim, auth: {{username: me, password: {CANARY}-registry}}}}"
) + (f"secrets:\n  TOKEN: {CANARY}-token\n")


@pytest.fixture(scope="module")
def pai():
    """A scripted OpenPAI server with HiveD, two virtual clusters and a storage."""
    with OpenPai() as server:
        server.virtual_clusters = ["default", "research"]
        server.accounts.users["alice"].virtual_clusters = ["default", "research"]
        server.skus = {"V100": {"cpu": 6, "memory": 55_296, "gpu": 1}}
        server.storages = {"team": {"type": "nfs", "data": {}}}
        server.accounts.users["alice"].storages = ["team"]
        yield server


@pytest.fixture(scope="module")
def surroundings(pai, tmp_path_factory):
    """Let the servers that start now log in, and read a table of fields with one row more."""
    folder = tmp_path_factory.mktemp("more")
    (folder / "sitecustomize.py").write_text(MORE_ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv("PAIJUPYTER_TOKEN_PAI", pai.token())
        yield


@pytest.fixture
def forms(surroundings, pai, shared_lab):
    """A page without any form, on a server with a profile `pai`."""
    for workspace in (shared_lab.server.home / "workspaces").glob("*"):
        workspace.unlink()
    if "pai" not in [each["name"] for each in shared_lab.get("profiles")["profiles"]]:
        shared_lab.post("profiles", {"name": "pai", "settings": {"kind": "openpai", "url": pai.url}})
    shared_lab.open()
    return shared_lab


def offered(form, label: str) -> list[str]:
    """Return what a field offers to choose from."""
    return field(form, label).evaluate("input => [...input.list.options].map(each => each.value)")


def says(form, text: str) -> None:
    """Wait until the plan has a text."""
    form.locator(".jp-PaiPlan:not([aria-busy])", has_text=text).wait_for()


def advanced(form):
    """Unfold everything; return the form."""
    form.evaluate("form => form.querySelectorAll('details').forEach(each => (each.open = true))")
    return form


def test_a_row_of_the_table_is_a_control_without_work_on_the_form(forms):
    """O7: the server's table has a row more, which the front end has never heard of."""
    form = advanced(open_form(forms, document=SOURCE, folder=""))
    control = form.get_by_label("InfiniBand")
    assert "the network device" in form.locator('[data-path$="/infiniband"]').inner_text()
    control.select_option("true")
    says(form, "InfiniBand is asked for by role worker")
    document = yaml.safe_load(exported(forms, form))
    assert document["taskRoles"]["worker"]["extraContainerOptions"] == {"infiniband": True}
    control.select_option("")
    planned(form)
    assert exported(forms, form) == SOURCE


def test_what_openpai_has_is_offered_and_filled_in(forms, pai, until):
    """O4, O7, O8, O14, O16, O21: clusters, SKU types, images, plug-ins and the rest are offered."""
    form = advanced(open_form(forms, document=SOURCE, folder="", profile="pai"))
    until(lambda: offered(form, "Virtual cluster") == ["default", "research"], 60, "the clusters")
    assert any(each.startswith("openpai/standard") for each in offered(form, "Image"))
    field(form, "Virtual cluster").fill("research")
    until(lambda: offered(form, "SKU type") == ["V100"], 60, "the SKU types")
    field(form, "SKU type").fill("V100")
    form.get_by_label("SKUs", exact=False).last.fill("2")
    form.get_by_text("Each cell has 1 GPU, 6 CPUs, 54 GiB.").wait_for()
    form.get_by_label("Affinity group").fill("near")
    form.locator(".jp-PaiPlan:not([aria-busy])").wait_for()
    form.get_by_role("button", name="Take its resources").click()
    form.locator(".jp-PaiForm-submit", has_text="2 GPUs").wait_for()
    form.get_by_label("Task retries").fill("2")
    form.get_by_label("Start together").select_option("false")
    form.get_by_label("Priority", exact=True).select_option("prod")
    form.get_by_label("Tags").fill("mnist\nnightly")
    form.get_by_label("it failed").check()
    form.get_by_label("Retries", exact=True).fill("3")
    form.get_by_label("Time limit").fill("2h")
    form.get_by_label("Failed tasks that end the job").fill("1")
    form.get_by_label("Succeeded tasks that end the job").fill("1")
    form.get_by_label("Add to: Ports").click()
    form.get_by_label("Ports: name").fill("http2")
    form.get_by_label("Ports: value").fill("2")
    form.get_by_label("Ports: value").blur()
    form.get_by_label("Add to: Storages").click()
    form.get_by_label("Storages: name").fill("team")
    form.get_by_label("Storages: name").blur()

    for kind in ("ssh", "tensorboard", "teamwise_storage", "git"):
        form.get_by_label("Kind to add to: Plug-ins").select_option(kind)
        form.get_by_label("Add to: Plug-ins", exact=True).click()
        form.locator(f"[data-kind={kind}]").wait_for()
    form.locator("[data-kind=ssh]").get_by_label("userssh value").fill("ssh-ed25519 AAAA me")
    form.locator("[data-kind=git]").get_by_label("repo_uri").fill("https://host/repo.git")
    form.locator("[data-kind=teamwise_storage]").get_by_label("storageConfigNames").fill("team")
    form.locator("[data-kind=git]").get_by_label("failurePolicy").select_option("ignore")
    # What a plug-in needs of the image is said beside it, and the plan says it too.
    form.locator('[data-widget="kinds"]', has_text="needs openssh in the image").wait_for()
    form.locator("[data-kind=ssh]").scroll_into_view_if_needed()
    forms.shoot("form-openpai-light")
    forms.theme("JupyterLab Dark")
    forms.shoot("form-openpai-dark")
    forms.theme("JupyterLab Light")
    form.locator(".jp-PaiPlan:not([aria-busy])").wait_for()

    document = yaml.safe_load(exported(forms, form))
    worker, extras = document["taskRoles"]["worker"], document["extras"]
    assert worker["taskRetryCount"] == 2 and document["jobRetryCount"] == 3
    assert worker["completion"] == {"minFailedInstances": 1, "minSucceededInstances": 1}
    assert worker["resourcePerInstance"] == {"cpu": 12, "memoryMB": 110_592, "gpu": 2, "ports": {"http2": 2}}
    assert document["defaults"] == {"virtualCluster": "research"}
    assert extras["hivedScheduler"] == {
        "taskRoles": {"worker": {"skuType": "V100", "skuNum": 2, "affinityGroupName": "near"}},
        "jobPriorityClass": "prod",
    }
    assert extras["gangAllocation"] is False and extras["tags"] == ["mnist", "nightly"]
    assert extras["jobStatusChangeNotification"] == {"failed": True}
    assert extras["storages"] == [{"name": "team"}] and extras["paijupyter"]["timeLimit"] == 7200
    assert extras["com.microsoft.pai.runtimeplugin"] == [
        {
            "plugin": "ssh",
            "parameters": {"jobssh": True, "userssh": {"type": "custom", "value": "ssh-ed25519 AAAA me"}},
        },
        {
            "plugin": "tensorboard",
            "parameters": {"port": 10000, "logdir": {"tensorboard": "/mnt/tensorboard"}},
        },
        {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["team"]}},
        {"plugin": "git", "parameters": {"repo_uri": "https://host/repo.git"}, "failurePolicy": "ignore"},
    ]

    # A role takes what is said of it elsewhere along; removed, it leaves nothing of that.
    form.get_by_role("button", name="Copy the role worker").click()
    form.locator('[data-role="worker2"]').wait_for()
    form.get_by_role("button", name="Remove the role worker", exact=True).click()
    form.locator('[data-role="worker"]').wait_for(state="detached")
    form.locator(".jp-PaiPlan:not([aria-busy])").wait_for()
    document = yaml.safe_load(exported(forms, form))
    assert list(document["extras"]["hivedScheduler"]["taskRoles"]) == ["worker2"]

    # What is offered is kept for some minutes, unless it is asked for.
    pai.virtual_clusters = ["default", "research", "new"]
    pai.accounts.users["alice"].virtual_clusters = ["default", "research", "new"]
    form.get_by_role("button", name="Ask again").click()
    until(lambda: "new" in offered(form, "Virtual cluster"), 60, "the new cluster")

    # Elsewhere only what is set stays in sight.
    form.get_by_label("E-mail").get_by_label("it failed").uncheck()
    form.get_by_label("Profile", exact=True).select_option("local")
    form.get_by_label("it failed").wait_for(state="hidden")
    assert form.locator("[data-kind=ssh]").is_visible()


def test_a_fault_that_is_folded_away_is_seen_and_reached(forms):
    """A role whose image is nowhere says so while folded; its problem leads to the image and opens it."""
    form = open_form(forms, document=SOURCE.replace("dockerImage: image", "dockerImage: nowhere"), folder="")
    planned(form, ok=False)
    fold = form.locator('[data-role="worker"] details').first
    assert fold.get_attribute("open") is None
    mark = "summary => getComputedStyle(summary, '::after').content"
    assert "✕" in fold.locator("summary").first.evaluate(mark)
    form.locator('.jp-PaiPlan-problems [data-severity="error"] button', has_text="dockerImage").click()
    assert forms.page.evaluate("document.activeElement.labels[0].textContent") == "Image"
    assert "✕" not in fold.locator("summary").first.evaluate(mark)


def test_credentials_data_storages_and_parameters(forms):
    """O8, O16-O20: what the roles get; a registry's password is only ever the name of a secret."""
    (forms.root / "train.csv").write_text("1,2\n")
    form = advanced(open_form(forms, document=SOURCE, folder=""))
    for label, text in (
        ("User", "me"),
        ("Secret that is the password", "REGISTRY_PASSWORD"),
        ("Registry", "registry.example"),
    ):
        form.get_by_label(label, exact=True).fill(text)
        form.get_by_label(label, exact=True).blur()
    form.get_by_label("Where REGISTRY_PASSWORD comes from").wait_for()
    for label, name, value in (("Parameters", "lr", "0.1"), ("Environment", "MODE", "fast")):
        form.get_by_label(f"Add to: {label}", exact=True).click()
        form.get_by_label(f"{label}: name", exact=True).fill(name)
        form.get_by_label(f"{label}: value", exact=True).fill(value)
        form.get_by_label(f"{label}: value", exact=True).blur()
    form.get_by_label("Add to: Data").click()
    form.get_by_label("Data: name").fill("train")
    form.get_by_label("Data: uri").fill("train.csv")
    form.get_by_label("Data: uri").blur()
    form.get_by_label("Add to: Storages").click()
    form.get_by_label("Storages: name").fill("team")
    form.get_by_label("Storages: mountPath").fill("/mnt/team")
    form.get_by_label("Storages: mountPath").blur()
    says(form, "train.csv")
    # The profile has no such storage: the plan says so, and leads to the field.
    problem = form.locator('.jp-PaiPlan-problems [data-severity="error"]').first
    problem.wait_for()
    assert "1 error" in form.locator(".jp-PaiPlan-count").inner_text()
    problem.get_by_role("button").click()
    assert "torages" in forms.page.evaluate("document.activeElement.getAttribute('aria-label')")
    form.get_by_label("Remove from: Storages").click()
    planned(form)
    says(form, "lr = 0.1")
    document = yaml.safe_load(exported(forms, form))
    assert document["prerequisites"][0]["auth"] == {
        "username": "me",
        "password": "<% $secrets.REGISTRY_PASSWORD %>",
        "registryuri": "registry.example",
    }
    assert document["secrets"] == {"REGISTRY_PASSWORD": ""} and document["parameters"] == {"lr": 0.1}
    assert document["extras"] == {
        "paijupyter": {
            "version": 1,
            "env": {"MODE": "fast"},
            "data": [{"name": "train", "uri": "train.csv"}],
        }
    }


def test_documents_come_in_and_go_out(forms, tmp_path):
    """O27, O33: a file, a paste; what was converted or taken out is listed; out again byte for byte."""
    page = forms.page
    form = open_form(forms, folder="")
    file = tmp_path / "job.yaml"
    file.write_text(SOURCE)
    form.get_by_role("button", name="Import").click()
    page.locator(".jp-Dialog input[type=file]").set_input_files(file)
    page.wait_for_function("() => document.querySelector('.jp-Dialog textarea').value.length > 100")
    forms.shoot("form-import-light")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    planned(form)
    assert form.get_by_label("Name", exact=True).input_value() == "kept"
    assert exported(forms, form) == SOURCE

    paste(forms, form, json.dumps(OLD))
    notice = form.locator(".jp-PaiForm-notice", has_text="made into one of version 2")
    notice.wait_for()
    assert "`old job`" not in notice.inner_text() and "Task role PS is now ps" in notice.inner_text()
    assert form.get_by_label("Name", exact=True).input_value() == "old-job"
    forms.shoot("form-converted-light")
    notice.get_by_role("button", name="Close the list").click()
    assert yaml.safe_load(exported(forms, form))["taskRoles"]["ps"]["commands"] == ["sleep 1"]

    # Values of secrets do not stay in a document, whoever has put them there.
    paste(forms, form, WITH_VALUES)
    form.locator(".jp-PaiForm-notice", has_text="The value of REGISTRY_PASSWORD was taken out").wait_for()
    form.get_by_label("Where TOKEN comes from").wait_for()
    planned(form)
    text = exported(forms, form)
    assert CANARY not in text and "<% $secrets.REGISTRY_PASSWORD %>" in text
    # What is no document is shown as the text it is, with what is wrong.
    paste(forms, form, "a: [")
    form.locator(".jp-PaiForm-why", has_text="The YAML cannot be read").wait_for()


def paste(lab, form, text: str) -> None:
    """Import a pasted text."""
    form.get_by_role("button", name="Import").click()
    lab.page.locator(".jp-Dialog textarea").fill(text)
    lab.page.locator(".jp-Dialog .jp-mod-accept").click()
    lab.page.locator(".jp-Dialog").wait_for(state="detached")


def test_an_earlier_job_and_the_defaults_of_a_profile(forms):
    """O8, O27: a form starts from a job that was; a profile gives its image to jobs that name none."""
    page = forms.page
    request = {"document": SOURCE.replace("'kept'", "earlier"), "profile": "local", "requestId": "a" * 32}
    job = forms.post("jobs", {**request, "context": {"surface": "rest"}})
    form = open_form(forms, folder="", profile="pai", document=SOURCE)
    form.get_by_role("button", name="Save as profile default").click()
    page.locator(".jp-Dialog", has_text="python:3.11-slim").locator(".jp-mod-accept").click()
    form.locator(".jp-PaiForm-said", has_text="The profile pai is saved.").wait_for()
    assert forms.get("profiles/pai")["settings"]["image"] == "python:3.11-slim"

    form.get_by_role("button", name="Start from a job").click()
    page.locator(".jp-Dialog select:focus").select_option(job["id"])
    page.locator(".jp-Dialog .jp-mod-accept").click()
    copy = page.locator(".jp-PaiForm:visible")
    copy.get_by_label("Name", exact=True).and_(page.locator("input")).wait_for()
    page.wait_for_function("() => document.querySelectorAll('.jp-PaiForm').length === 2")
    assert page.locator(".jp-PaiForm").last.get_by_label("Name", exact=True).input_value() == "earlier"
    assert page.locator(".jp-PaiForm").last.get_by_label("Profile", exact=True).input_value() == "local"


def kept(lab) -> str:
    """Return all that the workspace has on the server's disk."""
    return "".join(each.read_text() for each in (lab.server.home / "workspaces").glob("*"))


def test_a_form_comes_back_after_a_reload_without_a_value(forms, until):
    """O20, O27: the draft rests in the workspace; no value of a secret ever does."""
    page = forms.page
    form = open_form(forms, document=SOURCE, folder="")
    form.get_by_label("Name", exact=True).fill("half-done")
    form.get_by_label("Add a secret").click()
    form.get_by_label("Name of the secret").fill("TYPED")
    form.get_by_label("Name of the secret").press("Enter")
    form.get_by_label("Where TYPED comes from").wait_for()
    form.get_by_role("tab", name="YAML").click()
    form.locator(".jp-PaiYaml .cm-line", has_text="TYPED").click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.type(f"  TYPED: {CANARY}")
    form.locator(".jp-PaiYaml-mark", has_text=CANARY).wait_for()
    page.locator(".lm-TabBar-tab.jp-mod-dirty", has_text="New job").wait_for()
    until(lambda: "half-done" in kept(forms) and "TYPED" in kept(forms), 60, "the draft to be kept")
    # Another edit is kept after that one, so what is on the disk now knew the value.
    form.get_by_role("tab", name="Form").click()
    field(form, "Instances").fill("7")
    until(lambda: "instances: 7" in kept(forms), 60, "the next draft to be kept")
    assert CANARY not in kept(forms)

    forms.reload()
    form = page.locator(".jp-PaiForm")
    form.wait_for(timeout=60_000)
    assert form.get_by_label("Name", exact=True).input_value() == "half-done"
    assert field(form, "Instances").input_value() == "7"
    form.get_by_label("Where TYPED comes from").wait_for()
    assert CANARY not in stored_by(page) and CANARY not in kept(forms)
    assert SOURCE.splitlines()[0] in exported(forms, form)

    # Exported, it closes at once; changed, it asks.
    field(form, "Instances").fill("8")
    form.locator(".jp-PaiForm-submit", has_text="Submit 8 tasks").wait_for()
    close(forms)
    page.locator(".jp-Dialog", has_text="Close the form?").wait_for()
    forms.shoot("form-close-light")
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel").click()
    assert form.is_visible()
    close(forms)
    page.locator(".jp-Dialog .jp-mod-warn").click()
    form.wait_for(state="detached")
    until(lambda: "half-done" not in kept(forms), 60, "the draft to be forgotten")


def close(lab) -> None:
    """Close the tab of the form."""
    lab.page.locator(".lm-TabBar-tab", has_text="New job").locator(".lm-TabBar-tabCloseIcon").click()


def test_a_form_that_nobody_has_changed_closes_at_once(forms):
    """Undo over confirm: where nothing is lost nothing is asked."""
    form = open_form(forms, document=SOURCE, folder="")
    planned(form)
    close(forms)
    form.wait_for(state="detached")
    assert forms.page.locator(".jp-Dialog").count() == 0


def test_the_other_ways_in(forms, until):
    """The palette, the menu of a cell and `%paijob form`; the rest is in test_form.py."""
    page = forms.page
    forms.notebook("ways.ipynb", "%load_ext paijupyter\n%paijob form --name from-line", "print('this cell')")
    forms.open("ways.ipynb")
    page.keyboard.press("Control+Shift+C")
    page.locator("#modal-command-palette input").fill("New job")
    page.locator("#modal-command-palette .lm-CommandPalette-item", has_text="New job").first.click()
    name = page.locator(".jp-PaiForm:visible").get_by_label("Name", exact=True)
    until(lambda: name.input_value() == "ways", why="the form to be filled")

    page.locator(".lm-TabBar-tab", has_text="ways.ipynb").first.click()
    page.locator(".jp-CodeCell .jp-InputArea-editor").nth(1).click()
    page.locator(".jp-CodeCell").nth(1).click(button="right")
    page.locator(".lm-Menu-item", has_text="New job from this cell").click()
    page.locator(".jp-PaiForm:visible .jp-PaiPlan", has_text="process").wait_for()
    form = page.locator(".jp-PaiForm:visible")
    planned(form)
    submit(forms, form)
    forms.wait_state(page.locator(".jp-PaiPage .jp-PaiCard"), "succeeded", seconds=120)
    job = next(each for each in forms.get("jobs")["jobs"] if each["cell"])
    assert job["cell"]["number"] == 2
    assert "this cell" in forms.read(f"paijupyter/v1/jobs/{job['id']}/logs?task=worker-0")

    page.locator(".lm-TabBar-tab", has_text="ways.ipynb").first.click()
    forms.select_first_cell()
    forms.run_cells(1)
    until(lambda: name.input_value() == "from-line", why="the form of the magic to be filled")


def test_all_of_it_by_keyboard(forms):
    """Tab reaches every control in sight, in the order of the page; Escape leads out of the text."""
    page = forms.page
    form = advanced(open_form(forms, document=SOURCE, folder=""))
    planned(form)
    regions = (".jp-PaiForm-bar", ".jp-PaiForm-left", ".jp-PaiPlan", ".jp-PaiForm-foot")
    reached = walk(page, ".jp-PaiForm", *regions)
    assert len(reached) > 40 and "jp-PaiForm-submit" in reached[-1]
    headings = form.get_by_role("heading").all_inner_texts()
    assert [each for each in headings if each in ("What", "Where it runs", "With what", "Advanced")] == [
        "What",
        "Where it runs",
        "With what",
        "Advanced",
    ]

    # What is wrong is told to those who do not see it, where they are and beside the plan.
    field(form, "Instances").fill("0")
    said = form.locator('[data-path="/taskRoles/worker/instances"] [aria-live]')
    said.locator("div").wait_for()
    assert field(form, "Instances").get_attribute("aria-invalid") == "true"
    assert said.get_attribute("id") in field(form, "Instances").get_attribute("aria-describedby")
    form.get_by_role("tab", name="Form").focus()
    page.keyboard.press("ArrowRight")
    text = form.locator(".jp-PaiYaml .cm-content")
    text.click()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.tab") == "yaml"
