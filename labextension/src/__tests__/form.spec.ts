import assert from 'node:assert/strict';
import test from 'node:test';

import { IEdited, IOperation } from '../formapi';
import { escaped, FormDocument, removing, setting, valueAt } from '../formdocument';
import { authOf, imageIndex, settingAuth, settingImage } from '../formimage';
import { again, begin } from '../formstart';
import { ApiError } from '../model';
import { Planner } from '../planner';

/** A server whose documents are JSON, and whose edits wait until they are let go. */
class Server {
  readonly asked: IOperation[][] = [];

  async edit(text: string, patch: IOperation[]): Promise<IEdited> {
    this.asked.push(patch);
    await new Promise(resolve => setImmediate(resolve));
    let values: Record<string, unknown>;
    try {
      values = JSON.parse(text) as Record<string, unknown>;
    } catch {
      const problem = { severity: 'error' as const, code: 'not-yaml', message: 'no', line: 1 };
      throw new ApiError(422, 'invalid-document', 'no', '', [problem]);
    }
    for (const each of patch) {
      if (each.value === 'refused') {
        throw new ApiError(422, 'usage', 'refused');
      }
      values[each.path.slice(1)] = each.value;
    }
    return { text: JSON.stringify(values), values, problems: [] };
  }
}

test('edits are made one after the other, those that wait together', async () => {
  const server = new Server();
  const document = new FormDocument(server, '{}');
  void document.apply({ op: 'add', path: '/a', value: 1 });
  void document.apply({ op: 'add', path: '/b', value: 2 });
  await document.apply({ op: 'add', path: '/c', value: 3 });
  assert.equal(document.text, '{"a":1,"b":2,"c":3}');
  assert.deepEqual(
    server.asked.map(each => each.length),
    [1, 2]
  );
});

test('a text that cannot be read stays as it is, with its problems; the values are the last that could be', async () => {
  const document = new FormDocument(new Server(), '{"a":1}');
  await document.read();
  await document.setText('{"a":');
  assert.equal(document.text, '{"a":');
  assert.equal(document.broken, true);
  assert.equal(document.problems[0].line, 1);
  assert.deepEqual(document.values, { a: 1 });
  await document.undo();
  assert.equal(document.text, '{"a":1}');
  assert.equal(document.broken, false);
});

test('an edit that is refused changes nothing and is said', async () => {
  const document = new FormDocument(new Server(), '{"a":1}');
  const said: unknown[] = [];
  document.refused.connect((_, error) => said.push(error));
  await document.read();
  await document.apply({ op: 'replace', path: '/a', value: 'refused' });
  assert.equal(document.text, '{"a":1}');
  assert.equal(said.length, 1);
  assert.equal(document.canUndo, false);
});

test('every change can be taken back', async () => {
  const document = new FormDocument(new Server(), '{}');
  await document.read();
  assert.equal(document.canUndo, false);
  await document.apply({ op: 'add', path: '/a', value: 1 });
  await document.setText('{"b":2}');
  await document.undo();
  assert.equal(document.text, '{"a":1}');
  await document.undo();
  assert.equal(document.text, '{}');
  assert.equal(document.canUndo, false);
});

test('what lies in our extras gets their version', async () => {
  const server = new Server();
  const document = new FormDocument(server, '{}');
  await document.read();
  await document.apply({ op: 'add', path: '/extras/paijupyter/env/A', value: 'b' });
  assert.deepEqual(
    server.asked[1].map(each => each.path),
    ['/extras/paijupyter/version', '/extras/paijupyter/env/A']
  );
});

test('places are found whatever the keys hold', () => {
  const values = { a: { 'b/c~d': [1, { e: null }] } };
  assert.equal(valueAt(values, `/a/${escaped('b/c~d')}/0`), 1);
  assert.equal(valueAt(values, '/a/b~1c~0d/1/e'), null);
  assert.equal(valueAt(values, '/a/toString'), undefined);
  assert.deepEqual(setting(values, '/a', undefined), [{ op: 'remove', path: '/a' }]);
  assert.deepEqual(setting(values, '/z', undefined), []);
  assert.deepEqual(setting(values, '/z', 1), [{ op: 'add', path: '/z', value: 1 }]);
});

