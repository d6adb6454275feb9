// Views of few: a result beside a published table, and the matrix of a mesh.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { barriers, json, serve, shots, tooWide, until, visit } from './common.mjs';

const plain = (text) => text.replaceAll('\u00a0', ' ');

async function fits(tab) {
  for (const width of [1280, 420]) {
    await tab.setViewportSize({ width, height: 900 });
    await until(`it fits ${width} px`, async () => (await tooWide(tab)) <= 0);
  }
}

/** A server with the two results of one test of its page. */
let tested;
before(async () => {
  tested = await serve({ time: '1s' });
  const { tab, close } = await visit(tested.base);
  await tab.getByRole('button', { name: 'Test this path' }).click();
  await tab.getByRole('button', { name: /Test again|Try again/ }).waitFor({ timeout: 60_000 });
  await close();
});

describe('a published table', () => {
  it('stands beside a stored result, figure by figure', async () => {
    const server = tested;
    const { tab, sound, close } = await visit(server.base);
    const { results } = await json(`${server.base}/api/v1/results`);
    const [{ id, rate_bps: rate }] = results;
    await tab.goto(`${server.base}/results/${id}`);
    await tab.getByText('Beside a published table').click();
    await tab.getByRole('combobox', { name: 'Table' }).selectOption('pren-2000-ttcp');
    await tab.getByRole('button', { name: 'Compare' }).click();
    await tab.getByRole('heading', { name: /^goodput, / }).waitFor();
    const rows = tab.locator('tbody tr');
    assert.equal(await rows.count(), 48);
    const [name, printed, times] = await rows.first().locator('th, td').allInnerTexts();
    // studies/data/pren-2000-ttcp.csv, row 1: 587 Mbit/s.
    assert.match(name, /^c\.1 localhost, MTU 1500, window 16 KiB/);
    assert.equal(printed, '587 Mbit/s');
    const factor = Number(/^× ([\d.]+)$/.exec(times)?.[1]);
    assert.ok(Math.abs(factor - rate / 587e6) <= 0.5 * 10 ** -(times.split('.')[1] ?? '').length + 1e-9, `${times} of ${rate}`);
    await shots(tab, 'published');
    assert.deepEqual(await barriers(tab), []);
    await fits(tab);
    await tab.getByRole('combobox', { name: 'Table' }).selectOption('pren-2000-ping');
    await tab.getByRole('button', { name: 'Compare' }).click();
    await tab.getByRole('heading', { name: 'Nothing in common' }).waitFor();
    sound();
    await close();
  });
});

const agent = (name) => ({ name, heard_s_ago: 3, revision: 2, waiting: 0, ahead_s: 0.004, paused: false });
const pair = (from, to, more) => ({
  task: 0, from, to, metric: 'goodput_bps/up', value: 94e6, age_s: 120, record: 'r', changed: false, reason: null,
  no_data: false, ...more,
});

const booking = (start_s, more) => ({
  id: `${start_s}`, agent: 'north', task: 'rate/south', start_s, takes_s: 14, asked_s: start_s - 60, why: 'adhoc', state: null,
  reason: null, record: null, ...more,
});

/** A visit to the mesh's view, where a hub's answer is planted. */
function visitMesh(server, mesh, more) {
  const before = async (tab) => {
    await tab.route('**/api/v1/server', async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      await route.fulfill({ response, json: { ...answer, features: [...answer.features, 'mesh'] } });
    });
    await tab.route('**/api/v1/mesh', (route) => route.fulfill({ json: mesh }));
    await more?.(tab);
  };
  return visit(server.base, '/mesh', { before });
}

