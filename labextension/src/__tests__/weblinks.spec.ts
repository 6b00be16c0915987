import assert from 'node:assert/strict';
import { test } from 'node:test';

import { splitAddresses } from '../weblinks';

const addresses = (text: string, isCut = false): string[] =>
  splitAddresses(text, isCut)
    .filter(part => part.isAddress)
    .map(part => part.text);

test('addresses end before what is written around them', () => {
  assert.deepEqual(addresses('View run at https://wandb.ai/me/runs/x?a=1&b=2#top.'), [
    'https://wandb.ai/me/runs/x?a=1&b=2#top'
  ]);
  assert.deepEqual(addresses('(see http://a.example/b), "https://c.example/"'), [
    'http://a.example/b',
    'https://c.example/'
  ]);
});

test('only pages are addresses', () => {
  assert.deepEqual(addresses('file:///etc/passwd javascript:alert(1) ftp://a.example hdfs://host/data https://'), []);
});

test('nothing of a text is lost', () => {
  for (const text of ['', 'plain', 'a https://x.example/y. b', 'https://x.example']) {
    for (const isCut of [false, true]) {
      assert.equal(
        splitAddresses(text, isCut)
          .map(part => part.text)
          .join(''),
        text
      );
    }
  }
});

test('half an address is none', () => {
  assert.deepEqual(addresses('at https://x.example/long.', true), []);
  assert.deepEqual(addresses('at https://x.example/long and on', true), ['https://x.example/long']);
});
