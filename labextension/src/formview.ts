/** The form of a job: fields on the left, the plan on the right, and the same document as YAML. */

import type { IEditorFactoryService } from '@jupyterlab/codeeditor';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { errorText, IContext, saveBlob } from './context';
import { Button, h, rich, setText } from './dom';
import { pickJob, saveDefaults } from './formactions';
import { FormApi, IProfile, IRow, ISubmission, ITested } from './formapi';
import { FormDocument, valueAt } from './formdocument';
import { Importer, withheld } from './formimport';
import { offersOf } from './formoffers';
import { FormParts } from './formparts';
import { again, IFormArguments, IFormStart } from './formstart';
import { IAnswer, Submission } from './formsubmission';
import { confirm } from './formsubmit';
import { Tabs } from './formtabs';
import { inWords } from './formtexts';
import { CommandIDs } from './ids';
import { LoginBar } from './loginbar';
import { IProblem } from './model';
import { Planner, withLines } from './planner';
import { PlanView, tasksText } from './planview';
import { YamlView } from './yamlview';

/** Longer than a field waits before it tells what was typed. */
const TYPING_MILLISECONDS = 800;

export class FormView extends Widget {
  /** Resolved when the fields show what the document says. */
  readonly ready: Promise<void>;

  constructor(
    private readonly context: IContext,
    private readonly api: FormApi,
    rows: IRow[],
    private readonly profiles: IProfile[],
    private readonly given: IFormArguments,
    private readonly start: IFormStart,
    editors: IEditorFactoryService | null
  ) {
    super();
    this.addClass('jp-PaiForm');
    const { trans } = context;
    this._trans = trans;
    this._document = new FormDocument(api, start.document);
    this._submission = new Submission(api, start, this._document, () => this._parts.references);
    this._parts = new FormParts(inWords(rows, trans), {
      api,
      trans,
      profiles,
      profile: start.profile,
      secrets: start.secrets,
      values: () => this._document.values,
      edit: (...patch) => void this._document.apply(...patch),
      changed: () => this._later(),
      choose: name => this._choose(name),
      refresh: () => this._test(true)
    });
    this._plan = new PlanView(
      api,
      trans,
      problem => this._jump(problem),
      () => void this._repack()
    );
    this._login = new LoginBar(context, () => {
      this._test();
      this._planner.later();
    });
    this._planner = new Planner<ISubmission, IAnswer>(
      () => this._submission.question(),
      question => this._submission.plan(question),
      (answer, error) => this._take(answer, error)
    );
    this._yaml =
      editors &&
      new YamlView(
        editors,
        trans,
        text => void this._document.setText(text),
        () => this._tabs.focus()
      );
    const views: [string, string][] = [
      ['form', trans.__('Form')],
      ['yaml', 'YAML']
    ];
    this._tabs = new Tabs(this._yaml ? views : [], this._left, name => this._show(name));
    this._importer = new Importer(trans);
    this._submit = new Button(
      trans.__('Submit'),
      '',
      () => void this._send(),
      'jp-PaiForm-submit jp-mod-styled jp-mod-accept'
    );
    this._undo = new Button(trans.__('Undo'), trans.__('Take the last change back'), () => void this._document.undo());
    this._build();
    this._document.changed.connect(this._onDocument, this);
    this._document.refused.connect((_, error) => this._say(errorText(error)));
    this.ready = this._document.read().then(() => {
      this._kept = this.start.unsaved ? null : this._document.text;
    });
    void this.ready.then(() => this._repack());
    this._test();
  }

  /** What the form says has changed. */
  get touched(): ISignal<this, void> {
    return this._touched;
  }

  /** Whether it says something that nobody has submitted or exported. */
  get unsaved(): boolean {
    return this._kept !== this._document.text;
  }

