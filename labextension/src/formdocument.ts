/** The source document of a form: one text, changed by the server, byte by byte where it must. */

import { ISignal, Signal } from '@lumino/signaling';

import { IEdited, IOperation, Values } from './formapi';
import { ApiError, IProblem } from './model';

const MOST_UNDONE = 100;

/** What makes edits: the server. */
export interface IEditor {
  edit(text: string, patch: IOperation[]): Promise<IEdited>;
}

type Task = { patch: IOperation[] } | { text: string; keep?: boolean };

export class FormDocument {
  constructor(
    private readonly editor: IEditor,
    text: string
  ) {
    this._text = text;
  }

  /** What the document says now, byte for byte. */
  get text(): string {
    return this._text;
  }

  /** Its values as they stand in the text; those of the last text that could be read. */
  get values(): Values {
    return this._values;
  }

  get problems(): IProblem[] {
    return this._problems;
  }

  /** Whether the text is none that values can be read from. */
  get broken(): boolean {
    return this._broken;
  }

  /** Wait until no edit is under way. */
  idle(): Promise<void> {
    return this._done ?? Promise.resolve();
  }

  get canUndo(): boolean {
    return this._former.length > 0;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** An edit that was refused, with the reason. */
  get refused(): ISignal<this, unknown> {
    return this._refused;
  }

  /** Read the text for the first time. */
  read(): Promise<void> {
    return this._add({ text: this._text, keep: true });
  }

  /** Change values. */
  apply(...patch: IOperation[]): Promise<void> {
    return this._add({ patch });
  }

  /** Take another text, typed or imported. */
  setText(text: string): Promise<void> {
    return this._add({ text });
  }

  undo(): Promise<void> {
    const former = this._former.pop();
    return former === undefined ? Promise.resolve() : this._add({ text: former, keep: true });
  }

  private _add(task: Task): Promise<void> {
    this._tasks.push(task);
    this._done ??= this._run().finally(() => {
      this._done = null;
    });
    return this._done;
  }

  private async _run(): Promise<void> {
    while (this._tasks.length) {
      const task = this._tasks.shift() as Task;
      if ('patch' in task) {
        // Edits that wait are one edit; each still stands on what those before it have made.
        while (this._tasks.length && 'patch' in this._tasks[0]) {
          task.patch = [...task.patch, ...(this._tasks.shift() as { patch: IOperation[] }).patch];
        }
        await this._edit(task.patch);
      } else {
        await this._take(task.text, task.keep === true);
      }
    }
    this._changed.emit();
  }

  private async _edit(patch: IOperation[]): Promise<void> {
    const before = this._text;
    try {
      this._accept(await this.editor.edit(before, this._complete(patch)));
      this._remember(before);
    } catch (error) {
      this._refused.emit(error);
    }
  }

  private async _take(text: string, keep: boolean): Promise<void> {
    const before = this._text;
    this._text = text;
    if (!keep && text !== before) {
      this._remember(before);
    }
    try {
      this._accept(await this.editor.edit(text, []));
    } catch (error) {
      if (!(error instanceof ApiError) || !error.problems.length) {
        this._refused.emit(error);
      }
      this._broken = true;
      this._problems = error instanceof ApiError ? error.problems : [];
    }
  }

  private _accept(edited: IEdited): void {
    this._text = edited.text;
    this._values = edited.values;
    this._problems = edited.problems;
    this._broken = false;
  }

  private _remember(text: string): void {
    if (text !== this._text || this._former.length === 0) {
      this._former.push(text);
      this._former.splice(0, this._former.length - MOST_UNDONE);
    }
  }

  /** What lies in our extras needs their version beside it. */
  private _complete(patch: IOperation[]): IOperation[] {
    const ours = '/extras/paijupyter';
    const needs = patch.some(each => each.op !== 'remove' && each.path.startsWith(`${ours}/`));
    if (!needs || valueAt(this._values, `${ours}/version`) !== undefined) {
      return patch;
    }
    return [{ op: 'add', path: `${ours}/version`, value: 1 }, ...patch];
  }

  private _text: string;
  private _values: Values = {};
  private _problems: IProblem[] = [];
  private _broken = false;
  private _tasks: Task[] = [];
  private _done: Promise<void> | null = null;
  private readonly _former: string[] = [];
  private readonly _changed = new Signal<this, void>(this);
  private readonly _refused = new Signal<this, unknown>(this);
}

/** One key of a JSON Pointer. */
export function escaped(key: string): string {
  return key.replace(/~/g, '~0').replace(/\//g, '~1');
}

/** The value at a JSON Pointer, or undefined. */
export function valueAt(values: unknown, path: string): unknown {
  let here: unknown = values;
  for (const part of path.split('/').slice(1)) {
    const key = part.replace(/~1/g, '/').replace(/~0/g, '~');
    if (here === null || typeof here !== 'object' || !Object.prototype.hasOwnProperty.call(here, key)) {
      return undefined;
    }
    here = (here as Record<string, unknown>)[key];
  }
  return here;
}

/** What takes a value out, with what would be left empty around it; the outermost part stays. */
export function removing(values: Values, path: string): IOperation[] {
  for (;;) {
    const around = path.slice(0, path.lastIndexOf('/'));
    const holder = valueAt(values, around);
    const isLast = typeof holder === 'object' && holder !== null && Object.keys(holder).length === 1;
    if (!isLast || around.split('/').length < 3) {
      return [{ op: 'remove', path }];
    }
    path = around;
  }
}

/** What sets a value, or takes it away: undefined. */
export function setting(values: Values, path: string, value: unknown): IOperation[] {
  const there = valueAt(values, path) !== undefined;
  if (value === undefined) {
    return there ? removing(values, path) : [];
  }
  return [{ op: there ? 'replace' : 'add', path, value }];
}
