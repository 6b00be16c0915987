import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ApiError, IGroupView, IJob, IPage, JobEvent, JobState } from '../model';
import { backOff, IChange, ISource, JobStore } from '../store';

function job(id: string, state: JobState = 'running', submittedAt = '2026-01-01T00:00:00.000Z'): IJob {
  return { id, name: `${id}-abc`, state, submittedAt, roles: {}, metrics: {} } as unknown as IJob;
}

/** A job server under the test's control: each `follow` waits until the test ends it. */
class Server implements ISource {
  jobs: IJob[] = [];
  held: IGroupView[] = [];
  seq = 100;
  asked: string[] = [];
  take: (event: JobEvent) => void = () => undefined;
  end: () => void = () => undefined;
  fail: (error: unknown) => void = () => undefined;
  refuse: unknown[] = [];
  answer: () => Promise<void> = () => Promise.resolve();

  list(): Promise<IPage> {
    this.asked.push('list');
    const refused = this.refuse.shift();
    return refused ? Promise.reject(refused) : Promise.resolve({ jobs: [...this.jobs], next: null, seq: this.seq });
  }

  groups(): Promise<IGroupView[]> {
    return Promise.resolve([...this.held]);
  }

  async get(id: string): Promise<IJob> {
    this.asked.push(`get ${id}`);
    const found = this.jobs.find(each => each.id === id);
    await this.answer();
    if (!found) {
      throw new ApiError(404, 'not-found', 'Job is not known.');
    }
    return found;
  }

  follow(since: number, _: AbortSignal, opened: () => void, take: (event: JobEvent) => void): Promise<void> {
    this.asked.push(`follow ${since}`);
    this.take = take;
    return new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
      opened();
    });
  }
}

function started(server: Server): { store: JobStore; pauses: number[] } {
  const pauses: number[] = [];
  const store = new JobStore(server, milliseconds => {
    pauses.push(milliseconds);
    return Promise.resolve();
  });
  store.start();
  return { store, pauses };
}

/** Let everything that waits for an answer have it. */
async function settle(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve));
}

test('one list and one stream, however many look', async () => {
  const server = new Server();
  server.jobs = [job('a')];
  const { store } = started(server);
  store.start();
  await Promise.all([store.want('a'), settle()]);
  await store.want('a');
  assert.deepEqual(
    server.asked.filter(each => !each.startsWith('get')),
    ['list', 'follow 100']
  );
  assert.equal(store.connection, 'live');
  store.dispose();
});

test('events change jobs; the end of one is told once', async () => {
  const server = new Server();
  server.jobs = [job('a')];
  const { store } = started(server);
  await settle();
  const seen: IChange[] = [];
  store.changed.connect((_, change) => seen.push(change));
  server.take({ seq: 101, type: 'job', job: job('a', 'failed') });
  server.take({ seq: 102, type: 'job', job: job('a', 'failed') });
  server.take({ seq: 103, type: 'job', job: job('b', 'succeeded') });
  server.take({ seq: 104, type: 'deleted', id: 'b' });
  assert.deepEqual(
    seen.map(({ id, ended, job: found }) => [id, ended, found?.state ?? null]),
    [
      ['a', true, 'failed'],
      ['a', false, 'failed'],
      ['b', false, 'succeeded'],
      ['b', false, null]
    ]
  );
  assert.equal(store.get('b'), undefined);
  store.dispose();
});

test('a stream that ends is followed again after the last event', async () => {
  const server = new Server();
  const { store } = started(server);
  await settle();
  server.take({ seq: 107, type: 'job', job: job('a') });
  server.end();
  await settle();
  assert.deepEqual(server.asked, ['list', 'follow 100', 'follow 107']);
  store.dispose();
});

