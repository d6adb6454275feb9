// The token that an operator gave to a visitor: only of this tab, and gone with it.
import type { JSX } from 'preact';
import { token } from '../run/from_here';

/** `has` is whether anything is allowed, `said` what there is to say, `show` asks again. */
export function Token(of: { has: boolean; said: string; show: () => void }): JSX.Element {
  const { has, said, show } = of;
  const submit = (event: Event): void => {
    event.preventDefault();
    show();
  };
  return (
    <details open={!has && token.value !== ''}>
      <summary>{has ? 'Another token' : 'You have a token'}</summary>
      <form class="filter" onSubmit={submit}>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token.value}
            onInput={(event) => {
              token.value = event.currentTarget.value.trim();
            }}
          />
        </label>
        <button type="submit">Show it</button>
        <span role="status">{said}</span>
      </form>
    </details>
  );
}
