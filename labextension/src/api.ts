/** The job server's REST API: the one place that knows its addresses. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { ILogLine } from './linelinks';
import {
  ApiError,
  IDifference,
  IFound,
  IFrame,
  IGroupView,
  IJob,
  IOutput,
  IPage,
  IPort,
  IProblem,
  IPulled,
  IPulling,
  ITask,
  ITimes,
  JobEvent
} from './model';
import { ISource } from './store';

const PAGE = 100;
const POLL_MILLISECONDS = 10_000;

/** Where one task's log is read from. */
export interface IPlace {
  attempt: number;
  offset: number;
}

export class Api implements ISource {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** Milliseconds that the server's clock is ahead of this browser's. */
  skew = 0;

  /** The time at the server. */
  now(): number {
    return Date.now() + this.skew;
  }

  /** Address of a resource, also for links. */
  url(path: string, query: Record<string, string | number | null | undefined> = {}): string {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return URLExt.join(this.settings.baseUrl, 'paijupyter/v1', path) + (search ? `?${search}` : '');
  }

  list(cursor: string | null, group = '-'): Promise<IPage> {
    return this._json(this.url('jobs', { limit: PAGE, cursor, group }));
  }

  async groups(): Promise<IGroupView[]> {
    return (await this._json<{ groups: IGroupView[] }>(this.url('groups', { limit: PAGE }))).groups;
  }

  stopGroup(id: string): Promise<IGroupView> {
    return this._json(this.url(`groups/${encodeURIComponent(id)}/stop`), 'POST', {});
  }

  async deleteGroup(id: string): Promise<void> {
    await this._fetch(this.url(`groups/${encodeURIComponent(id)}`), { method: 'DELETE' });
  }

  get(id: string): Promise<IJob> {
    return this._json(this.url(`jobs/${encodeURIComponent(id)}`));
  }

  stop(id: string): Promise<IJob> {
    return this._json(this.url(`jobs/${encodeURIComponent(id)}/stop`), 'POST', {});
  }

  retry(id: string): Promise<IJob> {
    return this._json(this.url(`jobs/${encodeURIComponent(id)}/retry`), 'POST', { requestId: requestId() });
  }

  async delete(id: string): Promise<void> {
    await this._fetch(this.url(`jobs/${encodeURIComponent(id)}`), { method: 'DELETE' });
  }

  tasks(id: string, offset: number, limit: number): Promise<{ tasks: ITask[]; total: number }> {
    return this._json(this.url(`jobs/${encodeURIComponent(id)}/tasks`, { offset, limit }));
  }

  async files(id: string): Promise<IOutput[]> {
    const found = await this._json<{ files: IOutput[] }>(this.url(`jobs/${encodeURIComponent(id)}/files`));
    return found.files;
  }

  /** Copy a job's outputs into a folder of the file browser; `told` hears how far it is. */
  async pull(id: string, folder: string, replace: boolean, told: (far: IPulling) => void): Promise<IPulled> {
    const init = { method: 'POST', body: JSON.stringify({ folder, replace }) };
    const response = await this._fetch(this.url(`jobs/${encodeURIComponent(id)}/pull`), init);
    let pulled: IPulled | null = null;
    await readLines(response, value => {
      const line = value as
        IPulled | IPulling | { problem: { status: number } & Record<'code' | 'title' | 'hint', string> };
      if ('problem' in line) {
        throw new ApiError(line.problem.status, line.problem.code, line.problem.title, line.problem.hint);
      } else if ('folder' in line) {
        pulled = line;
      } else {
        told(line);
      }
    });
    if (pulled === null) {
      throw new TypeError('the connection was lost');
    }
    return pulled;
  }

  /** Start TensorBoard on a job's outputs, or find it. */
  tensorboard(id: string): Promise<IPort> {
    return this._json(this.url(`jobs/${encodeURIComponent(id)}/tensorboard`), 'POST', {});
  }

  async ports(id: string): Promise<IPort[]> {
    return (await this._json<{ ports: IPort[] }>(this.url(`jobs/${encodeURIComponent(id)}/ports`))).ports;
  }

  /** Address of a port of a task, through the server. */
  portUrl(port: IPort): string {
    return URLExt.join(this.settings.baseUrl, port.path);
  }

