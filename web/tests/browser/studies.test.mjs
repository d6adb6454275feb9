// Studies on the page: one is started, grows, goes on without the tab, is stopped, is interrupted by a
// server that dies, and is resumed; its report is a page of one file.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { barriers, json, serve, shots, tooWide, until, visit } from './common.mjs';

const POLICY = `[[rule]]
name = "operators"
from = ["127.0.0.0/8"]
results = true
measure_to = ["127.0.0.1"]
`;
/** The quickest of all, by far longer than it takes on a machine that does much else. */
const STUDY = 'bench-demo';
const WHOLE_MS = 900_000;

describe('studies', () => {
  const folder = mkdtempSync(join(tmpdir(), 'linerate-studies-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const more = ['--policy', join(folder, 'policy.toml')];
  let server;
  before(async () => {
    writeFileSync(more[1], POLICY);
    server = await serve({ more });
  });

  const api = (path) => json(`${server.base}/api/v1/studies${path}`);
  const long = async (what, done) => {
    const end = Date.now() + WHOLE_MS;
    while (!(await done())) {
      assert.ok(Date.now() < end, `${what}: not within ${WHOLE_MS / 1000} s`);
      await new Promise((wake) => setTimeout(wake, 200));
    }
  };

  it('run on without the tab, stop, and go on after the server died', async () => {
    const { tab, sound, close } = await visit(server.base, '/studies');
    await tab.getByRole('button', { name: `Run ${STUDY}` }).waitFor();
    await shots(tab, 'studies');
    assert.deepEqual(await barriers(tab), []);
    await tab.getByRole('button', { name: `Run ${STUDY}` }).focus();
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/studies/*-*');
    const run = new URL(tab.url()).pathname.split('/').at(-1);
    await tab.getByText(/\d of \d+ measured/).waitFor();
    const { measurements } = await api(`/${run}`);
    assert.ok(measurements >= 4, `${measurements}`);
    // One at a time.
    const other = await fetch(`${server.base}/api/v1/studies`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ study: STUDY }),
    });
    assert.equal(other.status, 409, await other.text());
    await long('the first measurement, or why there is none', async () => {
      const { stored, state } = await api(`/${run}`);
      return stored > 0 || state !== 'running';
    });
    const { state, said } = await api(`/${run}`);
    if (state === 'failed') {
      // Where no virtual network may be built, the page says so.
      assert.match(said ?? '', /laborator|namespace|permi/i);
      await tab.getByRole('heading', { name: 'Why it failed' }).waitFor();
      return close();
    }
    await until('the page has seen it', async () =>
      /^[1-9]\d* of/.test(await tab.locator('label', { has: tab.locator('progress') }).innerText()));
    await close();

    const again = await visit(server.base, `/studies/${run}`);
    const stopped = async () => (await api(`/${run}`)).state !== 'running';
    if (!(await stopped())) {
      await again.tab.getByRole('button', { name: 'Stop' }).click();
      await long('it stops', stopped);
      await again.tab.getByText(/was interrupted|is finished/).waitFor();
    }
    await shots(again.tab, 'study');
    assert.deepEqual(await barriers(again.tab), []);
    again.sound();
    await again.close();
    sound();

    // A server that is killed takes the run with it; the next one shows it as interrupted.
    const begun = await fetch(`${server.base}/api/v1/studies`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ study: STUDY }),
    });
    assert.equal(begun.status, 201, await begun.clone().text());
    const { run: second } = await begun.json();
    await server.stop();
    server = await serve({ more, store: server.store });
    // In the store, too, once the kernel has ended what the server had started.
    const binary = process.env.LINERATE ?? '../target/debug/linerate';
    await until('the store has it as interrupted', () => {
      const said = execFileSync(binary, ['study', 'list', '--store', server.store], { encoding: 'utf8' });
      return !/ running /.test(said) && / interrupted /.test(said);
    });
    const interrupted = await visit(server.base, `/studies/${second}`);
    await interrupted.tab.getByText('was interrupted').waitFor();
    await interrupted.tab.getByText(/linerate study run --resume/).first().waitFor();
    await interrupted.tab.getByRole('button', { name: 'Resume', exact: true }).click();
    await interrupted.tab.getByText('is measured').waitFor();
    await long('it comes to its end', async () => !(await api(`/${second}`)).here);
    const { state: ended, stored } = await api(`/${second}`);
    assert.ok(['finished', 'partial'].includes(ended), ended);
    assert.ok(stored > 0);
    await interrupted.tab.getByRole('link', { name: /^Report/ }).waitFor();
    const report = await fetch(`${server.base}/api/v1/studies/${second}/report`);
    assert.match(report.headers.get('content-security-policy'), /^sandbox; default-src 'none'/);
    assert.match(await report.text(), /<h1/);
    await interrupted.tab.getByRole('link', { name: /^Report/ }).click();
    await interrupted.tab.getByRole('heading', { level: 1 }).waitFor();
    await interrupted.close();
  });

  it('are started by nobody whom the policy lets measure nowhere', async () => {
    const plain = await serve();
    const { tab, sound, close } = await visit(plain.base, '/studies');
    const button = tab.getByRole('button', { name: `Run ${STUDY}` });
    await button.waitFor();
    assert.equal(await button.isDisabled(), true);
    const { status } = await fetch(`${plain.base}/api/v1/studies`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ study: STUDY }),
    });
    assert.equal(status, 403);
    for (const width of [1280, 420]) {
      await tab.setViewportSize({ width, height: 900 });
      await until(`it fits ${width} px`, async () => (await tooWide(tab)) <= 0);
    }
    sound();
    await close();
  });
});
