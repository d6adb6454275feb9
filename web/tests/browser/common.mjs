// A real `linerate serve` on loopback and a real Chromium before it, for the tests beside this file.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after } from 'node:test';
import { chromium } from 'playwright-core';

const PROGRAM =
  process.env.LINERATE ?? fileURLToPath(new URL('../../../target/debug/linerate', import.meta.url));
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** The longest wait for anything on the page but a test's own time. */
export const PATIENCE = 20_000;

const folder = mkdtempSync(join(tmpdir(), 'linerate-page-'));
const ends = [() => rmSync(folder, { recursive: true, force: true })];
after(async () => {
  for (const end of ends.reverse()) await end();
});

/** Starts a server with a store of its own; tests take so long each way. Gives its address and end. */
export async function serve({ time = '2s', bind = '127.0.0.1', more = [], store: kept } = {}) {
  const store = kept ?? join(folder, `${ends.length}.db`);
  const line = ['serve', '--bind', bind, '--port', '0', '--foreign', 'none'];
  line.push('--stamp-port', 'none', '--max-duration', time, '--store', store, ...more);
  const child = spawn(PROGRAM, line, { stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = new Promise((done) => child.on('close', done));
  const stop = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  ends.push(stop);
  let said = '';
  const base = await new Promise((found, failed) => {
    const hear = (bytes) => {
      said += bytes;
      const at = /http:\/\/\S+:(\d+)\//.exec(`${said}/`);
      if (at !== null) found(`http://127.0.0.1:${at[1]}`);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('close', () => failed(new Error(`${PROGRAM} ended: ${said}`)));
    child.on('error', failed);
  });
  return { base, store, stop };
}

let started = null;
/** One browser for all tests of a file; root needs it without a sandbox. */
function browser() {
  const executablePath = process.env.CHROMIUM ?? CHROMIUM.find((path) => existsSync(path));
  assert.ok(executablePath, 'no Chromium: apt-get install chromium');
  const args = process.getuid() === 0 ? ['--no-sandbox'] : [];
  started ??= chromium.launch({ executablePath, args }).then((it) => {
    ends.push(() => it.close());
    return it;
  });
  return started;
}

/** A tab, and everything on it that no visitor should meet: errors, breaches of the policy of
 *  content, requests to others. `sound` looks at them. */
export async function visit(base, path = '/', { width = 1280, scheme = 'light', also = [], before } = {}) {
  const context = await (await browser()).newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    permissions: ['clipboard-read', 'clipboard-write'],
    // The certificates of testdata/tls are of an authority that no browser knows.
    ignoreHTTPSErrors: base.startsWith('https:'),
  });
  const tab = await context.newPage();
  await before?.(tab);
  tab.setDefaultTimeout(PATIENCE);
  const wrong = [];
  tab.on('console', (message) => {
    if (message.type() === 'error') wrong.push(`console: ${message.text()}`);
  });
  tab.on('pageerror', (error) => wrong.push(`uncaught: ${error.message}`));
  context.on('request', (request) => {
    const { host, protocol } = new URL(request.url());
    // The server by its other address is itself.
    const at = new Set([new URL(base).host, ...also]);
    const own = at.has(host) || protocol === 'blob:' || protocol === 'data:';
    if (!own) wrong.push(`request to ${request.url()}`);
  });
  await tab.goto(base + path);
  await tab.getByRole('heading', { level: 1 }).waitFor();
  const sound = () => assert.deepEqual(wrong, []);
  return { tab, sound, close: () => context.close() };
}

/** What axe finds against WCAG 2.2 A and AA and its good practice, each as one line; by all rules, or by
 *  some alone. */
export async function barriers(tab, only) {
  if (!(await tab.evaluate(() => 'axe' in globalThis))) {
    await tab.evaluate(await import('node:fs').then(({ readFileSync }) => readFileSync(AXE, 'utf8')));
  }
  const found = await tab.evaluate(
    (rules) => globalThis.axe.run(rules === null ? {} : { runOnly: rules }),
    only ?? null,
  );
  const looked = found.passes.length + found.violations.length;
  assert.ok(looked >= (only?.length ?? 11), `axe looked at ${looked} rules`);
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id} (${help}): ${node.target} ${node.html.slice(0, 120)}`),
  );
}

/** By how many pixels the page is wider than the screen. */
export const tooWide = (tab) =>
  tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Pictures of a view for a person to look at, in both colours and two widths, where a folder for them is
 *  named by LINERATE_SHOTS. */
export async function shots(tab, name) {
  const to = process.env.LINERATE_SHOTS;
  if (to === undefined) return;
  const size = tab.viewportSize();
  for (const scheme of ['light', 'dark']) {
    for (const width of [420, 1280]) {
      await tab.emulateMedia({ colorScheme: scheme });
      await tab.setViewportSize({ width, height: 900 });
      await tab.screenshot({ path: join(to, `${name}-${scheme}-${width}.png`), fullPage: true });
    }
  }
  await tab.emulateMedia({ colorScheme: 'light' });
  await tab.setViewportSize(size);
}

/** Waits until `done` is true, looking ten times a second. */
export async function until(what, done) {
  const end = Date.now() + PATIENCE;
  while (!(await done())) {
    assert.ok(Date.now() < end, `${what}: not within ${PATIENCE / 1000} s`);
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

export const json = async (url) => (await fetch(url)).json();