test('what is taken out leaves nothing empty around it, but for the outermost part', () => {
  const values = { extras: { hived: { roles: { a: { sku: 1 } } }, tags: ['x'] }, parameters: { lr: 1 } };
  assert.deepEqual(removing(values, '/extras/hived/roles/a/sku'), [{ op: 'remove', path: '/extras/hived' }]);
  assert.deepEqual(removing(values, '/extras/tags/0'), [{ op: 'remove', path: '/extras/tags' }]);
  assert.deepEqual(removing(values, '/parameters/lr'), [{ op: 'remove', path: '/parameters/lr' }]);
});

test('a form that comes back has what it had: place, copy of which job, references, never the page', async () => {
  const api = {} as never;
  const given = { notebook: 'a/b.ipynb', kernelspec: 'python3', page: 'p' };
  const start = await begin(
    { ...given, document: 'x', clones: 'j-1', package: 'sha', data: { d: 'sha' }, secrets: { A: 'ask' } },
    api,
    () => Promise.reject(new Error('no'))
  );
  const kept = again(given, start, { document: 'y', profile: 'pai', secrets: { A: 'keyring:A' }, unsaved: true });
  const back = await begin({ ...kept, page: 'p' }, api, () => Promise.reject(new Error('no')));
  assert.deepEqual(back, {
    ...start,
    document: 'y',
    profile: 'pai',
    secrets: { A: 'keyring:A' },
    unsaved: true
  });
  assert.equal('page' in kept, false);
});

const IMAGES = {
  prerequisites: [
    { name: 'data', type: 'data' },
    { name: 'image', type: 'dockerimage', uri: 'one' }
  ],
  taskRoles: { worker: { dockerImage: 'image' }, ps: { dockerImage: 'image' } }
};

test('a role that shares its image gets one of its own; the other keeps it', () => {
  const patch = settingImage(IMAGES, 'ps', 'two', 'standard');
  assert.deepEqual(
    patch.map(each => [each.op, each.path]),
    [
      ['add', '/prerequisites/-'],
      ['replace', '/taskRoles/ps/dockerImage']
    ]
  );
  assert.equal((patch[0].value as { uri: string }).uri, 'two');
  assert.equal(imageIndex(IMAGES, 'worker'), 1);
  const alone = { ...IMAGES, taskRoles: { worker: { dockerImage: 'image' } } };
  assert.deepEqual(settingImage(alone, 'worker', 'two', 's'), [
    { op: 'replace', path: '/prerequisites/1/uri', value: 'two' }
  ]);
});

test('the password of a registry is only ever the name of a secret', () => {
  const auth = { username: 'me', registryuri: 'docker.io', secret: 'REGISTRY' };
  const patch = settingAuth(IMAGES, 1, auth);
  assert.deepEqual(patch, [
    {
      op: 'replace',
      path: '/prerequisites/1/auth',
      value: { username: 'me', password: '<% $secrets.REGISTRY %>', registryuri: 'docker.io' }
    },
    { op: 'add', path: '/secrets/REGISTRY', value: '' }
  ]);
  const there = { prerequisites: [{ auth: patch[0].value }] };
  assert.deepEqual(authOf(there, 0), auth);
  const clear = { username: '', registryuri: '', secret: '' };
  assert.deepEqual(settingAuth(there, 0, clear), [{ op: 'remove', path: '/prerequisites/0/auth' }]);
});

test('many changes are one question, and an old answer is dropped', async () => {
  const answers: (() => void)[] = [];
  const taken: string[] = [];
  let now = 'a';
  const planner = new Planner<string, string>(
    () => Promise.resolve(now),
    question => new Promise(resolve => answers.push(() => resolve(question))),
    answer => taken.push(String(answer)),
    0
  );
  const asked = async (count: number): Promise<void> => {
    while (answers.length < count) {
      await new Promise(resolve => setTimeout(resolve));
    }
  };
  planner.later();
  planner.later();
  await asked(1);
  now = 'b';
  planner.later();
  assert.equal(planner.stale, true);
  await asked(2);
  answers[1]();
  answers[0]();
  while (planner.stale) {
    await new Promise(resolve => setTimeout(resolve));
  }
  await new Promise(resolve => setTimeout(resolve));
  assert.deepEqual(taken, ['b']);
});
