// Opens files in headless Chromium, in each of the views that a page must be good
// in, and collects what a page must not do: report errors and load anything.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const screenshots = path.join(root, 'bin', 'reports', 'browser');

const desktop = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

// views are the options of a browser context, by name.
export const views = {
  'desktop-light': { ...desktop, colorScheme: 'light' },
  'desktop-dark': { ...desktop, colorScheme: 'dark' },
  'phone-light': { ...phone, colorScheme: 'light' },
  'phone-dark': { ...phone, colorScheme: 'dark' },
};

// launch starts the browser that CHROMIUM names. Its sandbox is off: it does not
// work for root, and the pages are our own.
export function launch() {
  const executablePath = process.env.CHROMIUM;
  if (!executablePath) {
    throw new Error('CHROMIUM is not set: run make test-browser, or set it to the path of a Chromium');
  }
  return chromium.launch({ executablePath, chromiumSandbox: false });
}

// open opens a file in a view. The page's `troubles` become the errors that it
// reports and whatever it loads besides itself; `close` closes it.
export async function open(browser, file, view) {
  const context = await browser.newContext(views[view]);
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  page.troubles = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.troubles.push(message.text());
  });
  page.on('pageerror', (error) => page.troubles.push(String(error)));
  page.on('request', (request) => {
    if (request.url() !== url) page.troubles.push(`loads ${request.url()}`);
  });
  await page.goto(url, { waitUntil: 'load' });
  page.end = () => context.close();
  return page;
}

// screenshot saves what is seen, as bin/reports/browser/NAME.png.
export async function screenshot(page, name, options = {}) {
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: path.join(screenshots, `${name}.png`), ...options });
}
