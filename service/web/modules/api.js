// The service's public API, and nothing else. Paths are relative, so that a prefix before a proxy does no harm.

import { events } from "./events.js";

/** An answer that is no translation. `retryAfter` is in seconds, null where the service does not ask for a retry. */
export class Refusal extends Error {
  constructor(message, status, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Nothing answered. */
export class Unreachable extends Error {}

export class Service {
  /** @param {() => string} key the API key, or "" */
  constructor(key) {
    this.key = key;
  }

  languages(signal) {
    return this.#json("languages", { signal });
  }

  /** LibreTranslate's settings; an older service without them gets the defaults of the page. */
  async settings(signal) {
    try {
      return await this.#json("frontend/settings", { signal });
    } catch (error) {
      if (error instanceof Refusal && error.status === 404) return {};
      throw error;
    }
  }

  /** The answer to POST /translate. `onSegment` is told of each sentence, where the body asks for a stream. */
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
      else if (event === "error") throw refusal(data, data.status ?? 500, null);
    }
    throw new Unreachable("The connection ended before the translation did.");
  }

  /** The URL of a translated file. `onProgress` is told how much of the file has been sent, 0 to 1. */
  translateFile(file, source, target, { signal, onProgress = () => {} } = {}) {
    const form = new FormData();
    form.append("file", file);
    for (const [name, value] of Object.entries(this.#withKey({ source, target }))) form.append(name, value);
    const request = new XMLHttpRequest(); // fetch does not tell how much has been sent
    return new Promise((resolve, reject) => {
      request.upload.addEventListener("progress", (event) => onProgress(event.loaded / (event.total || 1)));
      request.addEventListener("load", () => {
        if (request.status === 200) resolve(parsed(request.responseText).translatedFileUrl);
        else reject(refusal(parsed(request.responseText), request.status, request.getResponseHeader("Retry-After")));
      });
      request.addEventListener("error", () => reject(new Unreachable("The service does not answer.")));
      request.addEventListener("abort", () => reject(new DOMException("given up", "AbortError")));
      signal?.addEventListener("abort", () => request.abort());
      request.open("POST", "translate_file");
      request.send(form);
    });
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
      throw error.name === "AbortError" ? error : new Unreachable("The service does not answer.");
    }
    if (response.ok) return response;
    throw refusal(parsed(await response.text()), response.status, response.headers.get("Retry-After"));
  }
}

/** A connection that breaks in the middle of a stream is nobody's bug. */
async function* connected(stream) {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof TypeError ? new Unreachable("The connection broke.") : error;
  }
}

function refusal(body, status, retryAfter) {
  const message = body.error ?? body.detail ?? `The service answered with status ${status}.`;
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const again = status === 429 || status === 503 ? (Number.isNaN(seconds) ? 2 : Math.max(seconds, 1)) : null;
  return new Refusal(String(message), status, again);
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
