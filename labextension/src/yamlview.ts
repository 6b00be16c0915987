/** The source document as text, in JupyterLab's own editor; problems are marked at their lines. */

import { EditorState, Extension, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView } from '@codemirror/view';
import { CodeEditor, IEditorFactoryService } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';

import { h, rich } from './dom';
import { IProblem } from './model';

const TYPING_MILLISECONDS = 400;

const marked = StateEffect.define<IProblem[]>();

/** The lines that have problems; they move with what is typed above them. */
const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (shown, transaction) => {
    let now = shown.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(marked)) {
        now = decorations(transaction.state, effect.value);
      }
    }
    return now;
  },
  provide: field => EditorView.decorations.from(field)
});

function decorations(state: EditorState, problems: IProblem[]): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const byLine = new Map<number, IProblem[]>();
  for (const problem of problems) {
    if (problem.line && problem.line <= state.doc.lines) {
      byLine.set(problem.line, [...(byLine.get(problem.line) ?? []), problem]);
    }
  }
  for (const [line, here] of [...byLine].sort(([one], [other]) => one - other)) {
    const severity = here.find(each => each.severity === 'error')?.severity ?? here[0].severity;
    const title = here.map(each => [each.message, each.hint].filter(Boolean).join(' ')).join('\n');
    const from = state.doc.line(line).from;
    builder.add(
      from,
      from,
      Decoration.line({ attributes: { class: 'jp-PaiYaml-mark', 'data-severity': severity, title } })
    );
  }
  return builder.finish();
}

export class YamlView {
  readonly node: HTMLElement;

  /**
   * @param typed - gets the text a moment after somebody has typed.
   * @param leave - called for Escape: Tab indents, so that nothing else leads out by keyboard.
   */
  constructor(
    factory: IEditorFactoryService,
    trans: TranslationBundle,
    private readonly typed: (text: string) => void,
    leave: () => void
  ) {
    const host = h('div', { class: 'jp-PaiYaml-editor' });
    this._model = new CodeEditor.Model({ mimeType: 'text/x-yaml' });
    const extensions: Extension[] = [
      marks,
      EditorView.contentAttributes.of({ 'aria-label': trans.__('Job document; Escape leaves it') }),
      EditorView.domEventHandlers({
        keydown: event => {
          if (event.key === 'Escape' && !event.defaultPrevented) {
            leave();
          }
        }
      })
    ];
    this._editor = factory.newDocumentEditor({
      host,
      model: this._model,
      config: { lineNumbers: true, lineWrap: true, tabSize: 2, insertSpaces: true },
      extensions
    });
    this._model.sharedModel.changed.connect(this._onChange, this);
    this.node = h('div', { class: 'jp-PaiYaml' }, host, this._list);
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._model.sharedModel.changed.disconnect(this._onChange, this);
    this._editor.dispose();
    this._model.dispose();
  }

  /** Show the text; what is the same stays as it is, with cursor and scrolling. */
  show(source: string): void {
    // The editor counts a line's end as one; what a text has is put back when it is read.
    this._ends = source.includes('\r\n') ? '\r\n' : '\n';
    const text = source.replace(/\r\n/g, '\n');
    const now = this._model.sharedModel.getSource();
    if (now === text || this._timer) {
      return;
    }
    this._quiet = true;
    const start = commonStart(now, text);
    const end = commonEnd(now, text, start);
    this._model.sharedModel.updateSource(start, now.length - end, text.slice(start, text.length - end));
    this._quiet = false;
  }

  complain(problems: IProblem[], trans: TranslationBundle): void {
    const view = (this._editor as unknown as { editor: EditorView }).editor;
    view.dispatch({ effects: marked.of(problems) });
    this._list.replaceChildren(
      ...problems.map(problem => {
        const button = problem.line ? h('button', { type: 'button', class: 'jp-Pai-link' }) : null;
        if (button) {
          button.textContent = trans.__('line %1', problem.line);
          button.addEventListener('click', () => this.go(problem.line as number, problem.column ?? 1));
        }
        return h(
          'li',
          { 'data-severity': problem.severity },
          button,
          button && ' ',
          ...rich([problem.message, problem.hint].filter(Boolean).join(' '))
        );
      })
    );
  }

  /** Go to a line. */
  go(line: number, column = 1): void {
    const position = { line: line - 1, column: Math.max(0, column - 1) };
    this._editor.setCursorPosition(position);
    this._editor.revealPosition(position);
    this._editor.focus();
  }

  /** Have the editor see that its place has another size. */
  refresh(): void {
    (this._editor as unknown as { editor: EditorView }).editor.requestMeasure();
  }

  private _onChange(): void {
    if (this._quiet) {
      return;
    }
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._timer = 0;
      this.typed(this._model.sharedModel.getSource().replace(/\n/g, this._ends));
    }, TYPING_MILLISECONDS);
  }

  private readonly _model: CodeEditor.Model;
  private readonly _editor: CodeEditor.IEditor;
  private readonly _list = h('ul', { class: 'jp-PaiPlan-problems' });
  private _ends = '\n';
  private _quiet = false;
  private _timer = 0;
}

function commonStart(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one[at] === other[at]) {
    at += 1;
  }
  return at;
}

function commonEnd(one: string, other: string, start: number): number {
  const most = Math.min(one.length, other.length) - start;
  let count = 0;
  while (count < most && one[one.length - 1 - count] === other[other.length - 1 - count]) {
    count += 1;
  }
  return count;
}
