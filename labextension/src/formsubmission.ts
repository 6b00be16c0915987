/** What is submitted: the document with its profile, the files that travel, and what secrets are taken from. */

import { FormApi, IPackage, IPlan, ISubmission } from './formapi';
import { FormDocument, valueAt } from './formdocument';
import type { IFormStart } from './formstart';
import { IJob, IProblem } from './model';
import { worstFirst } from './planner';

/** What the server says of a submission. */
export interface IAnswer {
  plan: IPlan;
  problems: IProblem[];
}

export class Submission {
  profile: string | null;

  /** @param references - where the value of each secret is taken from. */
  constructor(
    private readonly api: FormApi,
    private readonly start: IFormStart,
    private readonly document: FormDocument,
    private readonly references: () => Record<string, string>
  ) {
    this.profile = start.profile;
    this._package = start.package;
    this._data = start.data;
  }

  /** The folder as it was packaged last; null: it was not, or the package was given. */
  get pack(): IPackage | null {
    return this._pack;
  }

  /** Package the folder, unless the package is given. */
  async packFolder(): Promise<void> {
    const { folder } = this.start.context;
    if (this.start.package === null && folder !== undefined) {
      this._pack = await this.api.package(folder);
      this._package = this._pack.sha256;
    }
  }

  /** What is asked about now; null while the document cannot be read. */
  async question(): Promise<ISubmission | null> {
    await this.document.idle();
    return this.document.broken ? null : this._now();
  }

  /** Ask for the plan; problems of the files that travel are among its problems. */
  async plan(question: ISubmission): Promise<IAnswer> {
    const { folder } = this.start.context;
    let found: IProblem[] = [];
    // Files named as data travel like the package: what the plan says of them needs them there.
    if (folder !== undefined && Array.isArray(valueAt(this.document.values, '/extras/paijupyter/data'))) {
      const taken = await this.api.takeData(question.document, folder);
      this._data = { ...this.start.data, ...taken.data };
      question = { ...question, data: this._data };
      found = taken.problems;
    }
    const plan = await this.api.plan(question);
    const known = new Set(found.map(each => each.path));
    const rest = plan.problems.filter(each => each.code !== 'data-not-sent' || !known.has(each.path));
    return {
      plan,
      problems: worstFirst([...found, ...(this._pack?.problems ?? []), ...rest])
    };
  }

  /** Submit what is said now; a form that began with a job makes a copy of it. */
  send(secrets: ISubmission['secrets']): Promise<IJob> {
    const { clones } = this.start;
    const submission = { ...this._now(), secrets };
    return clones ? this.api.clone(clones, submission) : this.api.submit(submission);
  }

  private _now(): ISubmission {
    const secrets = Object.fromEntries(
      Object.entries(this.references()).map(([name, reference]) => [name, { reference }])
    );
    return {
      document: this.document.text,
      profile: this.profile,
      package: this._package,
      data: this._data,
      secrets,
      context: this.start.context,
      ...(this.start.resumeFrom ? { resumeFrom: this.start.resumeFrom } : {})
    };
  }

  private _package: string | null;
  private _pack: IPackage | null = null;
  private _data: Record<string, string>;
}
