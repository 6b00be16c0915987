import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LINK } from '../ids';
import { lineText, linkTo, readLine, readLink, withoutLink } from '../linelinks';

const line = { task: 'my-worker-12', attempt: 1, offset: 9_007_199_254 };

test('a link leads back to its line', () => {
  for (const shown of ['', 'my-worker-12']) {
    const link = linkTo('http://host/user/x/lab', 'abc123', shown, line);
    const url = new URL(link);
    assert.equal(url.pathname, '/user/x/lab');
    assert.match(url.search, LINK);
    assert.deepEqual(readLink(url.search), { id: 'abc123', task: shown, line });
    assert.equal(withoutLink(url.search), '');
  }
});

test('what else an address asks for stays', () => {
  assert.equal(withoutLink('?token=x&paijupyter-log=j&paijupyter-line=a-0:0:1&reset'), '?token=x&reset=');
  assert.equal(readLink('?token=x'), null);
});

test('what is no line is none', () => {
  assert.deepEqual(readLine(lineText(line)), line);
  for (const text of ['', 'a-0', 'a-0:1', 'a-0:x:1', 'a-0:1:-1', ':0:0', 'a:b:0:0:', 7, null]) {
    assert.equal(readLine(text), null, String(text));
  }
  assert.deepEqual(readLink('?paijupyter-log=j&paijupyter-line=nonsense'), { id: 'j', task: '', line: null });
});
