// A stand-in for `linerate serve` with the shapes of its /api/v1, for work on the page and for
// states that a real server is hard to bring into. Loads are real; it counts what it sends and reads.
//   node tests/mock/server.mjs [PORT]        then open http://127.0.0.1:PORT/
// POST /mock {"busy": 3, "silent": true, ...} changes its ways; see `ways`.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../dist/', import.meta.url));
const records = fileURLToPath(new URL('../../../testdata/', import.meta.url));
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self' ws: wss:; worker-src 'self'; base-uri 'none'; form-action 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'x-content-type-options': 'nosniff',
};
/** Random once: a stand-in need not make new bytes. */
const CHUNK = randomBytes(1 << 20);

const fresh = () => ({
  busy: 0, // refuse this many requests for a place
  silent: false, // send nothing more
  refuse: null, // words of a refusal
  browser_limited: false,
  no_verdict: false,
  proxy: false, // name a proxy in answers
  rate_bps: null, // pace of each stream's download
  measure_from_here: false,
});
let ways = fresh();
const runs = new Map();

const json = (answer, status, body, headers = {}) => {
  answer.writeHead(status, { 'content-type': 'application/json', ...HEADERS, ...headers });
  answer.end(JSON.stringify(body));
};

const body = async (request) => {
  let text = '';
  for await (const piece of request) text += piece;
  return text === '' ? {} : JSON.parse(text);
};

class Run {
  constructor({ streams = 4, seconds = 8, directions = ['down', 'up'] }) {
    Object.assign(this, { streams, seconds, directions, id: randomUUID() });
    this.token = randomBytes(16).toString('hex');
    this.listeners = [];
    this.sent = 0;
    this.counts = {};
    this.began = {};
    this.parts = [];
  }

