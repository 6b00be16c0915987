/** How a form begins: from a notebook, a cell, a job, what a magic has made, or nothing but a folder. */

import { FormApi, IFormContext } from './formapi';
import { IJob } from './model';

/** What a form is opened with; paths as the file browser has them. */
export interface IFormArguments {
  folder?: string;
  notebook?: string;
  cell?: string;
  kernelspec?: string;
  kernel?: string;
  /** Id of the job to start from. */
  job?: string;
  /** A document to begin with. */
  document?: string;
  profile?: string | null;
  /** A package that is in the store already. */
  package?: string | null;
  data?: Record<string, string>;
  secrets?: Record<string, string>;
  resumeFrom?: string | null;
  cellFacts?: IFormContext['cell'];
  /** Of a form that comes back: the job it is a copy of, whether it holds what nobody kept, the page's id. */
  clones?: string | null;
  unsaved?: boolean;
  page?: string;
}

/** What a form works on. */
export interface IFormStart {
  document: string;
  profile: string | null;
  /** Given once and for all; null: the folder is packaged. */
  package: string | null;
  data: Record<string, string>;
  secrets: Record<string, string>;
  context: IFormContext;
  /** The job it is a copy of, or null. */
  clones: string | null;
  resumeFrom: string | null;
  /** Whether it holds what nobody has kept. */
  unsaved: boolean;
}

export async function begin(
  given: IFormArguments,
  api: FormApi,
  job: (id: string) => Promise<IJob>
): Promise<IFormStart> {
  const start: IFormStart = {
    document: given.document ?? '',
    profile: given.profile ?? null,
    package: given.package ?? null,
    data: given.data ?? {},
    secrets: given.secrets ?? {},
    context: { surface: 'form', ...contextOf(given) },
    clones: given.clones ?? null,
    resumeFrom: given.resumeFrom ?? null,
    unsaved: given.unsaved ?? false
  };
  if (given.document !== undefined) {
    return start;
  }
  if (given.job) {
    return {
      ...start,
      ...(await ofJob(given.job, api, job)),
      context: { surface: 'form' }
    };
  }
  if (given.notebook && given.cell) {
    const { document, package: sha256, cell } = await api.ofCells(given.notebook, [given.cell]);
    return {
      ...start,
      document,
      package: sha256,
      context: { ...start.context, cell: cell ?? null }
    };
  }
  if (given.notebook) {
    return { ...start, document: await api.ofNotebook(given.notebook) };
  }
  return {
    ...start,
    document: await api.start((given.folder ?? '').split('/').pop() || 'job')
  };
}

async function ofJob(id: string, api: FormApi, job: (id: string) => Promise<IJob>): Promise<Partial<IFormStart>> {
  const [document, view] = await Promise.all([api.source(id), job(id)]);
  const known = view as IJob & { secretReferences?: Record<string, string> };
  return {
    document,
    profile: view.profile,
    package: view.packageSha256,
    secrets: known.secretReferences ?? {},
    clones: id
  };
}

function contextOf(given: IFormArguments): Partial<IFormContext> {
  const folder = given.folder ?? (given.notebook ? given.notebook.split('/').slice(0, -1).join('/') : undefined);
  return {
    ...(folder === undefined ? {} : { folder }),
    ...(given.notebook ? { notebook: given.notebook } : {}),
    ...(given.kernelspec ? { kernelspec: given.kernelspec } : {}),
    ...(given.kernel ? { kernel: given.kernel } : {}),
    ...(given.cellFacts ? { cell: given.cellFacts } : {})
  };
}

/** What a form is opened with again after a reload, with what its document says now. */
export function again(given: IFormArguments, start: IFormStart, now: Partial<IFormArguments>): IFormArguments {
  const { folder, notebook, kernelspec, kernel } = given;
  const place = Object.entries({ folder, notebook, kernelspec, kernel }).filter(([, value]) => value !== undefined);
  const { package: sha256, data, resumeFrom, clones, context } = start;
  return {
    ...Object.fromEntries(place),
    package: sha256,
    data,
    resumeFrom,
    clones,
    cellFacts: context.cell ?? null,
    ...now
  };
}

/** What a form is about, in few words. */
export function titleOf(given: IFormArguments): string {
  return (given.notebook ?? given.folder ?? '').split('/').pop() ?? '';
}
