// Translation as somebody types: one question at a time, the last one wins, and an older answer is never shown.

import { retrying } from "./retry.js";

export class Live {
  #timer = 0;
  #controller = new AbortController();

  /**
   * @param {(job: any, signal: AbortSignal, onPart: (part: any) => void) => Promise<any>} send
   * @param {{begun: Function, part: Function, done: Function, waiting: Function, failed: Function}} told
   *   what happens to the newest question, and only to that one
   */
  constructor(send, told) {
    this.send = send;
    this.told = told;
  }

  /** Asks after `delay` milliseconds, unless something else is asked before. */
  ask(job, delay = 0) {
    this.cancel();
    const controller = new AbortController();
    this.#controller = controller;
    this.#timer = setTimeout(() => this.#run(job, controller.signal), delay);
  }

  /** Gives up what is under way. */
  cancel() {
    clearTimeout(this.#timer);
    this.#controller.abort();
  }

  async #run(job, signal) {
    const newest = (tell) => (...given) => signal.aborted || tell(...given);
    newest(this.told.begun)(job);
    try {
      const answer = await retrying(() => this.send(job, signal, newest((part) => this.told.part(job, part))), {
        signal,
        onWait: newest(this.told.waiting),
      });
      newest(this.told.done)(job, answer);
    } catch (error) {
      newest(this.told.failed)(job, error);
    }
  }
}
