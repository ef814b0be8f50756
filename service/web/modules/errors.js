// The banner of an error, with a button where a repetition may help.

import { ServiceError, ConnectionError } from "./api.js";
import { element } from "./dom.js";

export class ErrorBanner {
  /** @param {HTMLElement} place  role=alert */
  constructor(place, { onRetry, onKey }) {
    Object.assign(this, { place, onRetry, onKey });
  }

  clear() {
    this.place.hidden = true;
    this.place.replaceChildren();
  }

  /** Shows an automatic repetition. Screen readers get an unchanged text, without the seconds. */
  waiting(error, seconds) {
    const why = error instanceof ServiceError && error.status === 429 ? "Too many requests just now." : "The service is busy.";
    const text = seconds === null ? "No network. Goes on when it is back." : `${why} Trying again.`;
    if (this.place.firstChild?.textContent !== text) this.tell(text);
    if (seconds === null) return;
    const clock = this.place.querySelector(".clock") ?? element("span", { class: "clock", "aria-hidden": "true" });
    clock.textContent = ` in ${seconds} s`;
    this.place.append(clock);
  }

  failed(error) {
    if (error instanceof ServiceError && error.status === 403) this.onKey();
    const again = error instanceof ConnectionError || (error instanceof ServiceError && (error.status >= 500 || error.status === 429));
    const known = error instanceof ServiceError || error instanceof ConnectionError;
    this.tell(known ? error.message : "Something in this page went wrong.");
    if (!known) console.error(error);
    if (again || !known) this.place.append(element("button", { type: "button", onclick: this.onRetry }, "Try again"));
  }

  tell(message) {
    this.place.hidden = false;
    this.place.replaceChildren(element("span", {}, message));
  }
}
