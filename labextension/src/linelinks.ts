/** Links to lines of logs: an address of the page with the job, the task shown and the line. */

/** A line of a log: it begins at a byte of a task's log in an attempt. */
export interface ILogLine {
  task: string;
  attempt: number;
  offset: number;
}

const LOG = 'paijupyter-log';
const TASK = 'paijupyter-task';
const LINE = 'paijupyter-line';

/** Write a line as text, such as `worker-0:0:1234`. */
export function lineText({ task, attempt, offset }: ILogLine): string {
  return `${task}:${attempt}:${offset}`;
}

/** Read a line from text; null if it is none. */
export function readLine(text: unknown): ILogLine | null {
  const found = typeof text === 'string' ? /^([^:]+):(\d{1,9}):(\d{1,15})$/.exec(text) : null;
  return found ? { task: found[1], attempt: Number(found[2]), offset: Number(found[3]) } : null;
}

/**
 * Make a link.
 *
 * @param page - address of the application, without a query.
 * @param shown - key of the task that the view shows alone; empty: all of them.
 */
export function linkTo(page: string, id: string, shown: string, line: ILogLine): string {
  const query = new URLSearchParams({ [LOG]: id, ...(shown ? { [TASK]: shown } : {}), [LINE]: lineText(line) });
  return `${page}?${query.toString().replace(/%3A/g, ':')}`;
}

/** Read the query of an address; null if it is no link to a log. */
export function readLink(search: string): { id: string; task: string; line: ILogLine | null } | null {
  const query = new URLSearchParams(search);
  const id = query.get(LOG);
  return id ? { id, task: query.get(TASK) ?? '', line: readLine(query.get(LINE)) } : null;
}

/** The query of an address without what makes it a link to a log. */
export function withoutLink(search: string): string {
  const query = new URLSearchParams(search);
  [LOG, TASK, LINE].forEach(name => query.delete(name));
  const rest = query.toString();
  return rest ? `?${rest}` : '';
}
