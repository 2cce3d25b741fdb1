// What the demo writes: its page, as in test/demo/testdata, and the README's picture.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, contrast, fits, follows, reachable } from './checks.js';
import { launch, open, root, screenshot, views } from './chromium.js';

const html = path.join(root, 'test', 'demo', 'testdata', 'demo.html');
const svg = path.join(root, 'docs', 'images', 'demo.svg');

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const view of Object.keys(views)) {
  test(`demo, ${view}`, async () => {
    const page = await open(browser, html, view);
    assert.equal(await page.title(), 'gpu-binpacker: where the pods went');
    const tables = await page.locator('table').evaluateAll((list) => list.map((table) => ({
      caption: table.caption.textContent,
      nodes: table.rows.length,
      used: table.querySelectorAll('i.used').length,
      free: table.querySelectorAll('i:not(.used)').length,
      labels: [...table.querySelectorAll('[role=img]')].map((e) => e.getAttribute('aria-label')),
    })));
    // 64 pods on 16 nodes with 8 GPUs, then the 56 that are left.
    assert.deepEqual(tables.map((t) => [t.caption, t.nodes, t.used, t.free]), [
      ['without: 16 nodes used', 16, 64, 64],
      ['with gpu-binpacker: 8 nodes used', 16, 64, 64],
      ['after the pods of one node ended: 7 nodes used', 16, 56, 72],
    ]);
    assert.equal(tables[0].labels[0], '4 of 8 GPUs in use');
    assert.equal(tables[1].labels[0], '8 of 8 GPUs in use');
    assert.deepEqual(await reachable(page), [], 'the page has nothing to use');
    await follows(page, view);
    await fits(page);
    await screenshot(page, `demo-${view}`, { fullPage: true });
    const passed = await accessible(page);
    assert.ok(passed.has('color-contrast') && passed.has('role-img-alt'));
    assert.deepEqual(page.troubles, []);
    await page.end();
  });

  // As wide as the text around it at most, as in the README on GitHub.
  test(`picture of the demo, ${view}`, async () => {
    const inline = path.join(root, 'bin', 'browser', 'picture.html');
    mkdirSync(path.dirname(inline), { recursive: true });
    writeFileSync(inline, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <title>picture</title><style>svg { max-width: 100%; height: auto }</style><main><h1>Picture</h1>${readFileSync(svg, 'utf8')}</main>`);
    const page = await open(browser, inline, view);
    await fits(page);
    const passed = await accessible(page);
    assert.ok(passed.has('svg-img-alt'), 'the picture has no text alternative');
    assert.deepEqual(page.troubles, []);
    await page.end();
  });
}

test('picture of the demo by itself', async () => {
  const page = await open(browser, svg, 'desktop-dark');
  const picture = await page.evaluate(() => {
    const box = document.documentElement.getBoundingClientRect();
    const { width, height } = box;
    const texts = [...document.querySelectorAll('text')];
    const boxes = texts.map((e) => e.getBoundingClientRect());
    return {
      clip: { x: 0, y: 0, width, height },
      title: document.title,
      texts: texts.map((e) => e.textContent),
      colours: texts.map((e) => e.getAttribute('fill')),
      outside: boxes.filter((b) => b.left < box.left || b.right > box.right || b.top < box.top || b.bottom > box.bottom).length,
      overlaps: boxes.filter((a, i) => boxes.some((b, j) => j > i && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length,
      squares: [...document.querySelectorAll('rect')].map((e) => [e.getAttribute('fill'), e.getAttribute('stroke')]),
    };
  });
  const [[canvas], ...squares] = picture.squares;
  const used = squares.filter(([fill]) => fill === squares[0][0]);
  const free = squares.filter(([fill]) => fill !== squares[0][0]);
  // Two columns of 16 nodes with 8 GPUs for 64 pods, and one of each in the legend.
  assert.deepEqual([used.length, free.length], [2 * 64 + 1, 2 * 64 + 1]);
  assert.ok(picture.texts.includes('GPU in use') && picture.texts.some((text) => text.startsWith('free GPU')), 'no legend');
  assert.ok(picture.title.includes('16 nodes used without, 8 with gpu-binpacker'), picture.title);
  assert.deepEqual([picture.outside, picture.overlaps], [0, 0], 'text outside of the picture, or on other text');
  for (const colour of picture.colours) assert.ok(contrast(colour, canvas) >= 4.5, `text ${colour} on ${canvas}`);
  for (const [a, b] of [[used[0][0], free[0][0]], [used[0][0], canvas], [free[0][1], canvas]]) {
    assert.ok(contrast(a, b) >= 3, `${a} beside ${b}`);
  }
  await screenshot(page, 'picture', { clip: picture.clip });
  assert.deepEqual(page.troubles, []);
  await page.end();
});

// The README's text alternative says what the picture shows.
test('text alternative in the README', () => {
  const [, alternative] = readFileSync(path.join(root, 'README.md'), 'utf8').match(/!\[([^\]]*)\]\(docs\/images\/demo\.svg\)/);
  for (const words of ['64 pods', '16 nodes', '8 GPUs']) assert.ok(alternative.includes(words), `${words} is not in: ${alternative}`);
});
