// A person's way through the page: test, verdict, result, list, compare, server; and what is wrong
// on no page, in neither colours, at no width.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { before, describe, it } from 'node:test';
import { barriers, json, serve, shots, tooWide, until, visit } from './common.mjs';

const WIDTHS = [1440, 768, 360];

/** A test from start to verdict by mouse or keyboard, to the address of its first result. */
async function testThisPath(tab, start) {
  await tab.evaluate(() => {
    const seen = (globalThis.steps = []);
    const look = () => {
      const step = document.querySelector('.steps .current')?.textContent;
      if (step && seen.at(-1) !== step) seen.push(step);
    };
    const all = { subtree: true, childList: true, attributes: true };
    new MutationObserver(look).observe(document.body, all);
  });
  await start(tab.getByRole('button', { name: 'Test this path' }));
  await tab.getByRole('heading', { name: 'What limits it' }).waitFor();
  await tab.getByRole('button', { name: 'Test again' }).waitFor();
  const steps = await tab.evaluate(() => globalThis.steps);
  assert.deepEqual(steps.slice(0, 3), ['Idle latency', 'Download', 'Upload']);
}

/** Two results of the same direction beside each other. */
async function compare(tab, rows, ...picked) {
  for (const row of picked) await rows.nth(row).getByRole('checkbox').check();
  await tab.getByRole('button', { name: 'Compare two' }).click();
  await tab.getByRole('heading', { name: 'Two results' }).waitFor();
}