  tell(event, data) {
    if (ways.silent) return;
    this.sent += 1;
    const text = `id: ${this.sent}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    this.listeners.forEach((listener) => listener.write(text));
  }

  /** The direction begins with its first stream and ends by time. */
  begin(direction) {
    if (this.began[direction]) return;
    this.began[direction] = Date.now();
    this.counts[direction] = new Array(this.streams).fill(0);
    this.tell('state', { state: direction, say: direction });
    let before = new Array(this.streams).fill(0);
    let last = Date.now();
    const timer = setInterval(() => {
      const now = Date.now();
      const counts = [...this.counts[direction]];
      const each = counts.map((count, k) => ((count - before[k]) * 8000) / (now - last));
      this.tell('sample', {
        direction,
        t_s: (now - this.began[direction]) / 1000,
        rate_bps: each.reduce((a, b) => a + b, 0),
        streams: each,
        rtt_us: counts.map(() => 420),
        retransmits: 3,
      });
      [before, last] = [counts, now];
      if (now - this.began[direction] >= this.seconds * 1000) {
        clearInterval(timer);
        setTimeout(() => this.end(direction, (now - this.began[direction]) / 1000), 100);
      }
    }, 100);
  }

  isOver(direction) {
    return Date.now() - this.began[direction] >= this.seconds * 1000;
  }

  end(direction, seconds) {
    const bytes = this.counts[direction].reduce((a, b) => a + b, 0);
    const limited = ways.browser_limited;
    this.parts.push(direction);
    this.tell('part', {
      direction,
      rate_bps: (bytes * 8) / seconds,
      bytes,
      seconds,
      record: randomUUID(),
      client_limited: limited,
      limited_by: limited
        ? { cause: 'receiver', confidence: 'high', say: 'The receive window was full 98 % of the time.' }
        : null,
    });
    if (this.parts.length < this.directions.length) return;
    if (!ways.no_verdict) this.tell('verdict', VERDICT);
    this.tell('end', { records: [] });
  }
}

const VERDICT = {
  cause: 'bottleneck-queue',
  confidence: 'high',
  headline: 'A link of about 94 Mbit/s is full, and its queue adds 38 ms.',
  evidence: [
    'Round trips rise from 0.42 ms to 38 ms within 0.4 s of load.',
    'Data in flight is 3.1 times the bandwidth-delay product.',
  ],
  remedy: ['On the router before that link: fq_codel or cake, shaped to 92 Mbit/s.'],
  next_limit: { rate_bps: 94.9e6, say: 'the link of 100 Mbit/s' },
  commands: ['linerate explain @-1'],
};

function pump(request, answer, run, stream) {
  answer.writeHead(200, {
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
    connection: 'close',
    ...(ways.proxy ? { via: '1.1 cache.example' } : {}),
    ...HEADERS,
  });
  run.begin('down');
  const pace = ways.rate_bps;
  const piece = pace === null ? CHUNK : CHUNK.subarray(0, Math.max(1000, pace / 8 / 50));
  const write = () => {
    for (;;) {
      if (answer.destroyed) return;
      if (run.isOver('down')) return void answer.end();
      run.counts.down[stream] += piece.length;
      const room = answer.write(piece);
      if (pace !== null) return void setTimeout(write, 20);
      if (!room) return void answer.once('drain', write);
    }
  };
  write();
}

function swallow(request, answer, run, stream) {
  run.begin('up');
  let bytes = 0;
  const over = () => {
    json(answer, 200, { bytes, over: true }, { connection: 'close' });
    request.removeAllListeners('data');
    request.resume();
  };
  request.on('data', (piece) => {
    if (answer.writableEnded) return;
    bytes += piece.length;
    run.counts.up[stream] += piece.length;
    if (run.isOver('up')) over();
  });
  request.on('end', () => {
    if (answer.writableEnded) return;
    if (run.isOver('up')) over();
    else json(answer, 200, { bytes });
  });
}

const server = {
  name: 'linerate',
  version: '0.1.0',
  host: 'mock.example',
  client: '127.0.0.0/24',
  limits: { tests: 1, streams: 8, seconds: 30, bytes: null, rate_bps: null },
  other_programs: [
    { program: 'iperf3', port: 5201 },
    { program: 'iperf', port: 5001 },
    { program: 'nuttcp', port: 5000 },
    { program: 'ttcp', port: 5001 },
  ],
  udp_echo: true,
  stamp_port: 862,
  results_kept: null,
  features: ['load', 'events', 'echo', 'results'],
};

function stored() {
  const files = ['records/tcp-1', 'records/udp-1', 'records/ping-1', 'explain/records/base'];
  return files
    .map((name) => join(records, `${name}.json`))
    .filter(existsSync)
    .map((path) => JSON.parse(readFileSync(path, 'utf8')));
}

function summary(record) {
  const value = (metric, stats) =>
    record.summary.find((row) => row.metric === metric && stats.includes(row.stat))?.value ?? null;
  const rtt = value('rtt_ns', ['p50', 'min']);
  return {
    id: record.id,
    kind: record.plan.kind,
    started_at: record.started_at,
    peer: record.plan.host ?? record.plan.target ?? null,
    name: record.name,
    status: record.status,
    rate_bps: value('goodput_bps', ['mean', 'total', 'value']),
    loss: value('loss_ratio', ['total', 'mean', 'value']),
    rtt_us: rtt === null ? null : rtt / 1000,
  };
}

function results(answer, path, query) {
  const [, id, part] = /^\/api\/v1\/results\/([^/.]+)(?:[/.](\w+))?$/.exec(path) ?? [];
  const list = stored();
  if (id === undefined) {
    const kind = query.get('kind');
    const found = list.map(summary).filter((row) => kind === null || row.kind === kind);
    return json(answer, 200, { results: found, next: null });
  }
  const record = list.find((one) => one.id === id);
  if (!record) return json(answer, 404, { error: 'not_found', say: `No result has the id ${id}.` });
  if (part === 'explain') return json(answer, 200, VERDICT);
  if (part === 'figures') {
    const path = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url));
    const svg = readFileSync(join(path, 'throughput-by-window-now.svg'), 'utf8');
    return json(answer, 200, [{ name: 'throughput', svg }]);
  }
  return json(answer, 200, record);
}

async function api(request, answer, path, query) {
  const load = /^\/api\/v1\/load\/(\w+)\/(down|up)\/(\d+)$/.exec(path);
  if (load) {
    const run = [...runs.values()].find((one) => one.token === load[1]);
    if (!run || ways.silent) return void answer.destroy();
    return (load[2] === 'down' ? pump : swallow)(request, answer, run, Number(load[3]));
  }
  if (path === '/api/v1/server') {
    const running = [...runs.values()].filter((run) => run.listeners.length > 0).length;
    const now = new Date().toISOString();
    const { measure_from_here } = ways;
    return json(answer, 200, { ...server, now, running, waiting: ways.busy, measure_from_here });
  }
  if (path === '/api/v1/runs' && request.method === 'POST') {
    const wish = await body(request);
    if (ways.refuse) return json(answer, 403, { error: 'policy', say: ways.refuse });
    if (ways.busy > 0) {
      ways.busy -= 1;
      const say = '1 of 1 tests is running.';
      const place = { position: ways.busy + 1, retry_after_ms: 1500, ticket: 'feed' };
      return json(answer, 503, { error: 'busy', say, ...place }, { 'retry-after': '2' });
    }
    const run = new Run(wish);
    runs.set(run.id, run);
    const { id, token, streams, seconds, directions } = run;
    const at = { events: `/api/v1/runs/${id}/events`, load: `/api/v1/load/${token}` };
    return json(answer, 201, { run: id, token, ...at, streams, seconds, directions });
  }
  const [, id, what] = /^\/api\/v1\/runs\/([\w-]+)(?:\/(\w+))?$/.exec(path) ?? [];
  const run = runs.get(id);
  if (run && what === 'events') {
    answer.writeHead(200, { 'content-type': 'text/event-stream', ...HEADERS });
    run.listeners.push(answer);
    answer.on('close', () => run.listeners.splice(run.listeners.indexOf(answer), 1));
    return run.tell('state', { state: 'idle', say: 'idle' });
  }
  if (run && what === 'delays') return json(answer, 200, await body(request));
  if (run && request.method === 'DELETE') {
    runs.delete(id);
    return json(answer, 200, {});
  }
  if (path.startsWith('/api/v1/results')) return results(answer, path, query);
  return json(answer, 404, { error: 'not_found', say: `Nothing is at ${path}.` });
}

function asset(answer, path) {
  const wanted = normalize(join(root, path));
  const is_file = wanted.startsWith(root) && existsSync(wanted) && statSync(wanted).isFile();
  const file = is_file ? wanted : join(root, 'index.html');
  answer.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'text/plain', ...HEADERS });
  createReadStream(file).pipe(answer);
}

/** The echo of RFC 6455, for messages below 126 bytes. */
function echo(request, socket) {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.setNoDelay(true);
  let rest = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (piece) => {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 6 && rest.length >= 6 + (rest[1] & 0x7f)) {
      const length = rest[1] & 0x7f;
      const data = rest.subarray(6, 6 + length).map((byte, k) => byte ^ rest[2 + (k % 4)]);
      if ((rest[0] & 0x0f) === 8) return void socket.end(Buffer.from([0x88, 0]));
      if (!ways.silent) socket.write(Buffer.concat([Buffer.from([0x82, length]), data]));
      rest = rest.subarray(6 + length);
    }
  });
}

/** Starts the stand-in; resolves to its address and a way to end it. */
export function start(port = 0) {
  const http = createServer((request, answer) => {
    const { pathname, searchParams } = new URL(request.url, 'http://mock');
    if (pathname === '/mock') {
      return void body(request).then((wanted) => {
        ways = { ...fresh(), ...wanted };
        runs.clear();
        json(answer, 200, ways);
      });
    }
    if (!pathname.startsWith('/api/')) return asset(answer, pathname);
    api(request, answer, pathname, searchParams).catch(() => answer.destroy());
  });
  http.on('upgrade', echo);
  return new Promise((resolve) => {
    http.listen(port, '127.0.0.1', () => {
      const { port: at } = http.address();
      resolve({
        url: `http://127.0.0.1:${at}`,
        set: (wanted) => { ways = { ...fresh(), ...wanted }; runs.clear(); },
        stop: () => { http.closeAllConnections(); http.close(); },
      });
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await start(Number(process.argv[2] ?? 0));
  console.log(url);
}
