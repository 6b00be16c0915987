/** What outputs are, and where they go. */

import { contentsPath } from './groups';
import { IJob, IOutput } from './model';

/**
 * The folder of the file browser that outputs are pulled to, as `%paijob pull` has it: one of the job's name beside its
 * notebook, else in the folder it was submitted from; in the root where that lies elsewhere.
 *
 * @param root - of the server, as the page's configuration has it.
 */
export function pullFolder(job: Pick<IJob, 'name' | 'notebook' | 'folder'>, root: string): string {
  const beside = job.notebook?.includes('/') ? job.notebook.slice(0, job.notebook.lastIndexOf('/')) : job.folder;
  return (beside ? contentsPath(`${beside}/${job.name}`, root) : null) ?? job.name;
}

/** Whether TensorBoard has something to show: its writers put this into the name of every file. */
export function hasEvents(files: readonly IOutput[]): boolean {
  return files.some(file => file.path.slice(file.path.lastIndexOf('/') + 1).includes('tfevents'));
}

/** Order outputs by name, numbers by their value: `epoch-2` before `epoch-10`. */
export function byName(one: IOutput, other: IOutput): number {
  return one.path.localeCompare(other.path, undefined, { numeric: true });
}
