// Repeats a request after a 429 or 503 with Retry-After, and when the network is back.

import { ServiceError, ConnectionError } from "./api.js";

const ATTEMPTS = 6;
const LONGEST_SECONDS = 60;

/**
 * Returns the result of `send`, which is called again if the error allows it.
 * @param {() => Promise<any>} send
 * @param {{signal: AbortSignal, onWait: (error: Error, seconds: number | null) => void}} options
 *   `onWait` is called each second of a wait; null while there is no network
 */
export async function withRetries(send, { signal, onWait }) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      if (error instanceof ConnectionError && !navigator.onLine) {
        onWait(error, null);
        await until(signal, (resolve) => addEventListener("online", resolve, { once: true, signal }));
      } else if (error instanceof ServiceError && error.retryAfter !== null && attempt < ATTEMPTS) {
        for (let seconds = Math.min(error.retryAfter, LONGEST_SECONDS); seconds > 0; seconds -= 1) {
          onWait(error, seconds);
          await until(signal, (resolve) => setTimeout(resolve, 1000));
        }
      } else {
        throw error;
      }
    }
  }
}

function until(signal, begin) {
  return new Promise((resolve, reject) => {
    const leave = () => reject(new DOMException("given up", "AbortError"));
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    begin(resolve);
  });
}
