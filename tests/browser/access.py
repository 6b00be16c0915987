"""What tests ask of a page for people who use no mouse, see no colours, or want nothing to move."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent.parent.parent / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
THEMES = ("JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast")
RUN_AXE = """async where => {
  const found = await axe.run({include: where.map(each => [each])}, {resultTypes: ['violations']});
  return found.violations
    .filter(each => ['serious', 'critical'].includes(each.impact))
    .flatMap(each => each.nodes.map(node =>
      `${each.id}: ${node.target.join(' ')}: ${node.html.slice(0, 160)}: ` +
      node.any.concat(node.all, node.none).map(check => check.message).join('; ').slice(0, 300)));
}"""
PLANT = """where => {
  const fault = document.createElement('p');
  fault.id = 'planted';
  fault.innerHTML = '<button></button><span style="color: #999; background: #aaa">pale</span>';
  document.querySelector(where).prepend(fault);
}"""
CONTROLS = """([root, regions]) => {
  const inside = document.querySelector(root);
  return [...inside.querySelectorAll('button, input, select, textarea, summary, a[href], [tabindex]')]
    .filter(each => each.checkVisibility() && each.tabIndex >= 0 && !each.matches(':disabled'))
    .map((each, at) => {
      const {top, bottom, left, right} = each.getBoundingClientRect();
      each.dataset.stop = at;
      return {
        said: each.outerHTML.slice(0, 140), top, bottom, left, right,
        region: regions.findIndex(region => each.closest(region)),
      };
    });
}"""
STOP = """root => {
  const here = document.activeElement;
  if (!here.closest(root)) return null;
  const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(here);
  const {top, bottom, left, right} = here.getBoundingClientRect();
  const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return {
    stop: Number(here.dataset.stop ?? -1), said: here.outerHTML.slice(0, 140),
    ring: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && !/, 0\\)$/.test(outlineColor),
    inSight: !!hit && (here.contains(hit) || hit.contains(here)),
  };
}"""
LOOKS = """element => {
  const style = getComputedStyle(element);
  const sides = ['top', 'left', 'bottom'].map(side =>
    parseFloat(style[`border-${side}-width`]) ? style[`border-${side}-color`] : '');
  const {color, backgroundColor, outlineStyle, outlineColor, textDecorationLine, fontWeight} = style;
  const outline = outlineStyle === 'none' ? '' : outlineColor;
  return JSON.stringify([color, backgroundColor, sides, outline, textDecorationLine, fontWeight]);
}"""
MOVING = """() => document.getAnimations()
  .filter(each => each.effect?.target?.closest("[class*='jp-Pai']"))
  .map(each => `${each.animationName ?? each.transitionProperty}: ${each.effect.target.className}`)"""
WATCH_MOTION = """() => {
  window.moved = [];
  for (const kind of ['animationstart', 'transitionrun']) {
    document.addEventListener(kind, event => {
      if (event.target.closest?.("[class*='jp-Pai']")) {
        window.moved.push(`${kind} ${event.animationName ?? event.propertyName}: ${event.target.className}`);
      }
    }, true);
  }
}"""
MOST_STOPS = 250


def serious_faults(lab: Any, *where: str, themes: tuple[str, ...] = THEMES) -> list[str]:
    """Return what axe-core finds within selectors in each theme; a planted fault shows that it looks."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in labextension")
    page = lab.page
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(AXE.read_text())
    # JupyterLab's body has no height and hides what flows over: axe would take all text for hidden.
    page.evaluate("document.body.style.height = '100vh'")
    page.evaluate(PLANT, where[0])
    planted = page.evaluate(RUN_AXE, list(where))
    page.evaluate("document.querySelector('#planted').remove()")
    assert {"button-name", "color-contrast"} <= {each.split(":")[0] for each in planted}, planted
    found = []
    for theme in themes:
        lab.theme(theme)
        page.mouse.move(1, 1)
        found += [f"{theme}: {each}" for each in page.evaluate(RUN_AXE, list(where))]
    lab.theme(THEMES[0])
    return found


def walk(page: Any, root: str, *regions: str) -> list[str]:
    """Go through all controls below a selector by Tab and back by Shift+Tab; return what was reached.

    Every control in sight is reached, in the order in which it is read: within a region each is below or to
    the right of the one before, and regions follow each other. The one with the focus is in sight and has a
    ring, and the last one lets go.
    """
    controls = page.evaluate(CONTROLS, [root, list(regions)])
    assert len(controls) > 1
    _are_read_in_order(controls)
    there = _stops(page, root, "Tab", 0)
    reached = [each["stop"] for each in there if each["stop"] >= 0]
    assert reached == list(range(len(controls))), _difference(controls, reached)
    back = _stops(page, root, "Shift+Tab", len(controls) - 1)
    returned = [each["stop"] for each in back if each["stop"] >= 0]
    assert returned == reached[::-1], _difference(controls, returned)
    # Both ways begin with a focus that no key has given.
    faint = [each["said"] for each in there[1:] + back[1:] if not (each["ring"] and each["inSight"])]
    assert not faint, "\n".join(faint)
    return [controls[each]["said"] for each in reached]


def _stops(page: Any, root: str, key: str, first: int) -> list[dict[str, Any]]:
    page.evaluate("where => document.querySelector(where).focus()", f"{root} [data-stop='{first}']")
    stops: list[dict[str, Any]] = []
    for _ in range(MOST_STOPS):
        stop = page.evaluate(STOP, root)
        if stop is None:
            return stops
        stops.append(stop)
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead out of {root}: {stops[-3:]}")


def _are_read_in_order(controls: list[dict[str, Any]]) -> None:
    for one, other in pairwise(controls):
        same = one["region"] == other["region"]
        is_next = other["left"] >= one["right"] - 2 or other["top"] >= one["bottom"] - 2
        assert is_next if same else one["region"] < other["region"], (one, other)


def _difference(controls: list[dict[str, Any]], reached: list[int]) -> str:
    missed = [each["said"] for at, each in enumerate(controls) if at not in reached]
    return f"missed {missed}, order {reached}"


def focused(page: Any, selector: str) -> bool:
    """Say whether the element with the focus matches a selector."""
    return bool(page.evaluate("selector => document.activeElement.matches(selector)", selector))


def looks(element: Any) -> str:
    """Return all that colours and lines tell of an element."""
    return str(element.evaluate(LOOKS))
