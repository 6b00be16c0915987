/** What the form asks of the job server, and what it gets. */

import { Api, requestId } from './api';
import { IJob, IProblem } from './model';

/** The JSON schema of a value, without references. */
export interface ISchema {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';
  enum?: string[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  properties?: Record<string, ISchema>;
  required?: string[];
  items?: ISchema;
  names?: string;
  values?: ISchema;
  description?: string;
  examples?: unknown[];
  /** Of the items of a list: the member that tells kinds apart, and a schema for each of its values. */
  kinds?: { key: string; of: Record<string, ISchema> };
}

/** One row of the table of fields. */
export interface IRow {
  path: string;
  label: string;
  help: string;
  unit: string;
  level: 'basic' | 'advanced';
  widget: string;
  default: unknown;
  required: boolean;
  /** Kinds of profiles that heed it; none: all. */
  profiles: string[];
  /** Kinds of items that have other fields. */
  elsewhere: string[];
  section: 'what' | 'role' | 'with' | 'advanced';
  schema: ISchema;
}

export interface IOperation {
  op: 'add' | 'replace' | 'remove' | 'move' | 'copy';
  path: string;
  from?: string;
  value?: unknown;
}

export type Values = Record<string, unknown>;

export interface IEdited {
  text: string;
  values: Values;
  problems: IProblem[];
}

export interface IProfile {
  name: string;
  kind: string;
  default: boolean;
  usable: boolean;
  reason: string;
  settings: Record<string, unknown>;
}

export interface ICapabilities {
  capacity?: Record<string, number>;
  free?: Record<string, number>;
  queues?: (string | { name: string })[];
  unreachable?: string;
}

export interface ITested {
  ok: boolean;
  message: string;
  hint: string;
  capabilities: ICapabilities | null;
}

export interface ISku {
  cpu: number | null;
  memoryMB: number | null;
  gpu: number | null;
}

/** What there is to choose from at a profile's server; SKU types by virtual cluster. */
export interface IOffers {
  virtualClusters: { name: string }[];
  skus: Record<string, Record<string, ISku>>;
  storages: { name: string }[];
  images: string[];
}

export interface IPackage {
  sha256: string;
  files: number;
  bytes: number;
  excluded: { path: string; reason: string; size: number; hint?: string; at_least?: boolean }[];
  problems: IProblem[];
}

export interface IPlan {
  ok: boolean;
  name: string;
  profile: string | null;
  submittedDocument: string;
  problems: IProblem[];
  package: { sha256: string; files: number; bytes: number } | null;
  roles: { name: string; instances: number; cpu: number | null; memoryMB: number | null; gpu: number | null }[];
  objects: Record<string, unknown>[];
  starts: string;
  parameters: Values;
  secretNames: string[];
  secretReferences: Record<string, string>;
  data: { name: string; uri: string; bytes?: number; read: string }[];
  outputs: string[];
  resumes: Record<string, unknown> | null;
  estimate: Record<string, unknown> | null;
}

/** Where a job comes from; paths as the file browser has them. */
export interface IFormContext {
  folder?: string;
  notebook?: string;
  cell?: { id?: string | null; hash?: string | null; number?: number | null } | null;
  kernelspec?: string;
  kernel?: string;
  surface: 'form';
}

export interface ISubmission {
  document: string;
  profile: string | null;
  package: string | null;
  data: Record<string, string>;
  secrets: Record<string, { reference?: string; value?: string }>;
  context: IFormContext;
  resumeFrom?: string | null;
}

export class FormApi {
  constructor(private readonly api: Api) {}

  async rows(): Promise<IRow[]> {
    return (await this.api.ask<{ form: IRow[] }>('schema')).form;
  }

  edit(text: string, patch: IOperation[]): Promise<IEdited> {
    return this.api.ask('document/edit', 'POST', { text, patch });
  }

  async start(name: string): Promise<string> {
    return (await this.api.ask<{ document: string }>('document/start', 'POST', { name })).document;
  }

  async ofNotebook(notebook: string): Promise<string> {
    return (await this.api.ask<{ document: string }>('document/notebook', 'POST', { notebook })).document;
  }

  /** A script of chosen cells, with the package that holds it. */
  ofCells(
    notebook: string,
    cells: string[]
  ): Promise<{ document: string; package: string; cell?: IFormContext['cell']; problems: IProblem[] }> {
    return this.api.ask('document/cells', 'POST', { notebook, cells });
  }

  plan(submission: ISubmission): Promise<IPlan> {
    return this.api.ask('plan', 'POST', submission);
  }

  submit(submission: ISubmission): Promise<IJob> {
    return this.api.ask('jobs', 'POST', { ...submission, mode: 'normal', requestId: requestId() });
  }

  /** Submit a changed copy of a job; it keeps the place that the job came from. */
  clone(id: string, submission: ISubmission): Promise<IJob> {
    const { document, profile, package: sha256, data, secrets } = submission;
    const changes = {
      document,
      secrets,
      data,
      ...(profile ? { profile } : {}),
      ...(sha256 ? { package: sha256 } : {})
    };
    return this.api.ask(`jobs/${encodeURIComponent(id)}/clone`, 'POST', { ...changes, requestId: requestId() });
  }

  source(id: string): Promise<string> {
    return this.api.text(this.api.exportUrl(id));
  }

  async profiles(): Promise<IProfile[]> {
    return (await this.api.ask<{ profiles: IProfile[] }>('profiles')).profiles;
  }

  test(profile: string): Promise<ITested> {
    return this.api.ask(`profiles/${encodeURIComponent(profile)}/test`, 'POST', {});
  }

  /** What there is to choose from; `refresh`: as it is now, not as it was some minutes ago. */
  offers(profile: string, refresh: boolean): Promise<IOffers> {
    const query: Record<string, string> = refresh ? { refresh: '1' } : {};
    return this.api.ask(`profiles/${encodeURIComponent(profile)}/offers`, 'GET', undefined, query);
  }

  editProfile(profile: string, set: Values): Promise<IProfile> {
    return this.api.ask(`profiles/${encodeURIComponent(profile)}/edit`, 'POST', { set });
  }

  package(folder: string): Promise<IPackage> {
    return this.api.ask('packages', 'POST', { folder });
  }

  /** Path and size of each file of a package. */
  async files(sha256: string): Promise<{ path: string; size: number }[]> {
    const found = await this.api.ask<{ files: [string, string, number, string][] }>(`packages/${sha256}`);
    return found.files.map(([path, , size]) => ({ path, size }));
  }

  takeData(document: string, folder: string): Promise<{ data: Record<string, string>; problems: IProblem[] }> {
    return this.api.ask('packages/data', 'POST', { document, folder });
  }

  async storedSecrets(): Promise<string[]> {
    return (await this.api.ask<{ names: string[] }>('secrets')).names;
  }

  /** Put a value into the server's secret store; it stays nowhere else. */
  async putSecret(name: string, value: string): Promise<void> {
    await this.api.ask(`secrets/${encodeURIComponent(name)}`, 'PUT', { value });
  }

  async storages(profile: string | null): Promise<string[]> {
    const query: Record<string, string> = profile ? { profile } : {};
    const found = await this.api.ask<{ storages: { name: string }[] }>('storages', 'GET', undefined, query);
    return found.storages.map(each => each.name);
  }
}
