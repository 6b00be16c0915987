"""A field for the value of a secret: what is typed there is sent once, and is never part of a widget's state.

A ``Password`` of ipywidgets keeps its value in a model that front ends save into notebooks and repeat to
every client. Here the browser sends a message of its own and empties the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

_ESM = """
function render({ model, el }) {
  const input = document.createElement('input');
  input.type = 'password';
  input.autocomplete = 'new-password';
  input.spellcheck = false;
  input.className = 'paijupyter-secret';
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'lm-Widget jupyter-widgets jupyter-button widget-button';
  button.style.width = 'auto';
  const said = document.createElement('span');
  said.setAttribute('role', 'status');
  const draw = () => {
    input.setAttribute('aria-label', model.get('label'));
    input.title = model.get('label');
    button.textContent = model.get('verb');
    said.textContent = model.get('told');
  };
  const send = () => {
    if (input.value) {
      model.send({ kind: 'value', value: input.value });
      input.value = '';
    }
  };
  button.addEventListener('click', send);
  input.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      send();
    }
  });
  for (const name of ['label', 'verb', 'told']) {
    model.on(`change:${name}`, draw);
  }
  draw();
  el.style.cssText = 'display: flex; gap: 4px; align-items: center';
  el.append(input, button, said);
}
export default { render };
"""


class SecretEntry(anywidget.AnyWidget):
    """A field whose value reaches this process by one message, which nothing keeps or repeats.

    Args:
        received: is given the value.
    """

    _esm = _ESM
    label = traitlets.Unicode("").tag(sync=True)
    verb = traitlets.Unicode("Use").tag(sync=True)
    told = traitlets.Unicode("").tag(sync=True)

    def __init__(self, received: Callable[[str], None], **traits: Any) -> None:
        super().__init__(**traits)
        self._received = received
        self.on_msg(self._message)

    def _message(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("kind") == "value" and content.get("value"):
            self._received(str(content["value"]))
