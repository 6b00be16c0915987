"""The log view: ranks, times, the first failure, links to lines, hits of the whole log, following."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

RANKS = """\
import os, signal, sys, time
rank = int(os.environ["PAI_TASK_INDEX"])

def close(*_):
    # So much that the failure is far before the last lines that a view begins with.
    sys.stdout.write("".join(f"closing {n} of a long way down\\n" for n in range(8000)))
    sys.stdout.flush()
    os._exit(0)

signal.signal(signal.SIGTERM, close)
for step in range(1, 4):
    print(f"step {step} on all ranks", flush=True)
print(f"\\x1b[3{rank + 1}mrank {rank}\\x1b[0m speaks for itself", flush=True)
open(os.path.join(os.environ["GO"], f"up-{rank}"), "w").close()
while sum(os.path.exists(os.path.join(os.environ["GO"], f"up-{each}")) for each in range(3)) < 3:
    time.sleep(0.05)
if rank == 1:
    time.sleep(0.5)
    print("".join(f"\\x1b[31m{each}\\x1b[0m" for each in "Traceback: rank 1 gives up"), flush=True)
    sys.exit(3)
time.sleep(600)
"""
MANY = """\
import sys
lines = []
for n in range(60_000):
    mark = f"näädle {n // 1000}" if n % 1000 == 7 else "a step like any other"
    lines.append(f"{n:06d} {mark}, with all that it has to say of itself in one line\\n")
sys.stdout.write("".join(lines))
"""
LIVE = """\
import os, sys, time
print("\\x1b[1;32mgreen\\x1b[0m and plain", flush=True)
print("see http://page.invalid/runs/1?x=2.\\a", flush=True)
n = 0
while not os.path.exists(os.environ["GO"] + "/end"):
    print(f"tick {n}", flush=True)
    n += 1
    time.sleep(0.05)
for step in range(101):
    sys.stdout.write(f"\\r{step}% of the way")
    sys.stdout.flush()
print("\\nlast words")
"""

# Clicks, says whether the page keeps the browser from opening the address, and keeps it from that itself.
PREVENTED = """link => new Promise(done => {
  const heard = event => { done(event.defaultPrevented); event.preventDefault(); };
  document.addEventListener('click', heard, {once: true});
  link.click();
})"""


def submit(lab, name: str, script: str, instances: int = 1) -> str:
    """Submit a script of a job; return its id."""
    go = lab.root / f"go-{name}"
    go.mkdir()
    path = lab.root / f"{name}.py"
    path.write_text(script)
    return lab.submit(name, f"exec env GO={go} python {path}", instances=instances, cpu=1)


def ended(lab, until, job: str) -> dict:
    """Wait for a job's end."""
    return until(
        lambda: (found := lab.get(f"jobs/{job}"))["state"] in ("succeeded", "failed") and found, seconds=90
    )


def open_log(lab, job: str, **more):
    """Open the view of a log; return it."""
    lab.page.evaluate(
        "args => window.jupyterapp.commands.execute('paijupyter:open-log', args)", {"id": job, **more}
    )
    return lab.page.locator(".jp-PaiLog:visible")


