// The page of the packing benchmark, drawn from testdata/packing.json: results of
// two workloads on small clusters with node maps, and of one without.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, contrast, fits, follows, reachable } from './checks.js';
import { launch, open, root, screenshot, views } from './chromium.js';

// make test-browser draws it with test/browser/pages.
const html = path.join(root, 'bin', 'browser', 'packing.html');
const results = JSON.parse(readFileSync(new URL('testdata/packing.json', import.meta.url)));

// maps are the results with a node map, in the order of the page: by workload, then
// by system.
const systems = ['default', 'most-allocated', 'plugin', 'ours-1', 'ours-2', 'bound'];
const system = (r) => (r.replicas ? `${r.system}-${r.replicas}` : r.system);
const workloads = [...new Set(results.map((r) => r.workload))];
const ordered = workloads.flatMap((w) => systems.flatMap((s) => results.filter((r) => r.workload === w && system(r) === s)));
const maps = ordered.filter((r) => r.nodeUse);

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const view of Object.keys(views)) {
  test(`packing, ${view}`, async () => {
    const page = await open(browser, html, view);
    assert.equal(await page.title(), 'Packing of GPU pods, side by side');
    assert.equal(await page.locator('h2').count(), workloads.length);

    const figures = await page.locator('.figures').allTextContents();
    assert.deepEqual(figures, ordered.map((r) => `${r.gpusOnOccupiedNodes} GPUs on ${r.occupiedNodes} nodes`
      + (r.unplaced8Gpu ? `; pods of 8 GPUs that found no node: ${r.unplaced8Gpu}` : '')));

    const drawn = await page.locator('.nodes').evaluateAll((list) => list.map((map) => ({
      label: map.getAttribute('aria-label'),
      nodes: [...map.querySelectorAll('.node')].map((n) => [n.querySelectorAll('i').length, n.querySelectorAll('i.used').length]),
      seen: [...map.querySelectorAll('i')].every((i) => i.clientWidth > 0 && i.clientHeight > 0),
    })));
    assert.equal(drawn.length, maps.length);
    for (const [i, map] of drawn.entries()) {
      assert.deepEqual(map.nodes, maps[i].nodeUse);
      assert.ok(map.seen, 'a GPU is not seen');
      assert.match(map.label, new RegExp(`^Drawing of ${maps[i].nodes} nodes, ${maps[i].occupiedNodes} with GPUs in use`));
    }
    await bars(page);
    await colours(page);

    assert.equal(await page.locator('.legend li').count(), 4);
    assert.deepEqual(await reachable(page), [], 'the page has nothing to use');
    await follows(page, view);
    await fits(page);
    await screenshot(page, `packing-${view}`, { fullPage: true });
    const passed = await accessible(page);
    assert.ok(passed.has('color-contrast') && passed.has('role-img-alt'));
    assert.deepEqual(page.troubles, []);
    await page.end();
  });
}

// bars: lengths are in the proportion of the GPUs, within 2 pixels.
async function bars(page) {
  const drawn = await page.locator('.row .bar').evaluateAll((list) => list.map((bar) => [bar.offsetWidth, bar.parentElement.clientWidth]));
  assert.equal(drawn.length, ordered.length);
  for (const [i, [width, track]] of drawn.entries()) {
    const worst = Math.max(...results.filter((r) => r.workload === ordered[i].workload).map((r) => r.gpusOnOccupiedNodes));
    const want = track * ordered[i].gpusOnOccupiedNodes / worst;
    assert.ok(track >= 100 && Math.abs(width - want) <= 2, `bar ${i} has ${width} of ${track} pixels, not ${want}`);
  }
}

// colours: used, free, bars and edges differ enough for graphics (WCAG 2.2: 3).
async function colours(page) {
  const colour = (selector, property) => page.locator(selector).first().evaluate((e, property) => getComputedStyle(e)[property], property);
  const back = await colour('body', 'backgroundColor');
  const used = await colour('.nodes i.used', 'backgroundColor');
  const free = await colour('.nodes i:not(.used)', 'backgroundColor');
  assert.ok(contrast(used, free) >= 3, `in use ${used}, free ${free}`);
  for (const [selector, property] of [['.nodes .node', 'borderTopColor'], ['.default .bar', 'backgroundColor'], ['.ours-1 .bar', 'backgroundColor'], ['.bound .bar', 'borderTopColor']]) {
    const seen = await colour(`main ${selector}`, property);
    assert.ok(contrast(seen, back) >= 3, `${selector} ${seen} on ${back}`);
  }
}
