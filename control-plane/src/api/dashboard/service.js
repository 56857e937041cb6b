// Speaks to the service: with the token where there is one, and for ever.

const TOKEN = "sluicegate-admin-token";
// Something comes each second, so a stream that says nothing for this long is broken.
const SILENT_MS = 5000;
const RETRY_MS = 1000;

/** An answer that is not the one asked for; its message is for people. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Called when a token is wanted, with why; resolves to one. */
let askToken = null;
let asking = null;

export function onToken(ask) {
  askToken = ask;
}

/** GET of JSON, or POST where there is a body. */
export async function ask(path, body) {
  const response = await send(path, { body });
  return response.json();
}

/** Follows the events for ever. `start` is called with each new stream's overview, `event` with what follows, and `broken`
    whenever there is no stream. */
export async function follow({ start, event, broken }) {
  for (;;) {
    try {
      await followOnce(start, event);
      broken("the stream ended");
    } catch (error) {
      broken(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function followOnce(start, event) {
  const watch = new AbortController();
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => watch.abort(new Error("the service is silent")), SILENT_MS);
  };
  try {
    const response = await send("v1/events", { signal: watch.signal });
    alive();
    // Only now, so that no second is between the two; the reader drops those that are in both.
    start(await ask("v1/overview"));
    let rest = "";
    for await (const text of chunks(response.body)) {
      alive();
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop();
      blocks.forEach((block) => dispatch(block, event));
    }
  } finally {
    clearTimeout(timer);
    watch.abort();
  }
}

// Not every browser can iterate a stream.
async function* chunks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

function dispatch(block, event) {
  const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
  if (fields.data) event(fields.event, JSON.parse(fields.data));
}

/** Asks for a token as often as one is wanted. Fetch rather than EventSource, which can't send one. */
async function send(path, { body, signal }) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = {};
    if (token) headers.authorization = `Bearer ${token}`;
    if (body) headers["content-type"] = "application/json";
    const method = body ? "POST" : "GET";
    const response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
    if (response.ok) return response;
    if (response.status !== 401) throw new Refused(response.status, await reason(response));
    // Another request may have got a token in the meantime.
    if (token !== sessionStorage.getItem(TOKEN)) continue;
    asking ??= askToken(token !== null).finally(() => { asking = null; });
    sessionStorage.setItem(TOKEN, await asking);
  }
}

async function reason(response) {
  const problem = await response.json().catch(() => ({}));
  return problem.detail ?? `${response.status} ${response.statusText}`;
}
