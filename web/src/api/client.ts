// Requests to the server. Whatever goes wrong comes back as one kind of error with words for a person.
import type { Refusal, Server } from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly refusal: Refusal,
  ) {
    super(refusal.say);
  }
}

/** How long an answer to anything but load may take. */
const PATIENCE_MS = 10_000;

const lost = (say: string): ApiError => new ApiError(0, { error: 'lost', say });

/** A refusal from any body: a proxy in between answers with pages of its own. */
export function refusal(status: number, body: unknown, retryAfter: string | null): Refusal {
  const known = body as Partial<Refusal> | null;
  const found: Refusal = {
    error: typeof known?.error === 'string' ? known.error : 'unknown',
    say:
      typeof known?.say === 'string'
        ? known.say
        : `The answer was HTTP ${status} without words of linerate: something else may be in between.`,
  };
  if (typeof known?.position === 'number') found.position = known.position;
  if (typeof known?.ticket === 'string') found.ticket = known.ticket;
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  if (typeof known?.retry_after_ms === 'number') found.retry_after_ms = known.retry_after_ms;
  else if (Number.isFinite(seconds)) found.retry_after_ms = seconds * 1000;
  return found;
}

export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...init,
    });
  } catch (error) {
    throw lost(
      (error as Error).name === 'TimeoutError'
        ? `The server did not answer within ${PATIENCE_MS / 1000} s.`
        : 'The server cannot be reached: it was stopped, or the network between is down.',
    );
  }
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) {
    throw new ApiError(
      answer.status,
      refusal(answer.status, body, answer.headers.get('retry-after')),
    );
  }
  if (body === null && answer.status !== 204) {
    throw lost('The answer is not of linerate: something else may answer for it in between.');
  }
  return body as T;
}

/** What the server says of itself; a host without a name is called as the address is. */
export async function askServer(): Promise<Server> {
  const server = await ask<Server & { host: string | null }>('/api/v1/server');
  return { ...server, host: server.host || location.hostname };
}

export function post<T>(path: string, body: unknown, init: RequestInit = {}): Promise<T> {
  return ask<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...init,
  });
}

export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : lost(String((error as Error)?.message ?? error));