def clipboard(page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


def row(log, text: str):
    return log.locator(".jp-PaiLog-row", has_text=text)


@pytest.fixture
def page(shared_lab):
    shared_lab.open()
    shared_lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return shared_lab.page


def test_ranks_are_folded_and_the_first_failure_is_found(shared_lab, page, until):
    """O31, peers 5.3: what all ranks print alike is one line; the rank that failed first is marked."""
    lab = shared_lab
    job = submit(lab, "ranks", RANKS, 3)
    assert ended(lab, until, job)["failedTask"]["index"] == 1
    log = open_log(lab, job)
    log.locator(".jp-PaiLog-end", has_text="failed").wait_for()
    assert row(log, "gives up").count() == 0, "it is before the last lines"
    picker = log.get_by_label("Task", exact=True)
    assert "✕ worker-1 – failed first" in picker.locator("option").all_inner_texts()

    # By the button, then by the key.
    log.get_by_role("button", name="First failure").click()
    failed = row(log, "Traceback: rank 1 gives up")
    failed.locator(".jp-PaiLog-failure", has_text="failed first: worker-1 ended with exit code 3").wait_for()
    assert "jp-mod-current" in failed.get_attribute("class")
    assert "jp-mod-failed" in row(log, "rank 1 speaks").get_attribute("class")
    assert "jp-mod-failed" not in row(log, "rank 0 speaks").get_attribute("class")
    lab.shoot("log-failure-light")
    # Colours take no room: where lines are wrapped, this one is still one row.
    log.get_by_role("button", name="Wrap").click()
    log.locator(".jp-PaiLog-scroll.jp-mod-wrap").wait_for()
    failed.locator(".jp-PaiLog-failure").wait_for()
    log.get_by_role("button", name="Wrap").click()
    log.locator(".jp-PaiLog-scroll").press("Control+End")
    failed.wait_for(state="detached")
    log.locator(".jp-PaiLog-scroll").press("e")
    failed.wait_for()

    # Three ranks, one line; it opens.
    for step in (1, 2, 3):
        assert row(log, f"step {step} on all ranks").count() == 1
    copies = row(log, "step 2 on all ranks").get_by_role("button", name="3 tasks print this line")
    assert copies.inner_text() == "▸ ×3" and copies.get_attribute("aria-expanded") == "false"
    assert "worker-0" in copies.get_attribute("title") and "worker-2" in copies.get_attribute("title")
    row(log, "step 2 on all ranks").locator(".jp-PaiLog-text").click()
    log.locator(".jp-PaiLog-scroll").press("Enter")
    below = log.locator(".jp-PaiLog-row.jp-mod-copy")
    below.nth(2).wait_for()
    names = sorted(name.strip("✕ ") for name in below.locator(".jp-PaiLog-task").all_inner_texts())
    assert names == ["worker-0", "worker-1", "worker-2"]
    lab.shoot("log-ranks-light")
    lab.theme("JupyterLab Dark")
    lab.shoot("log-ranks-dark")
    lab.theme("JupyterLab Light")
    copies.press("Enter")
    below.first.wait_for(state="detached")
    assert row(log, "rank 2 speaks").count() == 1

    # Not folded, each says it.
    log.get_by_role("button", name="Fold").click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-PaiLog-row')]"
        ".filter(row => row.textContent.includes('step 2 on all ranks')).length === 3"
    )
    log.get_by_label("Task", exact=True).select_option("worker-1")
    row(log, "rank 1 speaks").wait_for()
    assert row(log, "rank 0 speaks").count() == 0 and log.get_by_role("button", name="Fold").is_hidden()


def test_a_link_leads_to_its_line_in_another_tab_and_after_a_reload(shared_lab, page, until):
    """O31: the address of a line, copied by a key; times beside the lines say what is known of them."""
    lab = shared_lab
    job = submit(lab, "linked", MANY)
    ended(lab, until, job)
    log = open_log(lab, job)
    row(log, "059999 a step").wait_for()
    scroll = log.locator(".jp-PaiLog-scroll")
    log.get_by_role("button", name="Show from the start").click()
    log.locator(".jp-PaiLog-end", has_text="succeeded").wait_for()
    scroll.press("Control+Home")
    row(log, "000007 näädle 0").click()
    scroll.press("Alt+ArrowDown")
    log.locator(".jp-PaiLog-row.jp-mod-current", has_text="000008 a step").wait_for()
    scroll.press("t")
    time = row(log, "000008 a step").locator(".jp-PaiLog-time")
    page.wait_for_function(
        "() => /^\\d\\d:\\d\\d:\\d\\d$/.test("
        "document.querySelector('.jp-PaiLog-row.jp-mod-current .jp-PaiLog-time').textContent)"
    )
    assert re.match(
        r"Written at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} or after it", time.get_attribute("title")
    )
    lab.shoot("log-times-light")
    scroll.press("l")
    log.get_by_text("Link copied.").wait_for()
    link = clipboard(page)
    assert link == time.get_attribute("href")
    offset = sum(len(line.encode()) for line in lines_of_many()[:8])
    assert link == f"{lab.url}/lab?paijupyter-log={job}&paijupyter-line=worker-0:0:{offset}"

    other = page.context.new_page()
    other.goto(link, timeout=90_000)
    found = other.locator(".jp-PaiLog-row.jp-mod-current", has_text="000008 a step")
    found.wait_for(timeout=90_000)
    assert "paijupyter-log" not in other.url
    assert other.locator(".jp-PaiLog:visible").get_by_role("button", name="Follow").get_attribute(
        "aria-pressed"
    ) == "false"  # fmt: skip
    # The layout is saved somewhat later.
    until(lambda: "worker-0:0:" in lab.read("lab/api/workspaces"), seconds=60)
    other.reload(timeout=90_000)
    found.wait_for(timeout=90_000)
    other.close()