  /** What changed from one job to another. */
  diff(before: string, after: string): Promise<IDifference> {
    return this._json(this.url(`jobs/${encodeURIComponent(before)}/diff`, { with: after }));
  }

  /** Address of one output file. */
  fileUrl(id: string, path: string): string {
    return this.url(`jobs/${encodeURIComponent(id)}/files/${path.split('/').map(encodeURIComponent).join('/')}`);
  }

  /** Address of the job document. */
  exportUrl(id: string): string {
    return this.url(`jobs/${encodeURIComponent(id)}/export`, { what: 'source' });
  }

  /** Address of one task's whole log. */
  logUrl(id: string, task: string): string {
    return this.url(`jobs/${encodeURIComponent(id)}/logs`, { task });
  }

  /** Which lines of the whole log have a text; of one task, or of all. */
  async searchLog(id: string, text: string, task: string, most: number, signal: AbortSignal): Promise<IFound> {
    const query = { text, task: task || null, most };
    const response = await this._fetch(this.url(`jobs/${encodeURIComponent(id)}/logs/search`, query), { signal });
    return (await response.json()) as IFound;
  }

  /** When lines of an attempt were written, and those after them. */
  async logTimes(id: string, attempt: number, lines: ILogLine[], signal: AbortSignal): Promise<ITimes[]> {
    const query = { attempt, places: lines.map(line => `${line.task}:${line.offset}`).join() };
    const response = await this._fetch(this.url(`jobs/${encodeURIComponent(id)}/logs/times`, query), { signal });
    return ((await response.json()) as { tasks: ITimes[] }).tasks;
  }

  /** The last line that a task has written in its latest attempt; null if there is none. */
  async lastLine(id: string, task: string): Promise<ILogLine | null> {
    const abort = new AbortController();
    const url = this.url(`jobs/${encodeURIComponent(id)}/logs`, { task, tail: 1 });
    const { headers } = await this._fetch(url, { signal: abort.signal });
    abort.abort(); // Where it is said in the head; the line itself may be long.
    const [attempt, offset, size] = ['Attempt', 'Offset', 'Size'].map(name => Number(headers.get(`X-Log-${name}`)));
    return size ? { task, attempt, offset } : null;
  }