describe('the way of a visitor', () => {
  let server;
  before(async () => {
    // Comparing needs twelve samples of goodput behind the first second; a busy browser may give six
    // a second.
    server = await serve({ time: '4s' });
  });

  it('goes from a test to its verdict, and the figures are those of the record', async () => {
    const { tab, sound, close } = await visit(server.base);
    await testThisPath(tab, (button) => button.click());
    const { results } = await json(`${server.base}/api/v1/results`);
    assert.deepEqual(results.map((one) => one.kind), ['tcp', 'tcp']);
    for (const [name, one] of [['Upload', results[0]], ['Download', results[1]]]) {
      const cell = await tab.locator('.figures div', { hasText: new RegExp(`^${name}`) }).innerText();
      const [, figure, unit] = /([\d.]+)\s*([kMG]?)bit\/s/.exec(cell);
      const shown = figure * { '': 1, k: 1e3, M: 1e6, G: 1e9 }[unit];
      assert.ok(Math.abs(shown / one.rate_bps - 1) < 0.006, `${name} ${cell} of ${one.rate_bps}`);
    }
    assert.deepEqual(await barriers(tab), []);
    await tab.setViewportSize({ width: 360, height: 900 });
    const hidden = () =>
      tab.locator('.figures-table').evaluate((table) => table.scrollWidth - table.clientWidth);
    await until('the table of figures fits 360 px', async () => (await hidden()) <= 0);
    // A verdict for each direction, in words.
    const verdicts = tab.locator('.way');
    assert.deepEqual(await verdicts.locator('h3').filter({ hasText: /load$/ }).allInnerTexts(), ['Download', 'Upload']);
    for (const way of await verdicts.all()) assert.match(await way.locator('.headline').innerText(), / /);
    sound();
    await close();
  });

  it('is one test at one address that another person can open', async () => {
    const { results } = await json(`${server.base}/api/v1/results?judged=true`);
    const [{ run }] = results;
    const { tab, sound, close } = await visit(server.base, `/results?run=${run}`);
    await tab.getByRole('region', { name: 'Figures' }).waitFor();
    const heads = await tab.getByRole('region', { name: 'Figures' }).locator('thead th').allInnerTexts();
    assert.deepEqual(heads.slice(1), ['Download', 'Upload']);
    const titles = await tab.locator('h2').allInnerTexts();
    assert.deepEqual(titles.filter((title) => /what limits it/.test(title)), [
      'Download: what limits it',
      'Upload: what limits it',
    ]);
    assert.equal(await tab.locator('.chart canvas').count(), 1, 'one picture');
    const own = results.filter((one) => one.run === run);
    for (const { id, rate_bps: bps } of own) {
      await tab.locator(`a[href="/results/${id}"]`).waitFor();
      const cells = await tab.getByRole('row', { name: /^Goodput/ }).locator('td').allInnerTexts();
      const shown = cells.map((text) => {
        const [, figure, unit] = /([\d.]+)\s*([kMG]?)bit\/s/.exec(text);
        return figure * { '': 1, k: 1e3, M: 1e6, G: 1e9 }[unit];
      });
      assert.ok(shown.some((one) => Math.abs(one / bps - 1) < 0.006), `${shown} has ${bps}`);
    }
    // Whoever has the address finds it, without a list.
    assert.equal(own.length, 2);
    const list = await json(`${server.base}/api/v1/results?run=${run}`);
    assert.deepEqual(list.results.map(({ id }) => id), own.map(({ id }) => id));
    await shots(tab, 'whole');
    sound();
    await close();
  });

  it('reads words and no codes, the answer and the figures before plots', async () => {
    const { tab, sound, close } = await visit(server.base, '/results');
    await tab.getByText('whole test').first().waitFor();
    const head = await tab.locator('table.list thead th').allInnerTexts();
    const column = (name) => head.indexOf(name);
    const row = tab.locator('table.list tbody tr').first();
    assert.match(await row.locator('td').nth(column('Limit')).innerText(), /limited by|limit not known|is full|too busy/);
    assert.match(await row.locator('td').nth(column('Trust')).innerText(), /^(good|doubtful|bad)/);
    await tab.setViewportSize({ width: 420, height: 900 });
    const right = () =>
      tab.locator('table.list thead th', { hasText: 'Goodput' }).evaluate((it) => it.getBoundingClientRect().right);
    await until('the goodput of a list is seen at 420 px', async () => (await right()) <= 420);
    await tab.setViewportSize({ width: 1280, height: 900 });
    await row.locator('a').first().click();
    await tab.getByRole('heading', { name: 'Over time' }).waitFor();
    await tab.getByRole('heading', { name: 'Plots' }).waitFor();
    const titles = await tab.locator('h2').allInnerTexts();
    const at = (title) => titles.indexOf(title);
    assert.ok(at('Figures') >= 0 && at('Figures') < at('Plots') && at('Figures') < at('Over time'), `${titles}`);
    // The answer stands under the title.
    assert.match(await tab.locator('h1 ~ .answer').innerText(), /bit\/s/);
    const names = await tab.locator('tbody th, h3.caption, main li').allInnerTexts();
    for (const name of names) assert.doesNotMatch(name, /^[a-z]+(_[a-z]+)+$|cpu sender s per gb/, 'a code');
    assert.equal(await tab.locator('main li code').count(), 0);
    await tab.goto(`${server.base}/server`);
    const rate = tab.getByRole('row', { name: /^Rate of a test/ });
    assert.match(await rate.innerText(), /no limit$/);
    sound();
    await close();
  });

  it('can be gone by keyboard alone', async () => {
    const { tab, sound, close } = await visit(server.base);
    const focused = () => tab.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    await tab.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to the content');
    await tab.keyboard.press('Enter');
    await tab.keyboard.press('Tab');
    assert.equal(await focused(), 'Test this path');
    await testThisPath(tab, () => tab.keyboard.press('Enter'));
    sound();
    await close();
  });

  it('goes on from the list to one result, its files, and two beside each other', async () => {
    const { tab, sound, close } = await visit(server.base, '/results');
    const rows = tab.locator('table.list tbody tr');
    await rows.nth(3).waitFor();
    await compare(tab, rows, 0, 2);
    assert.match(await tab.locator('table').innerText(), /Goodput|goodput/);
    await tab.locator('thead a').first().click();
    await tab.locator('h1').filter({ hasNotText: 'Two results' }).waitFor();
    const id = tab.url().split('/').at(-1);
    for (const link of await tab.locator('.downloads a').all()) {
      const href = await link.getAttribute('href');
      const answer = await fetch(new URL(href, server.base));
      assert.equal(answer.status, 200, href);
      assert.ok((await answer.text()).length > 100, href);
    }
    // The permanent link is the same page for who comes by it.
    const again = await visit(server.base, `/results/${id}`);
    assert.equal(await again.tab.locator('h1').innerText(), await tab.locator('h1').innerText());
    again.sound();
    sound();
    await again.close();
    await close();
  });

  it('gives a line to type that works', async () => {
    const { tab, sound, close } = await visit(server.base, '/results');
    const rows = tab.locator('table.list tbody tr');
    await rows.nth(3).waitFor();
    await compare(tab, rows, 0, 2);
    const line = await tab.locator('.command code').first().innerText();
    const [program, ...words] = line.split(' ');
    assert.equal(program, 'linerate');
    const binary = process.env.LINERATE ?? '../target/debug/linerate';
    const said = execFileSync(binary, [...words, '--store', server.store], { encoding: 'utf8' });
    assert.match(said, /bit\/s/);
    sound();
    await close();
  });

  it('has no barrier in either colours and fits every width', async () => {
    const { results } = await json(`${server.base}/api/v1/results?judged=true`);
    const [a, b] = results.map((one) => one.id);
    const stored = [`/results/${a}`, `/results?compare=${a},${b}`, `/results?run=${results[0].run}`];
    for (const path of ['/', '/results', ...stored, '/run', '/series', '/server', '/nothing-here']) {
      const { tab, sound, close } = await visit(server.base, path);
      await tab.waitForLoadState('networkidle');
      for (const width of WIDTHS) {
        await tab.setViewportSize({ width, height: 900 });
        // Charts follow the width a frame later.
        await until(`${path} fits ${width} px`, async () => (await tooWide(tab)) <= 0);
      }
      assert.deepEqual(await barriers(tab), [], `${path} light`);
      // The rest is the same in both. Colours change at once where motion is not wanted.
      await tab.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
      assert.deepEqual(await barriers(tab, ['color-contrast']), [], `${path} dark`);
      sound();
      await close();
    }
  });
});
