/** Places in a notebook: where a traceback points to, and how to get there. */

import { IJob, ICellPlace } from './model';

/** `File "train.ipynb[cell 4]", line 2`, or the file of a `%%paijob` cell. */
const PLACE = /File "(?:([^"[\]]+)\[(cell|In) (\d+)\]|[^"]*\.paijob\/cell\.py)", line (\d+)/;

/** Find the place that a line of a log names; `start` and `end` are those of its words. */
export function placeIn(text: string, job: IJob | undefined): { place: ICellPlace; start: number; end: number } | null {
  const found = text.includes('File "') ? PLACE.exec(text) : null;
  if (!found) {
    return null;
  }
  const [whole, notebook, kind, number, line] = found;
  const place: ICellPlace = { notebook: null, line: Number(line) };
  if (notebook === undefined) {
    if (!job?.cell?.id) {
      return null; // The job is of no cell that could be found again.
    }
    place.id = job.cell.id;
    place.cell = job.cell.number ?? undefined;
  } else {
    // Where the notebook's file was not known, its name stands for the one that submitted.
    place.notebook = notebook === 'notebook' ? null : notebook;
    place[kind === 'cell' ? 'cell' : 'run'] = Number(number);
  }
  return { place, start: found.index, end: found.index + whole.length };
}

/** The notebook that a place is in, as a path of the server's host: beside the job's own if it has another name. */
export function notebookOf(job: IJob, place: ICellPlace | null): string | null {
  if (!job.notebook) {
    return null;
  }
  const folder = job.notebook.slice(0, job.notebook.lastIndexOf('/') + 1);
  return place?.notebook && !place.notebook.includes('/') ? folder + place.notebook : job.notebook;
}

/** What of a cell is needed to find it. */
export interface ICell {
  id: string;
  executionCount?: number | null;
}

/** Index of the cell that is meant: by its id, else as the one of a number or a count; -1 if there is none. */
export function cellIndex(cells: readonly ICell[], place: ICellPlace): number {
  const byId = place.id ? cells.findIndex(cell => cell.id === place.id) : -1;
  if (byId >= 0) {
    return byId;
  }
  if (place.run !== undefined) {
    return cells.findIndex(cell => cell.executionCount === place.run);
  }
  return place.cell !== undefined && place.cell <= cells.length ? place.cell - 1 : -1;
}