  async follow(since: number, signal: AbortSignal, opened: () => void, take: (event: JobEvent) => void): Promise<void> {
    // A browser has six connections to a server. A page that nobody sees holds none of them: it asks now and then.
    const hidden = document.hidden;
    for (;;) {
      const response = await this._fetch(this.url('events', { since, follow: hidden ? null : 1 }), { signal });
      opened();
      await readLines(response, value => {
        const event = value as JobEvent & { problem?: { status: number; code: string; detail: string } };
        if (event.problem) {
          throw new ApiError(event.problem.status, event.problem.code, event.problem.detail);
        }
        since = event.seq;
        take(event);
      });
      if (!hidden) {
        return;
      }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, POLL_MILLISECONDS);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          reject(new DOMException('aborted', 'AbortError'));
        });
      });
    }
  }

  /** Read the log of all tasks, after a cursor or from the last lines on. */
  async mergedLog(
    id: string,
    from: { cursor?: string | null; tail?: number | null; line?: ILogLine | null; follow?: boolean },
    signal: AbortSignal,
    take: (frame: IFrame) => void
  ): Promise<void> {
    const { cursor, tail, line } = from;
    const near = line && !cursor ? { at: `${line.task}:${line.offset}`, attempt: line.attempt } : {};
    const query = { cursor, tail: cursor ? null : tail, ...near, follow: from.follow ? 1 : null };
    const response = await this._fetch(this.url(`jobs/${encodeURIComponent(id)}/logs`, query), { signal });
    await readLines(response, value => {
      const frame = value as IFrame & { problem?: { status: number; code: string; detail: string } };
      if (frame.problem) {
        throw new ApiError(frame.problem.status, frame.problem.code, frame.problem.detail);
      }
      take(frame);
    });
  }

  /** Read one task's log, from a place or from the last lines on; `take` gets where each text begins and ends. */
  async taskLog(
    id: string,
    task: string,
    from: { place?: IPlace | null; tail?: number | null; follow?: boolean },
    signal: AbortSignal,
    take: (text: string, begin: number, end: IPlace) => void,
    opened: (start: number) => void
  ): Promise<void> {
    const { place, tail } = from;
    const query = { task, tail: place ? null : tail, ...(place ?? {}), follow: from.follow ? 1 : null };
    const response = await this._fetch(this.url(`jobs/${encodeURIComponent(id)}/logs`, query), { signal });
    const start = Number(response.headers.get('X-Log-Offset') ?? 0);
    const now = { attempt: Number(response.headers.get('X-Log-Attempt') ?? 0), offset: start };
    opened(start);
    const decoder = new TextDecoder();
    let read = start;
    await readChunks(response, chunk => {
      read += chunk.length;
      const begin = now.offset;
      now.offset = read - halfCharacter(chunk);
      take(decoder.decode(chunk, { stream: true }), begin, { ...now });
    });
  }

  /** Read a text, such as the job document. */
  async text(url: string): Promise<string> {
    return (await this._fetch(url, {})).text();
  }

  /** Ask for a resource and read the answer; for parts of the front end that have addresses of their own. */
  async ask<T>(path: string, method = 'GET', body?: unknown, query: Record<string, string> = {}): Promise<T> {
    return this._json(this.url(path, query), method, body);
  }

  private async _json<T>(url: string, method = 'GET', body?: unknown): Promise<T> {
    const init: RequestInit = { method };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
    }
    const response = await this._fetch(url, init);
    return (response.status === 204 ? null : await response.json()) as T;
  }

  private async _fetch(url: string, init: RequestInit): Promise<Response> {
    const response = await ServerConnection.makeRequest(url, init, this.settings);
    const date = Date.parse(response.headers.get('Date') ?? '');
    if (!Number.isNaN(date)) {
      const skew = date + 500 - Date.now();
      this.skew = Math.abs(skew) > 2000 ? skew : 0; // The header tells whole seconds.
    }
    if (!response.ok) {
      throw await problem(response);
    }
    return response;
  }
}

/** An id for a request, so that one sent twice is done once; `crypto.randomUUID` needs HTTPS. */
export function requestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

async function problem(response: Response): Promise<ApiError> {
  if ((response.headers.get('Content-Type') ?? '').includes('problem+json')) {
    const found = (await response.json()) as Record<string, string> & { problems?: IProblem[] };
    const said = found.title ?? found.detail ?? '';
    return new ApiError(response.status, found.code ?? 'problem', said, found.hint ?? '', found.problems ?? []);
  }
  return new ApiError(response.status, '', `${response.status} ${response.statusText}`);
}

const SLICE_MILLISECONDS = 40;
/** What came while the page was busy is one large chunk; it is taken in pieces. */
const PIECE_BYTES = 64 * 1024;

/** Let the page do what waits; a timer would let it wait 4 ms more each time. */
function breathe(): Promise<void> {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Read a body piece by piece; let the page breathe when the stream is faster than it. */
async function readChunks(response: Response, take: (chunk: Uint8Array) => void): Promise<void> {
  const reader = response.body?.getReader();
  if (!reader) {
    return;
  }
  let began = performance.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      for (let start = 0; start < value.length; start += PIECE_BYTES) {
        take(value.subarray(start, start + PIECE_BYTES));
        if (performance.now() - began > SLICE_MILLISECONDS) {
          await breathe();
          began = performance.now();
        }
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** How many bytes at the end are of a character that goes on after them; the decoder holds them back. */
function halfCharacter(chunk: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, chunk.length); back += 1) {
    const byte = chunk[chunk.length - back];
    if ((byte & 0xc0) !== 0x80) {
      const width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return width > back ? back : 0;
    }
  }
  return 0;
}

const NEWLINE = 10;

/** Read JSON objects, one a line; blank lines keep the connection alive. Lines are found as bytes, decoded once. */
async function readLines(response: Response, take: (value: unknown) => void): Promise<void> {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  await readChunks(response, chunk => {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end);
      const line = decoder.decode(parts.length ? joined([...parts, last]) : last);
      parts = [];
      start = end + 1;
      if (line) {
        take(JSON.parse(line));
      }
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start));
    }
  });
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
