"""Logging in from the page at a scripted OpenPAI server: what is typed goes to the job server only."""

from __future__ import annotations

import pytest

from tests.browser.access import focused, serious_faults
from tests.browser.forming import open_form, stored_by
from tests.openpai.server import OpenPai
from tests.resting import holders

CANARY = "c4n4ry-password"


@pytest.fixture
def server():
    """Return an OpenPAI server with a user of ours."""
    with OpenPai() as server:
        server.add_user("carol", CANARY)
        yield server


def test_a_form_logs_in_at_its_profile_and_the_password_rests_nowhere(ring, server, lab):
    """O3: the form says that nobody is logged in, asks, says what is wrong, and keeps no password."""
    page = lab.page
    page.set_default_timeout(90_000)
    sent: list[tuple[str, str]] = []
    page.on("request", lambda each: CANARY in (each.post_data or "") and sent.append((each.method, each.url)))
    settings = {"url": server.url, "callsPerMinute": 100_000}
    lab.post("profiles", {"name": "pai", "settings": {"kind": "openpai", **settings}})
    lab.open()
    form = open_form(lab, folder="", profile="pai")
    bar = form.locator(".jp-PaiLoginBar", has_text="Nobody is logged in at pai.")
    bar.wait_for(timeout=60_000)
    lab.shoot("login-bar-light")
    bar.get_by_role("button", name="Log in").click()
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_label("User", exact=True).wait_for()
    assert not (found := serious_faults(lab, ".jp-Dialog-content")), "\n".join(found)
    dialog.get_by_role("button", name="Cancel").press("Escape")
    dialog.wait_for(state="detached")
    assert focused(page, ".jp-PaiLoginBar button")
    page.keyboard.press("Enter")
    dialog.get_by_label("User", exact=True).fill("carol")
    dialog.get_by_label("Password", exact=True).fill("not-the-password")
    dialog.get_by_role("button", name="Log in").click()
    dialog.get_by_role("alert").get_by_text("The password is not correct").wait_for(timeout=60_000)
    assert dialog.get_by_label("User", exact=True).input_value() == "carol"
    lab.theme("JupyterLab Dark")
    lab.shoot("login-dark")
    dialog.get_by_label("Password", exact=True).fill(CANARY)
    dialog.get_by_role("button", name="Log in").click()
    bar.wait_for(state="hidden", timeout=60_000)

    told = lab.get("profiles/pai/login")
    assert told["user"] == "carol" and told["where"] == "the keyring"
    assert [(method, url.split("/v1/")[1].split("?")[0]) for method, url in sent] == [
        ("POST", "profiles/pai/login")
    ]
    assert CANARY not in stored_by(page)
    assert CANARY not in ring.read_text()  # an application's token is kept, not the password
    assert not holders(CANARY, lab.root.parent)
