/** The rows of the list of jobs: one per job, one per group of experiments, and those that fold and read on. */

import { IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { Day, Entry, isGroup } from './groups';
import { CommandIDs } from './ids';
import type { IRowMaker } from './rowwindow';
import type { SideLine } from './sidelines';
import { groupLine, ICONS, isFinal, stateLine, stateWord } from './words';

/** What a row's element carries. */
interface IRowParts {
  node: HTMLElement;
  icon: HTMLElement;
  twisty: HTMLElement;
  name: HTMLElement;
  profile: HTMLElement;
  line: HTMLElement;
  stop: HTMLElement;
  notebook: HTMLElement;
  log: HTMLElement;
}

/** So many rows that were scrolled out of view are kept to be used again: a screen's worth. */
const SPARE_ROWS = 80;

export interface IRowEvents {
  run(command: string, id: string): void;
  stop(id: string): void;
  focused(id: string): void;
  pressed(id: string, event: MouseEvent): void;
  opened(id: string): void;
  folded(day: Day): void;
  more(group: string): void;
}

export class SideRows implements IRowMaker<SideLine> {
  constructor(
    private readonly context: IContext,
    private readonly events: IRowEvents
  ) {}

  /** The rows of jobs and groups that are drawn, from the top. */
  get drawn(): HTMLElement[] {
    const [first] = this._parts.values();
    return [...(first?.node.parentElement?.children ?? [])].filter(
      (row): row is HTMLElement => row instanceof HTMLElement && row.dataset.id !== undefined
    );
  }

  make(line: SideLine): HTMLElement {
    const { trans } = this.context;
    if (line.kind === 'entry') {
      const parts = this._spare.pop() ?? makeRow(this.context, this.events);
      this._parts.set(line.key, parts);
      return parts.node;
    }
    const isDay = line.kind === 'day';
    const button = h('button', { type: 'button', class: isDay ? 'jp-PaiJobs-day' : 'jp-Pai-link' });
    button.addEventListener('click', () => (isDay ? this.events.folded(line.day) : this.events.more(line.group)));
    if (!isDay) {
      setText(button, trans.__('Show more'));
    }
    return h(
      'div',
      { role: 'row', class: isDay ? null : 'jp-PaiJobs-rest', 'data-day': isDay ? line.day : null },
      h('div', { role: 'gridcell' }, button)
    );
  }

  draw(node: HTMLElement, line: SideLine): void {
    if (line.kind === 'entry') {
      this._lines.set(line.key, line.entry);
      drawRow(this._parts.get(line.key) as IRowParts, line.entry, this.context, line.isOpen, line.level);
    } else if (line.kind === 'day') {
      const button = node.querySelector('button') as HTMLElement;
      setAttribute(button, 'aria-expanded', String(line.isOpen));
      const label = `${dayName(line.day, this.context.trans)} (${line.count})`;
      setAttribute(button, 'aria-label', label);
      setText(button, `${line.isOpen ? '▾' : '▸'} ${label}`);
    }
  }

  gone(key: string): void {
    const parts = this._parts.get(key);
    if (parts && this._spare.length < SPARE_ROWS) {
      this._spare.push(parts);
    }
    this._parts.delete(key);
    this._lines.delete(key);
  }

  /** A second has passed. */
  tick(): void {
    for (const [id, parts] of this._parts) {
      const entry = this._lines.get(id);
      if (entry && !isFinal(entry.state)) {
        setText(parts.line, lineOf(entry, this.context));
      }
    }
  }

  private readonly _parts = new Map<string, IRowParts>();
  private readonly _lines = new Map<string, Entry>();
  /** Rows that are out of view: scrolling through thousands makes no elements. */
  private readonly _spare: IRowParts[] = [];
}

function dayName(day: Day, trans: IContext['trans']): string {
  const names: Record<Day, string> = {
    today: trans.__('today'),
    yesterday: trans.__('yesterday'),
    week: trans.__('earlier this week'),
    earlier: trans.__('earlier')
  };
  return names[day];
}

/** The line of an entry as it is now. */
function lineOf(entry: Entry, context: IContext): string {
  const { api, trans } = context;
  return isGroup(entry) ? groupLine(entry, trans) : stateLine(entry, api.now(), trans);
}

/** Make a row of any job or group; which one it is for is told when it is drawn. */
function makeRow(context: IContext, events: IRowEvents): IRowParts {
  const { trans } = context;
  const id = (): string => node.dataset.id as string;
  const button = (text: string, press: (id: string) => void): HTMLElement => {
    const made = h('button', { type: 'button', tabindex: -1, class: 'jp-Pai-link' }, text);
    made.addEventListener('click', event => {
      event.stopPropagation();
      press(id());
    });
    return made;
  };
  const parts = {
    icon: h('span', { class: 'jp-PaiState-icon', 'aria-hidden': 'true' }),
    twisty: h('span', { class: 'jp-PaiJobs-twisty', 'aria-hidden': 'true' }),
    name: h('span', { class: 'jp-PaiJobs-name' }),
    profile: h('span', { class: 'jp-PaiJobs-profile' }),
    line: h('span', { class: 'jp-PaiJobs-line' }),
    stop: button(trans.__('Stop'), job => events.stop(job)),
    notebook: button(trans.__('Notebook'), job => events.run(CommandIDs.openNotebook, job)),
    log: button(trans.__('Logs'), job => events.run(CommandIDs.openLog, job))
  };
  const actions = h('span', { class: 'jp-PaiJobs-actions' }, parts.log, parts.notebook, parts.stop);
  const node: HTMLElement = h(
    'div',
    { class: 'jp-PaiJobs-row', role: 'row', tabindex: -1 },
    h('div', { class: 'jp-PaiJobs-first', role: 'gridcell' }, parts.icon, parts.twisty, parts.name, parts.profile),
    h('div', { class: 'jp-PaiJobs-second', role: 'gridcell' }, parts.line, actions)
  );
  node.addEventListener('focus', () => events.focused(id()));
  node.addEventListener('click', event => {
    events.pressed(id(), event);
    node.focus();
  });
  node.addEventListener('dblclick', () => events.opened(id()));
  parts.twisty.addEventListener('click', event => {
    event.stopPropagation();
    events.opened(id());
  });
  return { node, ...parts };
}

/** Make a row the row of an entry: it may have been that of another one. */
function own(parts: IRowParts, entry: Entry, { trans }: IContext): void {
  const { node, twisty, stop, notebook, log } = parts;
  const name = (button: HTMLElement, label: string): void => {
    setAttribute(button, 'aria-label', label);
    setAttribute(button, 'title', label);
  };
  node.dataset.id = entry.id;
  ['data-said', 'aria-expanded'].forEach(each => node.removeAttribute(each));
  twisty.hidden = !isGroup(entry);
  log.hidden = isGroup(entry);
  name(stop, trans.__('Stop %1', entry.name));
  name(notebook, trans.__('Open the notebook of %1', entry.name));
  name(log, trans.__('Logs of %1', entry.name));
}

/** Make a row say what is true now. */
function drawRow(parts: IRowParts, entry: Entry, context: IContext, isOpen: boolean, level: number): void {
  const { trans } = context;
  const group = isGroup(entry);
  const name = !group && level > 1 && entry.group ? `${entry.group.key} · ${entry.name}` : entry.name;
  if (parts.node.dataset.id !== entry.id) {
    own(parts, entry, context);
  }
  setAttribute(parts.node, 'data-state', entry.state);
  setAttribute(parts.node, 'aria-level', String(level));
  setText(parts.icon, ICONS[entry.state]);
  setText(parts.name, group ? `${name} (${entry.total})` : name);
  setAttribute(parts.name, 'title', name);
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
