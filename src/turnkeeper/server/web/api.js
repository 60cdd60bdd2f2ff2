// Calls to the server that served this page.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    throw new Refused(answer.status, `The server answered something that is not JSON (${answer.status}).`);
  }
  if (!answer.ok) {
    throw new Refused(answer.status, value?.data?.message ?? value?.message ?? `The server refused it (${answer.status}).`);
  }
  return value;
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);

/** A path with a query; what is null or undefined is left out. */
export function at(path, query) {
  const words = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return words.length ? `${path}?${new URLSearchParams(words)}` : path;
}

const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz";

/** A new id of a message. It is made here, so that a prompt that is sent twice is admitted once. */
export function messageId() {
  const random = crypto.getRandomValues(new Uint8Array(20));
  return `msg_${Date.now().toString(16).padStart(12, "0")}${[...random].map((one) => LETTERS[one % 36]).join("")}`;
}
