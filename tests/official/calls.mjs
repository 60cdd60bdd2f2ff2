// What the scripts of both SDK generations share: calls that are written down, and events that are waited for.

export const arguments_ = process.argv.slice(2)

// A walk that waits for what never comes says how far it got.
const DEADLINE_MS = 90_000
setTimeout(() => {
  console.error(`nothing more came after: ${Object.keys(told).join(", ")}`)
  process.exit(1)
}, DEADLINE_MS)

const told = {}
const called = {}

// A group of methods whose calls are known afterwards: a method that nobody calls would be noticed.
export function watched(name, group) {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(group)).filter(
    (method) => method !== "constructor" && typeof group[method] === "function" && isCall(group, method),
  )
  const seen = (called[name] = Object.fromEntries(methods.map((method) => [method, false])))
  return new Proxy(group, {
    get(target, method) {
      if (method in seen) seen[method] = true
      const found = target[method]
      return typeof found === "function" ? found.bind(target) : found
    },
  })
}

// Groups are read through accessors; only what is written as a method is a call.
function isCall(group, method) {
  return Object.getOwnPropertyDescriptor(Object.getPrototypeOf(group), method).get === undefined
}

// Await a call and write down how it was answered.
export async function tell(name, call) {
  const { data, error, response } = await call
  told[name] = { status: response?.status, data, error: error && shown(error) }
  return data
}

function shown(error) {
  return error instanceof Error ? { message: error.message, cause: error.cause } : error
}

export function note(name, value) {
  told[name] = value
}

// Events as they come, kept, with promises for those one waits for.
export class Listener {
  constructor(stream) {
    this.heard = []
    this.waiting = []
    this.ended = (async () => {
      for await (const event of stream) {
        this.heard.push(event)
        this.waiting = this.waiting.filter((one) => !this.settle(one))
      }
    })()
  }

  // The first event from place `from` on that fits.
  until(fits, from = 0) {
    return new Promise((resolve) => {
      const one = { fits, resolve, from }
      if (!this.settle(one)) this.waiting.push(one)
    })
  }

  settle(one) {
    const found = this.heard.slice(one.from).find(one.fits)
    if (found) one.resolve(found)
    return Boolean(found)
  }
}

// Say it all and go, whatever may still be open.
export function finish() {
  process.stdout.write(JSON.stringify({ told, called }), () => process.exit(0))
}