describe('the mesh', () => {
  it('has bookings to come and of the last day, and leads to their results', async () => {
    const server = tested;
    const { results: [{ id: record }] } = await json(`${server.base}/api/v1/results`);
    const now_s = Math.floor(Date.now() / 1000);
    const mesh = {
      mesh: 'campus', revision: 2, now_s, agents: [agent('north'), agent('south')], tasks: ['rate'], cells: [], alerts: [],
      incidents: [],
      planned: [{ alone: true, runs_a_day: 48, period_s: 3600, takes_s: 14, bytes_a_day: 12e9, unknown: 1 }],
      next: [{ task: 0, from: 1, to: 0, start_s: now_s + 30, takes_s: 14 }],
      bookings: [
        booking(now_s + 3600),
        booking(now_s + 60, { why: 'confirm', agent: 'south', task: 'rate/north' }),
        booking(now_s - 600, { state: 'ok', record, why: 'survey' }),
        booking(now_s - 1200, { state: 'skipped', reason: 'the booking was refused: it meets another booking' }),
        booking(now_s - 90_000, { state: 'ok' }),
      ],
    };
    const { tab, sound, close } = await visitMesh(server, mesh);
    const table = async (name, columns) => {
      const region = tab.getByRole('region', { name });
      await region.waitFor();
      return region.locator('tbody tr').evaluateAll((all, columns) =>
        all.map((row) => columns.map((at) => row.children[at].innerText.replaceAll('\u00a0', ' '))), columns);
    };
    const rows = (title) => table(`Bookings: ${title}`, [0, 2, 3, 4]);
    assert.deepEqual(await table('A day of each task', [0, 1, 2, 3, 4, 5]), [
      ['rate', '48', '60 min', '14 s', 'no', '12.0 GB and 1 pair without a rate'],
    ]);
    const [[run, begins, takes]] = await table('Next slots', [0, 1, 2]);
    assert.deepEqual([run, takes], ['rate, south to north', '14 s']);
    assert.match(begins, /, in 30 s$/);
    assert.deepEqual(await rows('To come'), [
      ['rate, south to north', '14 s', 'to confirm a change', 'in 60 s'],
      ['rate, north to south', '14 s', 'asked for', 'in 60 min'],
    ]);
    assert.deepEqual(await rows('Of the last day'), [
      ['rate, north to south', '14 s', 'to explain a change', 'ok, result'],
      ['rate, north to south', '14 s', 'asked for', 'skipped: the booking was refused: it meets another booking'],
    ]);
    await shots(tab, 'bookings');
    assert.deepEqual(await barriers(tab), []);
    await fits(tab);
    await tab.getByRole('link', { name: 'result of rate, north to south' }).click();
    await tab.waitForURL(`**/results/${record}`);
    await tab.getByRole('heading', { level: 1 }).waitFor();
    sound();
    await close();
  });

  it('has a cell for each pair, colour and sign against the median, and leads to the results', async () => {
    const server = tested;
    const mesh = {
      mesh: 'campus', revision: 2, now_s: Math.floor(Date.now() / 1000),
      agents: [agent('north'), agent('south'), agent('west')],
      tasks: ['rate'],
      cells: [
        pair(0, 1, { changed: true }),
        pair(1, 0, { metric: null, value: null, age_s: null, reason: 'refused', no_data: true }),
        pair(0, 2, { value: 60e6 }),
        pair(2, 0, { value: 95e6, age_s: 7300 }),
        pair(2, 1, { value: 140e6 }),
      ],
      alerts: [],
      incidents: [{ id: 'i', opened_s: 1_700_000_000, until_s: 1_700_000_060, sentence: 'it fell' }],
      planned: [],
      next: [],
      bookings: [],
    };
    const { tab, sound, close } = await visitMesh(server, mesh, async (tab) => {
      const value = (at_s, value) => ({ task: 'rate/south', metric: 'goodput_bps/up', at_s, value, record: 'r' });
      const values = [value(mesh.now_s - 60, 90e6), value(mesh.now_s, 94e6)];
      const series = { plan: 'campus/north', values, events: [], series: [] };
      await tab.route('**/api/v1/series*', (route) => route.fulfill({ json: series }));
    });
    assert.equal(await tab.getByRole('heading', { name: 'Bookings' }).count(), 0);
    const matrix = tab.getByRole('region', { name: 'Matrix of rate' });
    await matrix.waitFor();
    const cells = await matrix.locator('tbody tr').evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll('td')].map((it) => it.innerText.replace(/\s+/g, ' ').trim())));
    // Each pair once a way, with its unit and its age; the median of 60, 94, 95 and 140 is 94.5 Mbit/s.
    assert.deepEqual(cells.map((row) => row.map(plain)), [
      ['', '94.0 Mbit/s ~ 2 min', '60.0 Mbit/s ▼ 2 min'],
      ['– !', '', ''],
      ['95.0 Mbit/s 2 h', '140 Mbit/s ▲ 2 min', ''],
    ]);
    const colours = await matrix.locator('.pair').evaluateAll((all) => all.map((it) => getComputedStyle(it).color));
    assert.equal(new Set([colours[1], colours[2], colours[4]]).size, 3, `worse, none, better: ${colours}`);
    const about = plain(await tab.locator('h2:has-text("rate") + p').innerText());
    assert.match(about, /^goodput up, mean of a run\. Median of the pairs: 94\.5 Mbit\/s\./);
    const dark = matrix.locator('.dark');
    assert.match(await dark.getAttribute('title'), /^south to north: –, never measured; the last run: refused/);
    assert.match(await tab.locator('.told time').first().innerText(), /^2023-11-1[45] \d\d:\d\d:20$/);
    await shots(tab, 'mesh');
    assert.deepEqual(await barriers(tab), []);
    await fits(tab);
    await matrix.getByRole('link').first().focus();
    await tab.keyboard.press('Enter');
    await tab.getByRole('heading', { level: 1, name: 'goodput up of rate/south' }).waitFor();
    const asked = new URL(tab.url()).searchParams;
    assert.deepEqual([asked.get('plan'), asked.get('task')], ['campus/north', 'rate/south']);
    sound();
    await close();
  });
});
