// Findings about the way in, each planted by a relay between the browser and a real server.
import assert from 'node:assert/strict';
import { createServer, connect } from 'node:net';
import { after, describe, it } from 'node:test';
import { serve, visit } from './common.mjs';

const ends = [];
after(() => ends.forEach((end) => end()));

/** Hands each piece on so much later, one behind the other, and never earlier, as timers fire by up
 *  to a millisecond. */
function late_writer(to, delay_ms) {
  const waiting = [];
  const write_due = () => {
    while (waiting.length > 0 && waiting[0].due <= performance.now()) {
      const { piece } = waiting.shift();
      if (!to.destroyed) to.write(piece);
    }
    if (waiting.length > 0) setTimeout(write_due, Math.ceil(waiting[0].due - performance.now()));
  };
  return (piece) => {
    waiting.push({ piece, due: performance.now() + delay_ms });
    if (waiting.length === 1) setTimeout(write_due, delay_ms);
  };
}

/** Carries connections to a server: each piece so much later, and from the browser none above a size,
 *  after which that connection stands still as TCP does over a black hole. Gives its address. */
async function relay(base, { delay_ms = 0, largest = Infinity } = {}) {
  const { hostname, port } = new URL(base);
  const open = new Set();
  const listener = createServer((near) => {
    const far = connect({ host: hostname, port, noDelay: true });
    near.setNoDelay(true);
    let still = false;
    const carry = (from, to, most) => {
      const write_late = late_writer(to, delay_ms);
      open.add(from);
      from.on('data', (piece) => {
        if (still) return;
        still = piece.length > most;
        // A head leaves before its body, in a packet of its own, also where both came as one piece.
        const head = piece.indexOf('\r\n\r\n');
        if (still) return void (head >= 0 && to.write(piece.subarray(0, head + 4)));
        if (delay_ms === 0) return void to.write(piece);
        write_late(piece);
      });
      from.on('error', () => {});
      from.on('close', () => {
        open.delete(from);
        setTimeout(() => to.destroy(), 2 * delay_ms);
      });
    };
    carry(near, far, largest);
    carry(far, near, Infinity);
  });
  await new Promise((done) => listener.listen(0, '127.0.0.1', done));
  ends.push(() => {
    open.forEach((one) => one.destroy());
    listener.close();
  });
  return `http://127.0.0.1:${listener.address().port}`;
}

/** What the page noticed of a whole test, by its titles, with the words behind. */
async function noticed(tab) {
  await tab.getByRole('button', { name: 'Test this path' }).click();
  await tab.getByRole('button', { name: /Test again|Try again/ }).waitFor({ timeout: 60_000 });
  const rows = await tab.locator('.noticed > div').all();
  const pairs = rows.map(async (row) => [
    await row.locator('dt').innerText(),
    await row.locator('dd').innerText(),
  ]);
  return new Map(await Promise.all(pairs));
}

describe('the way in', () => {
  it('is asked over both families, and one that does not work is named', async () => {
    const server = await serve({ bind: '::', more: ['--open'] });
    const { port } = new URL(server.base);
    const { tab, sound, close } = await visit(server.base, '/', { also: [`[::1]:${port}`] });
    const here = [];
    tab.context().on('requestfinished', async (request) => {
      if (!request.url().endsWith('/api/v1/here')) return;
      here.push(`${new URL(request.url()).hostname} ${(await request.response())?.status()}`);
    });
    const healthy = await noticed(tab);
    assert.deepEqual([...healthy.keys()].filter((title) => /IPv/.test(title)), []);
    assert.deepEqual([...new Set(here)].sort(), ['127.0.0.1 204', '[::1] 204']);
    sound();
    // The same with an address where nobody listens.
    await tab.route('**/api/v1/runs', async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      json.families[1] = '[::1]:1';
      await route.fulfill({ response, json });
    });
    await tab.goto(server.base);
    const broken = await noticed(tab);
    assert.match(broken.get('IPv6 does not work to this server') ?? '', /No connection to \[::1\]:1/);
    await close();
  });

  it('shows a proxy by its distance', async () => {
    const server = await serve();
    const { tab, close } = await visit(await relay(server.base, { delay_ms: 30 }));
    const found = await noticed(tab);
    // 30 ms there and 30 ms back are the relay's; the server's kernel sees the relay alone. The
    // browser's clock has steps of 0.1 ms.
    const said = found.get('A proxy is suspected') ?? '';
    const ms = Number(/messages ([\d.]+)\s?ms at the least/.exec(said)?.[1]);
    assert.ok(ms >= 59.8, said);
    await close();
  });

  it('tells large packets that do not pass from a path that is down', async () => {
    const server = await serve();
    const { tab, close } = await visit(await relay(server.base, { largest: 1_400 }));
    const found = await noticed(tab);
    const said = found.get('Large packets of the upload do not pass') ?? '';
    assert.match(said, /^0\sbytes came in \d+ s, while \d+ messages of 16 bytes/);
    await close();
  });
});
