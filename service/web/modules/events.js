// Parses the server-sent events of a response body (EventSource cannot POST).

/** Yields `{event, data}`, with `data` parsed from JSON. */
export async function* events(body) {
  let rest = "";
  for await (const text of chunks(body)) {
    rest = (rest + text).replace(/\r\n/g, "\n");
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const found = parsed(block);
      if (found) yield found;
    }
  }
}

async function* chunks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader(); // Safari's streams do not iterate by themselves
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(block) {
  let event = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}
