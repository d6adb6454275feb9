// Loss, order and jitter of datagrams, each planted by a relay of UDP between the browser and a real
// server: what the page shows is what the relay counted.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { fileURLToPath } from 'node:url';
import { after, describe, it } from 'node:test';
import { barriers, json, serve, shots, until, visit } from './common.mjs';

const STAGES = ['Idle', 'Download', 'Upload'];
/** Packets of QUIC with one datagram of 100 bytes, what it acknowledges beside it; handshakes, reports
 *  and acknowledgements alone are longer or shorter. */
const isDatagram = (packet) => packet.length >= 116 && packet.length <= 160;
/** A packet of that length so long after the last is a message on a stream. */
const APART_MS = 300;

const ends = [];
after(() => ends.forEach((end) => end()));

const bound = async () => {
  const socket = createSocket('udp4');
  ends.push(() => socket.close());
  await new Promise((done) => socket.bind(0, '127.0.0.1', done));
  return socket;
};

/** Carries QUIC packets to and from UDP port `port`. `plan(way, n)` says of the n-th datagram of a way,
 *  from 1: `drop` it, or `swap` it with the next. Gives its port and what it did. */
async function relay(port, plan) {
  const near = await bound();
  const clients = new Map();
  const did = { down: { seen: 0, drop: 0, swap: 0 }, up: { seen: 0, drop: 0, swap: 0 } };
  const held = {};
  const last = { down: 0, up: 0 };
  const pass = (way, packet, send) => {
    const at = performance.now();
    const of = did[way];
    if (!isDatagram(packet)) {
      // A round is over: its last datagram has none to go behind.
      if (held[way] !== undefined) send(held[way]);
      delete held[way];
      return send(packet);
    }
    const follows = at - last[way] < APART_MS;
    last[way] = at;
    of.seen += 1;
    const what = follows && held[way] === undefined ? plan(way, of.seen) : undefined;
    if (what === 'drop') return void (of.drop += 1);
    if (what === 'swap') return void (held[way] = packet);
    send(packet);
    if (held[way] === undefined) return;
    of.swap += 1;
    send(held[way]);
    delete held[way];
  };
  near.on('message', async (packet, from) => {
    const key = from.port;
    if (!clients.has(key)) {
      const far = bound();
      clients.set(key, far);
      (await far).on('message', (back) => {
        pass('down', back, (it) => near.send(it, from.port, from.address));
      });
    }
    const far = await clients.get(key);
    pass('up', packet, (it) => far.send(it, port, '127.0.0.1'));
  });
  return { port: near.address().port, did };
}

/** A tab whose sessions of datagrams go through a relay. */
async function visitThrough(base, plan) {
  const { tab, sound, close } = await visit(base);
  const through = { did: null };
  await tab.route('**/api/v1/runs', async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    if (json.datagrams) {
      const { port, did } = await relay(json.datagrams.port, plan);
      json.datagrams.port = port;
      through.did = did;
    }
    await route.fulfill({ response, json });
  });
  return { tab, sound, close, through };
}

async function test(tab) {
  await tab.getByRole('button', { name: /Test this path|Test again|Try again/ }).click();
  await tab.getByRole('button', { name: /Test again|Try again/ }).waitFor({ timeout: 90_000 });
}

/** The cells of a row of figures, by its name. */
async function cells(tab, name) {
  const row = tab.locator('.figures-table tr', { has: tab.getByRole('rowheader', { name, exact: true }) });
  return row.locator('td').allInnerTexts();
}

/** `lost of sent` of each stage, and both summed up. */
async function lost(tab, way) {
  const row = await cells(tab, `Datagrams lost, ${way}`);
  const each = row.map((text) => /^(\d+) of (\d+)$/.exec(text)?.slice(1).map(Number) ?? [NaN, NaN]);
  return { each, all: each.reduce((sum, [count]) => sum + count, 0) };
}

/** Tests until every stage has its counts and `hold` finds in them what the relay did: on a machine that
 *  is held up for seconds a session may not open, its last round not be told in time, or the relay's own
 *  socket drop. Three times wrong is wrong. */
async function measure(tab, hold, stages = STAGES.length) {
  for (let turn = 1; ; turn += 1) {
    await test(tab);
    try {
      await until('every stage has its counts', async () => {
        const rows = [await cells(tab, 'Datagrams lost, down'), await cells(tab, 'Datagrams lost, up')];
        return rows.every((row) => row.slice(0, stages).every((text) => / of /.test(text)));
      });
      return await hold();
    } catch (wrong) {
      if (turn === 3) throw wrong;
    }
  }
}

/** What the two records of the last test keep is what its page shows and, all in all, what was lost. */
async function isStored(tab, base) {
  const kept = {};
  await until('both records are stored', async () => {
    const { results } = await json(`${base}/api/v1/results?limit=2`);
    const both = await Promise.all(results.map(({ id }) => json(`${base}/api/v1/results/${id}`)));
    both.forEach((record) => (kept[record.plan.directions] = record));
    return both.every(({ page_datagrams: all }) => all?.length === 4) && kept.up && kept.down;
  });
  for (const way of ['down', 'up']) {
    const { each } = await lost(tab, way);
    const order = (await cells(tab, `Out of order, ${way}`)).map(Number);
    for (const [index, phase] of ['idle', 'down', 'up'].entries()) {
      const record = kept[phase === 'idle' ? 'down' : phase];
      const of = record.page_datagrams.find((one) => one.phase === phase && one.direction === way);
      const shown = [...each[index], order[index]];
      assert.deepEqual([of.lost, of.sent, of.reordered], shown, `${phase}, ${way}`);
      assert.ok(of.jitter_ns > 0, `${phase}, ${way}: ${of.jitter_ns}`);
    }
    // The figure of lists is that of the load's own way.
    const { results } = await json(`${base}/api/v1/results?limit=2`);
    const [few, many] = each[way === 'down' ? 1 : 2];
    const { loss } = results.find(({ id }) => id === kept[way].id);
    assert.ok(Math.abs(loss - few / many) < 1e-9, `${way}: ${loss}`);
  }
  return kept;
}