def lines_of_many() -> list[str]:
    """Return what ``MANY`` prints."""
    return [
        f"{n:06d} {f'näädle {n // 1000}' if n % 1000 == 7 else 'a step like any other'}, "
        "with all that it has to say of itself in one line\n"
        for n in range(60_000)
    ]


def test_hits_of_the_whole_log_are_a_list_that_leads_there(shared_lab, page, until):
    """O31: hits far before the lines loaded; counted, listed, gone to; copy, wrap and download."""
    lab = shared_lab
    job = submit(lab, "sought", MANY)
    ended(lab, until, job)
    log = open_log(lab, job)
    row(log, "059999 a step").wait_for()
    search = log.get_by_role("searchbox")
    search.fill("NÄÄDLE")
    log.locator(".jp-PaiLog-count", has_text="10 lines").wait_for()
    show = log.get_by_role("button", name="60 in the whole log: show all")
    show.click()
    hits = log.get_by_role("region", name="Hits in the whole log")
    assert hits.locator(".jp-PaiLog-hit").count() == 60
    assert show.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    current = log.locator(".jp-PaiLog-row.jp-mod-current")
    current.get_by_text("näädle 1,").wait_for()
    assert current.locator("mark").inner_text() == "näädle"
    log.locator(".jp-PaiLog-end", has_text="More lines follow.").wait_for()
    lab.shoot("log-hits-light")
    lab.theme("JupyterLab Dark")
    lab.shoot("log-hits-dark")
    lab.theme("JupyterLab Light")

    # A hit that is loaded by now, and one beyond what was read.
    hits.get_by_text("näädle 3,").click()
    current.get_by_text("näädle 3,").wait_for()
    hits.get_by_text("näädle 59,").click()
    current.get_by_text("näädle 59,").wait_for()
    hits.get_by_text("näädle 0,").click()
    current.get_by_text("näädle 0,").wait_for()
    page.keyboard.press("Escape")
    hits.wait_for(state="hidden")

    # On from here, as far as one scrolls; then to the end.
    log.locator(".jp-PaiLog-scroll").press("Control+End")
    log.locator(".jp-PaiLog-end", has_text="succeeded").wait_for()
    log.locator(".jp-PaiLog-scroll").press("Control+End")
    row(log, "059999 a step").wait_for()

    # The selection, and all of it.
    row(log, "059999 a step").locator(".jp-PaiLog-text").select_text()
    log.get_by_role("button", name="Copy", exact=True).click()
    log.get_by_text("Selection copied.").wait_for()
    assert clipboard(page).strip() == lines_of_many()[-1].strip()
    with page.expect_download() as saved:
        log.get_by_role("button", name="Download").click()
    assert Path(saved.value.path()).read_text() == "".join(lines_of_many())
    before = log.locator(".jp-PaiLog-scroll").evaluate("node => node.scrollWidth - node.clientWidth")
    page.set_viewport_size({"width": 700, "height": 900})
    log.get_by_role("button", name="Wrap").click()
    log.locator(".jp-PaiLog-row.jp-mod-more").first.wait_for()
    assert before >= 0
    assert log.locator(".jp-PaiLog-scroll").evaluate("node => node.scrollWidth - node.clientWidth") <= 0


def await_growth(log) -> None:
    """Wait until the log has some lines more."""
    log.locator(".jp-PaiLog-scroll").evaluate(
        """node => new Promise(done => {
          const height = node.scrollHeight;
          const look = () => (node.scrollHeight > height + 200 ? done() : requestAnimationFrame(look));
          look();
        })"""
    )


def await_way_up(log) -> None:
    """Wait until the browser, which scrolls smoothly, is on its way to the first line."""
    log.locator(".jp-PaiLog-scroll").evaluate(
        """node => new Promise(done => {
          const look = () => {
            const way = node.scrollHeight - node.clientHeight;
            return node.scrollTop < way - 20 ? done() : requestAnimationFrame(look);
          };
          look();
        })"""
    )