  /** What it can be opened with again: never with the value of a secret, and never with a text that hides one. */
  async draft(): Promise<IFormArguments> {
    await this._document.idle();
    if (!this._document.broken) {
      const { text, values } = this._document;
      const { patch } = withheld(values);
      this._draft = patch.length ? (await this.api.edit(text, patch)).text : text;
    }
    const [document, profile, secrets] = [this._draft, this._submission.profile, this._parts.references];
    return again(this.given, this.start, {
      document,
      profile,
      secrets,
      unsaved: this.unsaved
    });
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._planner.dispose();
      this._yaml?.dispose();
      this._document.changed.disconnect(this._onDocument, this);
      super.dispose();
    }
  }

  protected onAfterShow(): void {
    this._yaml?.refresh();
  }

  protected onActivateRequest(): void {
    this.node.querySelector<HTMLElement>('.jp-PaiForm-fields input, .jp-PaiForm-fields select')?.focus();
  }

  private _build(): void {
    const bar = h('div', { class: 'jp-PaiForm-bar' }, this._tabs.node);
    for (const [label, title, press] of this._actions()) {
      bar.append(new Button(label, title, press).node);
    }
    bar.append(this._undo.node);
    this._left.append(this._login.node, this._parts.node);
    if (this._yaml) {
      this._left.append(this._yaml.node);
    }
    // What is being typed is not planned yet: until then nothing can be submitted.
    this._left.addEventListener('input', () => {
      this._planner.later(TYPING_MILLISECONDS);
      this._drawStale();
    });
    this.node.append(
      bar,
      this._importer.node,
      h('div', { class: 'jp-PaiForm-columns' }, this._left, this._plan.node),
      h('div', { class: 'jp-PaiForm-foot' }, this._said, this._why, this._submit.node)
    );
    this._tabs.show('form');
  }

  private _actions(): [string, string, () => void][] {
    const trans = this._trans;
    return [
      [
        trans.__('Import'),
        trans.__('Take a job document from a file, or one that you paste'),
        () => void this._importer.run(this._document, () => this._tabs.show('yaml'))
      ],
      [trans.__('Export'), trans.__('Save the job document as a file'), () => this._export()],
      [
        trans.__('Start from a job'),
        trans.__('Take the document and package of an earlier job'),
        () => void pickJob(this.context)
      ],
      [
        trans.__('Save as profile default'),
        trans.__('Have the profile give this image to jobs that name none'),
        () => void this._saveDefaults()
      ]
    ];
  }

  private _show(name: string): void {
    const isYaml = name === 'yaml';
    this._parts.node.hidden = isYaml;
    if (this._yaml) {
      this._yaml.node.hidden = !isYaml;
      this._yaml.refresh();
    }
  }

  private _onDocument(): void {
    const { text, values, problems, broken } = this._document;
    this._yaml?.show(text);
    this._yaml?.complain(problems, this._trans);
    this._undo.reason = this._document.canUndo ? '' : this._trans.__('Nothing has been changed');
    this._parts.node.toggleAttribute('inert', broken);
    if (!broken) {
      this._parts.show(values);
    }
    this._say('');
    this._later();
  }

  private _later(): void {
    this._touched.emit();
    this._planner.later();
    this._drawStale();
  }

  private _drawStale(): void {
    this._plan.stale = this._planner.stale;
    this._drawSubmit();
  }

  private _take(answer: IAnswer | null, error: unknown): void {
    this._answer = answer;
    const problems = answer?.problems ?? this._document.problems;
    if (answer) {
      this._plan.show(answer.plan, problems, this._submission.pack);
      this._yaml?.complain(withLines(problems), this._trans);
    } else {
      this._plan.fail(problems, error);
    }
    this._parts.complain(problems);
    this._drawStale();
  }

  private _drawSubmit(): void {
    const trans = this._trans;
    const errors = this._answer?.problems.filter(each => each.severity === 'error') ?? [];
    const ready = this._answer?.plan.ok && !errors.length;
    const reason = this._document.broken
      ? trans.__('The YAML cannot be read')
      : this._planner.stale
        ? trans.__('The plan is being made')
        : ready
          ? ''
          : (errors[0]?.message ?? trans.__('There is no plan'));
    this._submit.reason = reason;
    this._why.replaceChildren(...(this._planner.stale ? [] : rich(reason)));
    const said = this._answer?.plan.roles.length ? tasksText(this._answer.plan, trans) : '';
    setText(this._submit.node, said ? trans.__('Submit %1', said) : trans.__('Submit'));
  }

  /** Look at the files that travel, then at the plan. */
  private async _repack(): Promise<void> {
    try {
      await this._submission.packFolder();
    } catch (error) {
      this._say(errorText(error));
    }
    this._planner.later();
    this._drawStale();
  }

  private _choose(profile: string | null): void {
    this._submission.profile = profile;
    this._test();
    this._later();
  }

  private get _profileName(): string | undefined {
    return this._submission.profile ?? this.profiles.find(each => each.default)?.name;
  }

  /** Ask what the profile has; the form is there before the answer. */
  private _test(refresh = false): void {
    const name = this._profileName;
    if (!name) {
      return;
    }
    this._parts.suit(this.profiles.find(each => each.name === name)?.kind ?? '');
    this.api
      .test(name)
      .catch((error): ITested => ({
        ok: false,
        message: errorText(error),
        hint: '',
        capabilities: null
      }))
      .then(found => {
        if (!this.isDisposed && name === this._profileName) {
          this._parts.has(found);
        }
      })
      .catch(console.error);
    void this._login.ask(name);
    void offersOf(this.api, name, refresh).then(found => this._parts.offer(found));
  }

  private async _send(): Promise<void> {
    const answer = this._answer;
    if (!answer) {
      return;
    }
    const secrets = await confirm(answer.plan, this._parts.references, this._trans);
    if (secrets === null) {
      return;
    }
    this._submit.reason = this._trans.__('It is being submitted');
    try {
      if (this.start.package === null) {
        await this._repack(); // What travels is what is there now, also if it was saved a moment ago.
      }
      const job = await this._submission.send(secrets);
      this.context.store.take(job);
      this._keep();
      this._say(this._trans.__('%1 is submitted.', job.name));
      await this.context.commands.execute(CommandIDs.openJob, { id: job.id });
    } catch (error) {
      this._say(errorText(error));
    } finally {
      this._drawSubmit();
    }
  }

  private _jump(problem: IProblem): void {
    if (this._parts.reveal(problem.path ?? '')) {
      this._tabs.show('form');
      this._parts.reveal(problem.path ?? '');
    } else if (problem.line && this._yaml) {
      this._tabs.show('yaml');
      this._yaml.go(problem.line, problem.column);
    }
  }

  /** What the form says now is kept somewhere else. */
  private _keep(): void {
    this._kept = this._document.text;
    this._touched.emit();
  }

  private _export(): void {
    const name = valueAt(this._document.values, '/name');
    saveBlob(new Blob([this._document.text], { type: 'text/yaml' }), `${typeof name === 'string' ? name : 'job'}.yaml`);
    this._keep();
  }

  private async _saveDefaults(): Promise<void> {
    const profile = this._answer?.plan.profile ?? this._submission.profile;
    try {
      this._say(await saveDefaults(profile, this._parts.image(), this.api, this._trans));
    } catch (error) {
      this._say(errorText(error));
    }
  }

  private _say(text: string): void {
    this._said.replaceChildren(...rich(text));
  }

  private readonly _trans: TranslationBundle;
  private readonly _document: FormDocument;
  private readonly _submission: Submission;
  private readonly _parts: FormParts;
  private readonly _login: LoginBar;
  private readonly _plan: PlanView;
  private readonly _planner: Planner<ISubmission, IAnswer>;
  private readonly _yaml: YamlView | null;
  private readonly _submit: Button;
  private readonly _undo: Button;
  private readonly _tabs: Tabs;
  private _answer: IAnswer | null = null;
  private _kept: string | null = null;
  private _draft = '';
  private readonly _importer: Importer;
  private readonly _touched = new Signal<this, void>(this);
  private readonly _left = h('div', { class: 'jp-PaiForm-left' });
  private readonly _said = h('span', {
    class: 'jp-PaiForm-said',
    role: 'status'
  });
  private readonly _why = h('span', {
    class: 'jp-PaiForm-why',
    'aria-live': 'polite'
  });
}
