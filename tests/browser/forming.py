"""What tests of the form do with one."""

from __future__ import annotations

from typing import Any

SOURCE = """# How we train; the comment stays.
protocolVersion: 2
name:   'kept'   # single quotes and spaces stay
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: python:3.11-slim}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands: [echo hi]
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


def exported(lab, form) -> str:
    """Export the document; return its bytes as text."""
    with lab.page.expect_download() as download:
        form.get_by_role("button", name="Export").click()
    return download.value.path().read_bytes().decode()


def stored_by(page: Any) -> str:
    """Return all that a browser stores and shows."""
    return page.evaluate(
        """async () => {
          const databases = [];
          for (const {name} of await indexedDB.databases()) {
            const database = await new Promise(resolve => {
              const asked = indexedDB.open(name);
              asked.onsuccess = () => resolve(asked.result);
            });
            for (const store of database.objectStoreNames) {
              databases.push(await new Promise(resolve => {
                const asked = database.transaction(store).objectStore(store).getAll();
                asked.onsuccess = () => resolve(asked.result);
              }));
            }
          }
          return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, databases,
            document.documentElement.outerHTML,
            [...document.querySelectorAll('input')].map(each => each.value)]);
        }"""
    )
