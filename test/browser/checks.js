// What holds for every page: it fits, can be read, and works from the keyboard.

import assert from 'node:assert/strict';
import axe from 'axe-core';

// fits: nothing is wider than the window, so that no page scrolls sideways.
export async function fits(page) {
  const { width } = page.viewportSize();
  const wide = await page.evaluate((width) => {
    const inScrollRegion = (element) => element.parentElement?.closest('.scroll');
    const seen = [...document.body.querySelectorAll('*')].filter((e) => !inScrollRegion(e) && e.getBoundingClientRect().right > width + 0.5);
    return { scrollWidth: document.documentElement.scrollWidth, first: seen[0]?.outerHTML.slice(0, 200) };
  }, width);
  assert.ok(wide.scrollWidth <= width, `the page is ${wide.scrollWidth} pixels wide, the window ${width}`);
  assert.equal(wide.first, undefined, 'an element is wider than the window');
}

// accessible: no violation that axe-core calls serious or critical. Contrast of
// text and text alternatives are among its rules.
export async function accessible(page, options = {}) {
  await page.evaluate(axe.source);
  const result = await page.evaluate((options) => globalThis.axe.run(document, options), options);
  const severe = result.violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(severe.map((v) => `${v.id}: ${v.nodes[0].html}: ${v.nodes[0].failureSummary}`), []);
  return new Set(result.passes.map((rule) => rule.id));
}

// follows: the page follows the wish for light or dark.
export async function follows(page, view) {
  const [text, back] = await page.evaluate(() => {
    const style = getComputedStyle(document.body);
    return [style.color, style.backgroundColor];
  });
  const lighter = luminance(back) > luminance(text);
  assert.equal(lighter, view.endsWith('light'), `text ${text} on ${back}`);
}

// reachable: Tab comes to all that can be used, in the order of the page, and shows
// where it is; returns the names of the elements it came to.
export async function reachable(page) {
  const want = await page.evaluate(() => {
    const usable = 'a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex="-1"])';
    globalThis.usable = [...document.querySelectorAll(usable)].filter((e) => e.checkVisibility());
    // Tab goes on from where the focus was, so it is put before all that.
    const start = document.createElement('span');
    start.tabIndex = -1;
    document.body.prepend(start);
    start.focus();
    start.remove();
    return globalThis.usable.map((e) => e.localName);
  });
  for (const [i, name] of want.entries()) {
    await page.keyboard.press('Tab');
    const focus = await page.evaluate(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return { at: globalThis.usable.indexOf(document.activeElement), outlineStyle, outlineWidth };
    });
    assert.equal(focus.at, i, `Tab ${i + 1} does not come to the ${name}`);
    assert.ok(focus.outlineStyle !== 'none' && parseFloat(focus.outlineWidth) >= 2, `focus is not seen on the ${name}`);
  }
  return want;
}

// squares counts the squares of the colours in the middle row of a drawing, as they
// are on the screen.
export async function squares(page, locator, colours) {
  const png = (await locator.screenshot()).toString('base64');
  const reader = await page.context().newPage();
  const counts = await reader.evaluate(async ({ png, colours }) => {
    const bytes = Uint8Array.from(atob(png), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    const row = canvas.getImageData(0, Math.floor(image.height / 2), image.width, 1).data;
    const counts = colours.map(() => 0);
    let last = -1;
    for (let x = 0; x < image.width; x++) {
      const pixel = `rgb(${row[4 * x]}, ${row[4 * x + 1]}, ${row[4 * x + 2]})`;
      const now = colours.indexOf(pixel);
      if (now >= 0 && now !== last) counts[now]++;
      last = now;
    }
    return counts;
  }, { png, colours });
  await reader.close();
  return counts;
}

// contrast of two colours, rgb(…) or #rrggbb, as WCAG 2.2 defines it: 1 to 21.
export function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

function luminance(colour) {
  const parts = colour.startsWith('#')
    ? colour.slice(1).match(/../g).map((hex) => parseInt(hex, 16))
    : colour.match(/\d+/g).map(Number);
  assert.ok(parts.length === 3, `not an opaque colour: ${colour}`);
  const [r, g, b] = parts.map((n) => n / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
