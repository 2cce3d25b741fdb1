// The page of `gpu-binpacker report --html`: of a small cluster whose figures are
// known, and of one with as many nodes as Kubernetes supports.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, fits, follows, reachable, squares } from './checks.js';
import { launch, open, root, screenshot, views } from './chromium.js';
import { largeCluster } from './cluster.js';

const pages = path.join(root, 'bin', 'browser');

// report runs the command on a state file, and returns the page's path and what the
// same command says as JSON.
function report(name, state) {
  const html = path.join(pages, `${name}.html`);
  mkdirSync(pages, { recursive: true });
  const args = ['report', '--state', state, '--html', html, '-o', 'json'];
  const json = execFileSync(path.join(root, 'bin', 'gpu-binpacker'), args, { maxBuffer: 1 << 28 });
  return { html, json: JSON.parse(json) };
}

// drawings is what each node map of the page shows.
function drawings(page) {
  return page.evaluate(() => [...document.querySelectorAll('section')].map((section) => ({
    title: section.querySelector('h2').textContent,
    labels: [...section.querySelectorAll('[role=img]')].map((e) => e.getAttribute('aria-label')),
    nodes: section.querySelectorAll('.map > i').length,
    seen: [...section.querySelectorAll('.map > i')].filter((e) => e.clientWidth > 0 && e.clientHeight > 0).length,
    removable: section.querySelectorAll('.map > i.gone').length,
    used: [...section.querySelectorAll('.map > i')].reduce((sum, e) => sum + Number(e.style.getPropertyValue('--u')), 0),
    names: new Set([...section.querySelectorAll('.map > i')].map((e) => e.title.split(':')[0])).size,
  })));
}

// figure is the row of a table, without the commas of thousands.
async function figure(page, label) {
  const cells = await page.locator('tr', { has: page.locator(`th:text-is("${label}")`) }).locator('td').allTextContents();
  return cells.map((text) => Number(text.replaceAll(',', '')));
}

// figuresOf compares the page's figures and drawings with the report as JSON.
async function figuresOf(page, json) {
  const of = (pick) => json.scenarios.map((s) => pick(s.figures));
  assert.deepEqual(await figure(page, 'nodes'), of((f) => f.nodes));
  assert.deepEqual(await figure(page, 'occupied by GPU pods'), of((f) => f.occupied));
  assert.deepEqual(await figure(page, 'removable: only DaemonSet pods'), of((f) => f.removable));
  assert.deepEqual(await figure(page, 'GPUs stranded on occupied nodes'), of((f) => f.resources[0].stranded));
  const maps = await drawings(page);
  assert.deepEqual(maps.map((m) => m.title), json.scenarios.map((s) => s.title));
  for (const [i, map] of maps.entries()) {
    const { nodes: want, figures } = json.scenarios[i];
    const used = want.reduce((sum, n) => sum + n.gpus[0].allocated, 0);
    assert.deepEqual([map.nodes, map.seen, map.names, map.used], [want.length, want.length, want.length, used], map.title);
    assert.equal(map.removable, figures.removable, map.title);
    assert.ok(map.labels.length > 0 && map.labels.every(Boolean), `${map.title} has no text alternative`);
  }
}

let browser;
let small;
let large;

before(async () => {
  browser = await launch();
  small = report('report', path.join(root, 'cli', 'testdata', 'explain', 'cluster.yaml'));
  const state = path.join(pages, 'large.yaml');
  writeFileSync(state, JSON.stringify(largeCluster(5000)));
  large = report('report-large', state);
});

after(() => browser?.close());

for (const view of Object.keys(views)) {
  test(`report, ${view}`, async () => {
    const page = await open(browser, small.html, view);
    assert.equal(await page.title(), 'GPU bin-packing: a simulation');
    // 7 of the 8 nodes have GPUs; pods are on gpu-1, gpu-2, gpu-3 and gpu-5.
    assert.match(await page.locator('main > p').first().textContent(), /^GPU pods are on 4 of 7 nodes\./);
    await figuresOf(page, small.json);
    assert.equal(await page.locator('.legend li').count(), 4);
    await follows(page, view);
    await fits(page);
    await screenshot(page, `report-${view}`, { fullPage: true });

    const closed = await reachable(page);
    assert.ok(closed.includes('summary'), 'the table of all nodes cannot be opened with the keyboard');
    await page.locator('summary').press('Enter');
    assert.equal((await reachable(page)).length, closed.length + 1, 'the opened table cannot be reached');
    assert.equal(await page.locator('details tbody tr').count(), 7);
    await fits(page);
    const passed = await accessible(page);
    for (const rule of ['color-contrast', 'role-img-alt', 'document-title', 'html-has-lang']) {
      assert.ok(passed.has(rule), `axe-core found nothing to check for ${rule}`);
    }
    assert.deepEqual(page.troubles, []);
    await page.end();
  });
}

// The squares are a background: what is drawn is only known from the screen.
for (const view of ['desktop-light', 'desktop-dark']) {
  test(`report, squares, ${view}`, async () => {
    const page = await open(browser, small.html, view);
    const [used, free] = await page.evaluate(() => ['--used', '--free'].map((name) => {
      const probe = document.body.appendChild(document.createElement('p'));
      probe.style.color = `var(${name})`;
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    }));
    const section = page.locator('section').first();
    for (const [node, want] of [['gpu-1: 6 of 8', [6, 2]], ['gpu-3: 1 of 8', [1, 7]], ['gpu-5: 8 of 8', [8, 0]]]) {
      assert.deepEqual(await squares(page, section.locator(`i[title^="${node}"]`), [used, free]), want, node);
    }
    await page.end();
  });
}

for (const view of ['desktop-light', 'phone-dark']) {
  test(`report of 5,000 nodes, ${view}`, async (t) => {
    const start = performance.now();
    const page = await open(browser, large.html, view);
    await screenshot(page, `report-large-${view}`);
    const seconds = (performance.now() - start) / 1000;
    t.diagnostic(`opened and drawn in ${seconds.toFixed(1)} s`);
    assert.ok(seconds < 60, `opened and drawn in ${seconds} s`);
    await figuresOf(page, large.json);
    await fits(page);
    assert.deepEqual(page.troubles, []);
    await page.end();
  });
}
