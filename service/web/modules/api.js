// A client of the service's public API. Paths are relative, so that a proxy may add a prefix.

import { events } from "./events.js";
import { localized } from "./messages.js";

/** An error that the service answered with. `retryAfter` is in seconds, or null if a retry is not requested; `code` names
 *  the kind of error, "" if the service does not. */
export class ServiceError extends Error {
  constructor(message, status, retryAfter = null, code = "") {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.code = code;
  }
}

/** No answer was received. */
export class ConnectionError extends Error {}

export class Service {
  /** @param {() => string} key the API key, or "" */
  constructor(key) {
    this.key = key;
  }

  languages(signal) {
    return this.#json("languages", { signal });
  }

  models(signal) {
    return this.#json("models", { signal });
  }

  settings(signal) {
    return this.#json("frontend/settings", { signal });
  }

  /** Returns the answer to POST /translate. `onSegment` is called with each sentence of a stream. */
  async translate(body, { signal, onSegment = () => {} } = {}) {
    const response = await this.#send("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(this.#withKey(body)),
      signal,
    });
    if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) return response.json();
    for await (const { event, data } of connected(events(response.body))) {
      if (event === "segment") onSegment(data);
      else if (event === "done") return data;
      else if (event === "error") throw serviceError(data, data.status ?? 500, null);
    }
    throw new ConnectionError(localized("error.ended"));
  }

  /** Returns the answer to POST /translate_file. `fields` are the languages and options; for `options` see #upload. */
  translateFile(file, fields, options) {
    return this.#upload("POST", "translate_file", file, { ...fields, tmx: true, quality: true }, options);
  }

  /** Returns the translation memories of the key. */
  async memories() {
    return (await this.#json("memories", { headers: this.#keyHeader })).memories;
  }

  /** Stores the sentences of a file in the memory `name`, which is that of the file if left out; for `options` see #upload. */
  putMemory(file, source, target, { name, ...options } = {}) {
    return this.#upload("PUT", "memories", file, { source, target, ...(name ? { name } : {}) }, options);
  }

  async deleteMemory(id) {
    await this.#send(`memories/${id}`, { method: "DELETE", headers: this.#keyHeader });
  }

  /** Sends a form with a file. `onProgress` is called with the part that has been sent, from 0 to 1. */
  #upload(method, path, file, fields, { signal, onProgress = () => {} } = {}) {
    const form = new FormData();
    form.append("file", file);
    for (const [name, value] of Object.entries(this.#withKey(fields))) form.append(name, value);
    const request = new XMLHttpRequest(); // fetch does not report the progress of an upload
    return new Promise((resolve, reject) => {
      request.upload.addEventListener("progress", (event) => onProgress(event.loaded / (event.total || 1)));
      request.addEventListener("load", () => {
        if (request.status === 200) resolve(parsed(request.responseText));
        else reject(serviceError(parsed(request.responseText), request.status, request.getResponseHeader("Retry-After")));
      });
      request.addEventListener("error", () => reject(new ConnectionError(localized("error.no-answer"))));
      request.addEventListener("abort", () => reject(new DOMException("cancelled", "AbortError")));
      signal?.addEventListener("abort", () => request.abort());
      request.open(method, path);
      request.send(form);
    });
  }

  /** Returns the languages of a text, the likeliest first: `{language, confidence}` with a confidence from 0 to 100. */
  async detect(text, signal) {
    const headers = { "Content-Type": "application/json" };
    return this.#json("detect", { method: "POST", headers, body: JSON.stringify(this.#withKey({ q: text })), signal });
  }

  /** Sends a better translation of a text to POST /suggest. */
  async suggest(body) {
    const headers = { "Content-Type": "application/json" };
    await this.#send("suggest", { method: "POST", headers, body: JSON.stringify(this.#withKey(body)) });
  }

  /** For requests whose key must not be a part of the address. */
  get #keyHeader() {
    const key = this.key();
    return key ? { Authorization: `DeepL-Auth-Key ${key}` } : {};
  }

  #withKey(body) {
    const key = this.key();
    return key ? { ...body, api_key: key } : body;
  }

  async #json(path, options) {
    return (await this.#send(path, options)).json();
  }

  async #send(path, options) {
    let response;
    try {
      response = await fetch(path, { ...options, credentials: "same-origin" });
    } catch (error) {
      throw error.name === "AbortError" ? error : new ConnectionError(localized("error.no-answer"));
    }
    if (response.ok) return response;
    throw serviceError(parsed(await response.text()), response.status, response.headers.get("Retry-After"));
  }
}

/** Reports a connection that breaks during a stream as such. */
async function* connected(stream) {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof TypeError ? new ConnectionError(localized("error.broken")) : error;
  }
}

/** The keys of the messages of errors that readers see in their own language, by code. */
const LOCALIZED = {
  invalid_key: "error.invalid-key",
  missing_key: "error.missing-key",
  quota_exceeded: "error.quota",
  unsupported_language: "error.languages",
  invalid_document: "error.document",
  parsing_limit_exceeded: "error.too-large",
  body_too_large: "error.too-large",
  cannot_translate: "error.cannot-translate",
  deadline_exceeded: "error.deadline",
};

function serviceError(body, status, retryAfter) {
  const own = LOCALIZED[body.code];
  const reason = String(body.detail ?? body.error ?? localized("error.status", { status: String(status) })); // in English
  const message = own ? localized(own, { reason }) : reason;
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const again = status === 429 || status === 503 ? (Number.isNaN(seconds) ? 2 : Math.max(seconds, 1)) : null;
  return new ServiceError(message, status, again, String(body.code ?? ""));
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
