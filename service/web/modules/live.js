// Translation while the user types: one request at a time, of which only the newest is shown.

import { withRetries } from "./retry.js";

export class LiveTranslation {
  #timer = 0;
  #controller = new AbortController();

  /**
   * @param {(job: any, signal: AbortSignal, onPart: (part: any) => void) => Promise<any>} send
   * @param {{begun: Function, part: Function, done: Function, waiting: Function, failed: Function}} handlers
   *   called for the newest request only
   */
  constructor(send, handlers) {
    this.send = send;
    this.handlers = handlers;
  }

  /** Sends a request after `delay` milliseconds, unless a newer one comes first. */
  ask(job, delay = 0) {
    this.cancel();
    const controller = new AbortController();
    this.#controller = controller;
    this.#timer = setTimeout(() => this.#run(job, controller.signal), delay);
  }

  /** Cancels the current request. */
  cancel() {
    clearTimeout(this.#timer);
    this.#controller.abort();
  }

  async #run(job, signal) {
    const newest = (tell) => (...given) => signal.aborted || tell(...given);
    newest(this.handlers.begun)(job);
    try {
      const answer = await withRetries(() => this.send(job, signal, newest((part) => this.handlers.part(job, part))), {
        signal,
        onWait: newest(this.handlers.waiting),
      });
      newest(this.handlers.done)(job, answer);
    } catch (error) {
      newest(this.handlers.failed)(job, error);
    }
  }
}