test('410: the list is read again, and what is gone from it is gone', async () => {
  const server = new Server();
  server.jobs = [job('a'), job('b')];
  const { store } = started(server);
  await settle();
  server.jobs = [job('a', 'succeeded')];
  server.seq = 500;
  server.fail(new ApiError(410, 'events-gone', 'Events are no longer kept.'));
  await settle();
  assert.deepEqual(server.asked, ['list', 'follow 100', 'list', 'follow 500']);
  assert.equal(store.get('a')?.state, 'succeeded');
  assert.equal(store.get('b'), undefined);
  store.dispose();
});

test('a server that is away is tried again, later and later, and said', async () => {
  const server = new Server();
  server.refuse = Array.from({ length: 5 }, () => new TypeError('network'));
  const { store, pauses } = started(server);
  const said: string[] = [];
  store.connectionChanged.connect((_, connection) => said.push(connection));
  await settle();
  await settle();
  assert.deepEqual(said, ['lost', 'live']);
  assert.equal(pauses.length, 5);
  assert.ok(pauses[4] > pauses[0] * 2);
  store.dispose();
});

test('a server without our part is told apart from a job that is gone', async () => {
  const server = new Server();
  server.refuse = [new ApiError(404, '', '404 Not Found')];
  const { store } = started(server);
  const said: string[] = [];
  store.connectionChanged.connect((_, connection) => said.push(connection));
  await settle();
  assert.equal(said[0], 'missing');
  await assert.rejects(store.want('nobody'), /not known/);
  store.dispose();
});

test('an event that comes while a job is asked for is newer than the answer', async () => {
  const server = new Server();
  const { store } = started(server);
  await settle();
  server.jobs = [job('a', 'running')];
  let release: () => void = () => undefined;
  server.answer = () => new Promise(resolve => (release = resolve));
  const wanted = store.want('a');
  await settle();
  server.take({ seq: 101, type: 'job', job: job('a', 'succeeded') });
  release();
  assert.equal((await wanted).state, 'succeeded');
  assert.equal(store.get('a')?.state, 'succeeded');
  store.dispose();
});

test('latest first, and counted', async () => {
  const server = new Server();
  server.jobs = [
    job('a', 'running', '2026-01-01'),
    job('b', 'waiting', '2026-03-01'),
    job('c', 'failed', '2026-02-01')
  ];
  const { store } = started(server);
  await settle();
  assert.deepEqual(
    store.jobs().map(({ id }) => id),
    ['b', 'c', 'a']
  );
  assert.deepEqual(store.counts(), { waiting: 1, running: 1 });
  store.dispose();
});

test('pauses grow to half a minute and are spread', () => {
  assert.equal(
    backOff(0, () => 1),
    500
  );
  assert.equal(
    backOff(50, () => 1),
    30_000
  );
  assert.equal(
    backOff(50, () => 0),
    15_000
  );
});

function group(id: string, state: JobState, counts: IGroupView['counts']): IGroupView {
  return { id, name: id, state, counts, total: 3, submittedAt: '2026-01-02T00:00:00.000Z' } as unknown as IGroupView;
}

test('groups are listed, follow their events, and count their jobs once', async () => {
  const server = new Server();
  server.held = [group('g', 'running', { running: 1, waiting: 2 })];
  server.jobs = [job('alone')];
  const { store } = started(server);
  await settle();
  const member = { ...job('m'), group: { id: 'g', name: 'g', key: '1' } };
  server.take({ seq: 101, type: 'job', job: member });
  assert.deepEqual(store.counts(), { waiting: 2, running: 2 });
  assert.deepEqual(
    store.members('g').map(each => each.id),
    ['m']
  );
  const ends: boolean[] = [];
  store.groupChanged.connect((_, change) => ends.push(change.ended));
  server.take({ seq: 102, type: 'group', group: group('g', 'succeeded', { succeeded: 3 }) });
  assert.deepEqual(ends, [true]);
  assert.deepEqual(store.counts(), { waiting: 0, running: 1 });
  server.take({ seq: 103, type: 'group-deleted', id: 'g' });
  assert.equal(store.group('g'), undefined);
  assert.equal(store.get('m'), undefined);
});
