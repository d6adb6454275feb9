// The page's pulse. Browsers slow the timers of a hidden tab down to one a minute, and a place in
// line is lost by then; those of a worker go on.
import type { Pulse } from './messages';

onmessage = ({ data }: MessageEvent<Pulse>): void => {
  setInterval(() => postMessage(null), data.every_ms);
};