describe('datagrams over WebTransport', () => {
  it('lose nothing on a path that drops nothing, and have a jitter', async () => {
    const server = await serve({ time: '3s', more: ['--quic-port', '0'] });
    const { tab, sound, close, through } = await visitThrough(server.base, () => undefined);
    await measure(tab, async () => {
      for (const way of ['down', 'up']) {
        const { each, all } = await lost(tab, way);
        assert.equal(all, 0, `${way}: ${each}`);
        // A busy machine sends fewer than was asked for, never more.
        assert.ok(each[0][1] > 50 && each[0][1] <= 500, `${way}: ${each}`);
        assert.ok(each[1][1] > 10 && each[1][1] <= 150, `${way}: ${each}`);
        const jitter = await cells(tab, `Jitter, ${way}`);
        STAGES.forEach((stage, index) => assert.match(jitter[index], /^[\d.]+\sm?s$/, stage));
        assert.ok(through.did[way].seen > 50, `${way}: the relay saw ${through.did[way].seen}`);
      }
    });
    assert.deepEqual(await barriers(tab), []);
    sound();
    await close();
  });

  it('lose what the relay drops, each way apart, and no other', async () => {
    const server = await serve({ time: '3s', more: ['--quic-port', '0'] });
    const every = { down: 7, up: 11 };
    const plan = (way, n) => (n % every[way] === 0 ? 'drop' : undefined);
    const { tab, sound, close, through } = await visitThrough(server.base, plan);
    let kept;
    await measure(tab, async () => {
      for (const way of ['down', 'up']) {
        const { each, all } = await lost(tab, way);
        const { drop } = through.did[way];
        assert.ok(drop > 5, `${way}: the relay dropped ${drop}`);
        assert.equal(all, drop, `${way}: ${each} where the relay dropped ${drop}`);
      }
      kept = await isStored(tab, server.base);
    });
    await tab.goto(`${server.base}/results/${kept.up.id}`);
    await tab.getByRole('heading', { name: 'Datagrams', exact: true }).waitFor();
    const rest = kept.up.page_datagrams.find((one) => one.phase === 'idle' && one.direction === 'up');
    assert.equal((await cells(tab, 'client to server, at rest'))[0], `${rest.lost} of ${rest.sent}`);
    assert.deepEqual(await barriers(tab), []);
    await shots(tab, 'result-datagrams');
    sound();
    await close();
  });

  it('come out of order as the relay swaps them', async () => {
    const server = await serve({ time: '2s', more: ['--quic-port', '0'] });
    const plan = (way, n) => (n % 9 === 0 ? 'swap' : undefined);
    const { tab, sound, close, through } = await visitThrough(server.base, plan);
    await measure(tab, async () => {
      for (const way of ['down', 'up']) {
        const { swap } = through.did[way];
        const shown = (await cells(tab, `Out of order, ${way}`)).map(Number);
        const all = shown.reduce((sum, count) => sum + count, 0);
        assert.ok(swap > 5, `${way}: the relay swapped ${swap}`);
        // One that is swapped with the first of the next round is out of order in neither.
        assert.ok(all <= swap && all >= swap - 2, `${way}: ${shown} where the relay swapped ${swap}`);
        assert.equal((await lost(tab, way)).all, 0, way);
      }
    });
    sound();
    await close();
  });

  it('that do not come through are said not to, and the test goes on', async () => {
    const server = await serve({ time: '2s', more: ['--quic-port', '0'] });
    const { tab, close } = await visit(server.base);
    // A port that is bound and answers nothing: UDP that something in between drops.
    const { port } = (await bound()).address();
    await tab.route('**/api/v1/runs', async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      json.datagrams.port = port;
      await route.fulfill({ response, json });
    });
    await test(tab);
    await tab.getByText(`UDP to port ${port} does not come through`).waitFor();
    await tab.getByRole('heading', { name: 'What limits it' }).waitFor();
    assert.deepEqual(await cells(tab, 'Datagrams lost, down'), ['n/a', 'n/a', 'n/a']);
    await close();
  });

  for (const [what, plant, words] of [
    ['by a browser without WebTransport', 'delete globalThis.WebTransport', /has no WebTransport/],
    [
      'from a page over plain HTTP of another host',
      "Object.defineProperty(globalThis, 'isSecureContext', { value: false })",
      /over https or of localhost alone/,
    ],
  ]) {
    it(`are not sent ${what}, and the page says why`, async () => {
      const server = await serve({ time: '1s', more: ['--quic-port', '0'] });
      const before = (tab) => tab.addInitScript(plant);
      const { tab, close } = await visit(server.base, '/', { before });
      await test(tab);
      await tab.getByText(words).waitFor();
      await close();
    });
  }

  it('are measured alone on a page over TLS, where load is not', async () => {
    const at = (name) => fileURLToPath(new URL(`../../../testdata/tls/${name}`, import.meta.url));
    const tls = ['--tls-cert', at('one.pem'), '--tls-key', at('one.key')];
    const server = await serve({ time: '4s', more: ['--quic-port', '0', ...tls] });
    const { tab, sound, close } = await visit(server.base.replace('http:', 'https:'));
    const nothing = async () => {
      const { each } = await lost(tab, 'up');
      assert.equal(each[0][0], 0);
      assert.ok(each[0][1] > 50, `${each}`);
    };
    await measure(tab, nothing, 1);
    sound();
    await close();
  });
});