def test_following_stops_when_somebody_scrolls_up(shared_lab, page, until):
    """O31: follow, colours, a progress bar of carriage returns; an empty log says so."""
    lab = shared_lab
    job = submit(lab, "live", LIVE)
    log = open_log(lab, job)
    row(log, "tick 60").wait_for()
    follow = log.get_by_role("button", name="Follow")
    assert follow.get_attribute("aria-pressed") == "true"
    log.locator(".jp-PaiLog-scroll").hover()
    page.mouse.wheel(0, -400)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-PaiLog-bar button')]"
        ".find(each => each.textContent === 'Follow').getAttribute('aria-pressed') === 'false'"
    )
    await_growth(log)
    top = log.locator(".jp-PaiLog-scroll").evaluate("node => node.scrollTop")
    await_growth(log)
    assert log.locator(".jp-PaiLog-scroll").evaluate("node => node.scrollTop") == top
    log.locator(".jp-PaiLog-scroll").press("Control+Home")
    green = row(log, "green and plain").locator(".jp-PaiAnsi-green.jp-PaiAnsi-bold")
    assert green.inner_text() == "green"
    # An address leads to a tab of its own; the bell is nothing to be seen.
    web = row(log, "see http").get_by_role("link", name="http://page.invalid/runs/1?x=2", exact=True)
    assert row(log, "see http").locator(".jp-PaiLog-text").inner_text().endswith("/runs/1?x=2.")
    assert web.get_attribute("target") == "_blank" and not web.evaluate(PREVENTED)
    # Asked for while the browser is still on its way up, it follows all the same.
    for _ in range(3):
        log.locator(".jp-PaiLog-scroll").press("Control+Home")
        await_way_up(log)
        log.locator(".jp-PaiLog-scroll").press("Control+End")
        await_growth(log)
        assert follow.get_attribute("aria-pressed") == "true"
    # What is left of such a way may come later than the end that was asked for; who scrolls then is heard.
    log.locator(".jp-PaiLog-scroll").evaluate(
        """async node => {
          const picture = () => new Promise(requestAnimationFrame);
          node.scrollTop = 0;
          await picture();
          await picture();
          node.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', ctrlKey: true }));
          await picture();
          await picture();
          node.scrollTop -= 300;
        }"""
    )
    await_growth(log)
    assert follow.get_attribute("aria-pressed") == "true"
    log.locator(".jp-PaiLog-scroll").hover()
    page.mouse.wheel(0, -400)
    until(lambda: follow.get_attribute("aria-pressed") == "false", why="the view to stay where one scrolls")
    log.locator(".jp-PaiLog-scroll").press("Control+End")
    (lab.root / "go-live" / "end").touch()
    row(log, "last words").wait_for()
    log.locator(".jp-PaiLog-end", has_text="succeeded").wait_for()
    assert row(log, "100% of the way").count() == 1 and row(log, "99% of the way").count() == 0
    lab.shoot("log-live-light")

    silent = submit(lab, "silent", "pass\n")
    ended(lab, until, silent)
    log = open_log(lab, silent)
    log.locator(".jp-PaiLog-end", has_text="nothing was printed").wait_for()
    lab.shoot("log-empty-light")


def test_everything_has_a_name_and_is_reached_by_keyboard(shared_lab, page, until):
    """Screen readers and keyboards: the toolbar, the lines, the hits."""
    lab = shared_lab
    job = submit(lab, "named", "print('one line')\n")
    ended(lab, until, job)
    log = open_log(lab, job)
    row(log, "one line").wait_for()
    snapshot = log.aria_snapshot()
    for said in (
        'toolbar "Log"', 'combobox "Task"', 'searchbox "Search"', 'button "Previous hit"',
        'button "Next hit"', 'button "Follow" [pressed]', 'button "Times"', 'button "Wrap"',
        'button "Copy link"', 'button "Copy"', 'button "Download"', 'log "Lines of the log"',
    ):  # fmt: skip
        assert said in snapshot, (said, snapshot)
    log.get_by_label("Task", exact=True).focus()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.textContent || document.activeElement.ariaLabel")
        )
    order = ["Follow", "Times", "Wrap", "Copy link", "Copy", "Download"]
    assert [each for each in reached if each in order] == order
    log.locator(".jp-PaiLog-scroll").press("Control+f")
    assert page.evaluate("document.activeElement.type") == "search"
