// Small parts that several views share.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import { ApiError, asApiError } from '../api/client';
import type { Command } from '../show/commands';
import type { Quantity } from '../show/units';

/** A figure with its unit, the unit smaller. */
export function Figure({ of }: { of: Quantity }): JSX.Element {
  return (
    <span class="figure">
      {of.figure}
      {of.unit !== '' && <span class="unit">{`\u00a0${of.unit}`}</span>}
    </span>
  );
}

/** Copies without the clipboard's API too: pages over plain HTTP do not have it. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'away';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

export function CommandLine({ line }: { line: string }): JSX.Element {
  const [said, say] = useState('Copy');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const click = async (): Promise<void> => {
    say((await copy(line)) ? 'Copied' : 'Select and copy');
    clearTimeout(timer.current);
    timer.current = setTimeout(() => say('Copy'), 2000);
  };
  return (
    <span class="command">
      <code tabIndex={0}>{line}</code>
      <button type="button" class="copy" onClick={click} aria-label={`${said}: ${line}`}>
        {said}
      </button>
    </span>
  );
}

export function Commands({ list }: { list: Command[] }): JSX.Element {
  return (
    <ul class="commands">
      {list.map(({ line, does }) => (
        <li key={line}>
          <CommandLine line={line} />
          <span class="soft">{does}</span>
        </li>
      ))}
    </ul>
  );
}

export function Notice(props: { title: string; kind?: string; children?: ComponentChildren }) {
  return (
    <section class={`notice ${props.kind ?? ''}`}>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}

export type Loaded<T> =
  | { is: 'loading' }
  | { is: 'there'; value: T }
  | { is: 'failed'; error: ApiError };

/** Loads when `key` changes; what an older key brings is dropped. */
export function useLoaded<T>(key: string, load: () => Promise<T>): [Loaded<T>, () => void] {
  const [state, set] = useState<Loaded<T>>({ is: 'loading' });
  const [turn, again] = useState(0);
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && set({ is: 'there', value }),
      (error: unknown) => current && set({ is: 'failed', error: asApiError(error) }),
    );
    return () => {
      current = false;
    };
  }, [key, turn]);
  return [state, () => again((value) => value + 1)];
}

/** A failure in words, and the one thing to do about it. */
export function Failed(props: {
  error: ApiError;
  again: () => void;
  /** Of a view that has nothing else to show. */
  heading?: string;
}): JSX.Element {
  const { error, again, heading } = props;
  const title = error.status === 0 ? 'The server does not answer' : 'The server refused';
  return (
    <>
      {heading !== undefined && <h1>{heading}</h1>}
      <Notice title={title} kind="bad">
        <p role="alert">{error.refusal.say}</p>
        <button type="button" onClick={again}>
          Try again
        </button>
      </Notice>
    </>
  );
}

export const Loading = (): JSX.Element => (
  <p class="soft loading" role="status">
    Asking the server…
  </p>
);
