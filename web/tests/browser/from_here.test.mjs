// "Run from here": from the form to live figures, the record and the diagram of a window sweep; and
// what a visitor reads where nothing is allowed.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { barriers, json, serve, tooWide, until, visit } from './common.mjs';

const POLICY = `[[rule]]
name = "here"
from = ["127.0.0.0/8"]
results = true
measure_to = ["127.0.0.1", "198.51.100.0/24"]
`;

describe('measurements from the server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'linerate-from-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  let here;
  let there;
  before(async () => {
    const policy = join(folder, 'policy.toml');
    writeFileSync(policy, POLICY);
    here = await serve({ time: '30s', more: ['--policy', policy] });
    there = await serve({ time: '30s' });
  });

  const fill = async (tab, kind, seconds) => {
    await tab.getByRole('combobox', { name: /^What/ }).selectOption(kind);
    await tab.getByRole('combobox', { name: 'Target', exact: true }).fill(new URL(there.base).host);
    await tab.getByLabel(/^Seconds/).fill(String(seconds));
  };

  it('shows a rate as it comes, and its record is a result as any', async () => {
    const { tab, sound, close } = await visit(here.base, '/run');
    assert.match(await tab.locator('main').innerText(), /127\.0\.0\.1\/32, 198\.51\.100\.0\/24/);
    await fill(tab, 'tcp', 3);
    await tab.getByLabel('Rate, Mbit/s').fill('40');
    await tab.getByRole('button', { name: 'Measure' }).click();
    // The plot is there before the end is.
    await tab.locator('.outcome .chart canvas').waitFor();
    assert.match(await tab.locator('.outcome [role=status]').innerText(), /Measuring/);
    const link = tab.getByRole('link', { name: 'ok' });
    await link.waitFor();
    const shown = await tab.locator('.outcome tbody').innerText();
    const { results } = await json(`${here.base}/api/v1/results`);
    const [, figure] = /([\d.]+)\sMbit\/s/.exec(shown);
    assert.ok(Math.abs((figure * 1e6) / results[0].rate_bps - 1) < 0.006, shown);
    assert.ok(Math.abs(results[0].rate_bps / 40e6 - 1) < 0.05, `${results[0].rate_bps}`);
    assert.deepEqual(await barriers(tab), []);
    await link.click();
    await tab.waitForURL(`**/results/${results[0].id}`);
    await tab.getByRole('heading', { level: 1 }).waitFor();
    sound();
    await close();
  });

  it('draws a window sweep as it grows, and can be stopped', async () => {
    const { tab, sound, close } = await visit(here.base, '/run');
    await fill(tab, 'sweep', 1);
    await tab.getByLabel('Rate, Mbit/s').fill('50');
    await tab.getByRole('button', { name: 'Measure' }).click();
    await tab.locator('svg.drawing .point').nth(2).waitFor();
    assert.ok((await tab.locator('svg.drawing polyline.theory').getAttribute('points')).length > 50);
    await tab.getByRole('button', { name: 'Stop' }).click();
    await tab.getByRole('link').filter({ hasText: /^ok$/ }).first().waitFor();
    const windows = await tab.locator('.outcome tbody th').allInnerTexts();
    const plain = windows.map((text) => text.replaceAll('\u00a0', ' '));
    assert.deepEqual(plain.slice(0, 3), ['16 KiB', '32 KiB', '64 KiB']);
    assert.ok(windows.length < 9, `${windows.length} of 9 windows after it was stopped`);
    for (const width of [1280, 360]) {
      await tab.setViewportSize({ width, height: 900 });
      await until(`it fits ${width} px`, async () => (await tooWide(tab)) <= 0);
    }
    assert.deepEqual(await barriers(tab), []);
    sound();
    await close();
  });

  it('tells in words what the policy refuses', async () => {
    const { tab, close } = await visit(here.base, '/run');
    await tab.getByRole('combobox', { name: 'Target', exact: true }).fill('192.0.2.1');
    await tab.getByRole('button', { name: 'Measure' }).click();
    await tab.getByText('no measurement to 192.0.2.1').waitFor();
    await close();
  });

  it('says plainly that nobody is measured to, and the lines to add', async () => {
    const { tab, sound, close } = await visit(there.base, '/run');
    await tab.getByRole('heading', { name: 'This server measures to nobody' }).waitFor();
    assert.match(await tab.locator('pre').innerText(), /measure_to = \["198\.51\.100\.0\/24"\]/);
    assert.equal(await tab.getByRole('button', { name: 'Measure' }).count(), 0);
    assert.deepEqual(await barriers(tab), []);
    sound();
    await close();
  });
});
