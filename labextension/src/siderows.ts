/** The rows of the list of jobs: one per job, and one per group of experiments. */

import { CommandIDs, IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { Entry, isGroup } from './groups';
import { groupLine, ICONS, isFinal, stateLine, stateWord } from './words';

/** What a row's element carries. */
export interface IRowParts {
  node: HTMLElement;
  icon: HTMLElement;
  twisty: HTMLElement;
  name: HTMLElement;
  profile: HTMLElement;
  line: HTMLElement;
  stop: HTMLElement;
  notebook: HTMLElement;
}

export interface IRowEvents {
  run(command: string, id: string): void;
  stop(id: string): void;
  focused(id: string): void;
  pressed(id: string, event: MouseEvent): void;
  opened(id: string): void;
}

/** The line of an entry as it is now. */
export function lineOf(entry: Entry, context: IContext): string {
  const { api, trans } = context;
  return isGroup(entry) ? groupLine(entry, trans) : stateLine(entry, api.now(), trans);
}

export function makeRow(entry: Entry, context: IContext, events: IRowEvents): IRowParts {
  const { trans } = context;
  const { id } = entry;
  const button = (label: string, text: string, press: () => void): HTMLElement => {
    const made = h('button', { type: 'button', tabindex: -1, class: 'jp-Pai-link', 'aria-label': label }, text);
    made.title = label;
    made.addEventListener('click', event => {
      event.stopPropagation();
      press();
    });
    return made;
  };
  const parts = {
    icon: h('span', { class: 'jp-PaiState-icon', 'aria-hidden': 'true' }),
    twisty: h('span', { class: 'jp-PaiJobs-twisty', 'aria-hidden': 'true', hidden: !isGroup(entry) }),
    name: h('span', { class: 'jp-PaiJobs-name' }),
    profile: h('span', { class: 'jp-PaiJobs-profile' }),
    line: h('span', { class: 'jp-PaiJobs-line' }),
    stop: button(trans.__('Stop %1', entry.name), trans.__('Stop'), () => events.stop(id)),
    notebook: button(trans.__('Open the notebook of %1', entry.name), trans.__('Notebook'), () =>
      events.run(CommandIDs.openNotebook, id)
    )
  };
  const log = button(trans.__('Log of %1', entry.name), trans.__('Logs'), () => events.run(CommandIDs.openLog, id));
  log.hidden = isGroup(entry);
  const actions = h('span', { class: 'jp-PaiJobs-actions' }, log, parts.notebook, parts.stop);
  const node = h(
    'div',
    { class: 'jp-PaiJobs-row', role: 'row', tabindex: -1, 'data-id': id },
    h('div', { class: 'jp-PaiJobs-first', role: 'gridcell' }, parts.icon, parts.twisty, parts.name, parts.profile),
    h('div', { class: 'jp-PaiJobs-second', role: 'gridcell' }, parts.line, actions)
  );
  node.addEventListener('focus', () => events.focused(id));
  node.addEventListener('click', event => {
    events.pressed(id, event);
    node.focus();
  });
  node.addEventListener('dblclick', () => events.opened(id));
  parts.twisty.addEventListener('click', event => {
    event.stopPropagation();
    events.opened(id);
  });
  return { node, ...parts };
}

/** Make a row say what is true now. */
export function drawRow(parts: IRowParts, entry: Entry, context: IContext, isOpen: boolean, level: number): void {
  const { trans } = context;
  const group = isGroup(entry);
  const name = !group && level > 1 && entry.group ? `${entry.group.key} · ${entry.name}` : entry.name;
  setAttribute(parts.node, 'data-state', entry.state);
  setAttribute(parts.node, 'aria-level', String(level));
  setText(parts.icon, ICONS[entry.state]);
  setText(parts.name, group ? `${name} (${entry.total})` : name);
  setText(parts.profile, entry.profile ?? '');
  setText(parts.line, lineOf(entry, context));
  setAttribute(parts.line, 'title', parts.line.textContent);
  if (group) {
    setText(parts.twisty, isOpen ? '▾' : '▸');
    setAttribute(parts.node, 'aria-expanded', String(isOpen));
  }
  if (isFinal(entry.state) || parts.node.getAttribute('data-said') !== entry.state) {
    const said = [name, stateWord(entry.state, trans), entry.profile, parts.line.textContent].filter(Boolean);
    setAttribute(parts.node, 'aria-label', said.join(', '));
    setAttribute(parts.node, 'data-said', entry.state);
  }
  parts.stop.hidden = isFinal(entry.state) || !entry.mine;
  parts.notebook.hidden = group || !entry.notebook;
}
