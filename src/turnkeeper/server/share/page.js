"use strict"
// Shows a shared session and follows it. The secret stays in the fragment and travels in a header only.

const id = location.pathname.split("/")[2]
const secret = location.hash.slice(1)
const articles = document.getElementById("articles")
const shown = new Map()
const PAUSE_MAX_MS = 30000

// The server escapes everything that a session holds. The policy of this page lets no inline script run in any case.
const trusted = window.trustedTypes
  ? trustedTypes.createPolicy("turnkeeper-share", { createHTML: (html) => html })
  : { createHTML: (html) => html }

function say(text) {
  document.getElementById("state").textContent = text
}

function element(html) {
  const template = document.createElement("template")
  template.innerHTML = trusted.createHTML(html)
  return template.content.firstElementChild
}

function keepOpen(before, after) {
  const old = before.querySelectorAll("details")
  after.querySelectorAll("details").forEach((one, index) => {
    if (old[index]) one.open = old[index].open
  })
}

function outline(prompts) {
  const rows = prompts.map(([key, text]) => {
    const link = document.createElement("a")
    link.href = "#" + secret
    link.textContent = text
    // A link of its own fragment would take the secret out of the address.
    link.addEventListener("click", (event) => {
      event.preventDefault()
      const target = shown.get(key)
      if (target) target.scrollIntoView()
    })
    const row = document.createElement("li")
    row.append(link)
    return row
  })
  document.getElementById("prompts").replaceChildren(...rows)
}

function apply(frame) {
  document.getElementById("title").textContent = frame.title || "Shared session"
  const wanted = new Set(frame.order)
  for (const [key, node] of shown) {
    if (!wanted.has(key)) {
      node.remove()
      shown.delete(key)
    }
  }
  let last = null
  for (const key of frame.order) {
    const html = frame.changed[key]
    if (html !== undefined) {
      const made = element(html)
      const before = shown.get(key)
      if (before) {
        keepOpen(before, made)
        before.replaceWith(made)
      }
      shown.set(key, made)
    }
    const node = shown.get(key)
    if (!node) continue
    const place = last ? last.nextSibling : articles.firstChild
    if (node !== place) articles.insertBefore(node, place)
    last = node
  }
  outline(frame.prompts)
  say(frame.expires ? "Live. Shared until " + new Date(frame.expires).toLocaleString() + "." : "Live.")
}

function withdrawn() {
  shown.clear()
  articles.replaceChildren()
  outline([])
  document.getElementById("footer").textContent = ""
  document.getElementById("title").textContent = "Shared session"
  say("This link was withdrawn, has expired, or is not complete. Ask who sent it for a new one.")
}

// Resolves to true if the link is gone, and to false if the connection broke.
async function follow() {
  const answer = await fetch("/share/" + encodeURIComponent(id) + "/stream", {
    headers: { "x-share-secret": secret },
    cache: "no-store",
    credentials: "omit",
    referrerPolicy: "no-referrer",
  })
  if (answer.status === 404 || answer.status === 400) return true
  if (!answer.ok) return false
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return false
    const lines = (rest + value).split("\n")
    rest = lines.pop()
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue
      const frame = JSON.parse(line.slice(6))
      if (frame.gone) return true
      apply(frame)
    }
  }
}

async function main() {
  if (!secret) return withdrawn()
  for (let pause = 500; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
    try {
      const began = Date.now()
      if (await follow()) return withdrawn()
      if (Date.now() - began > PAUSE_MAX_MS) pause = 500
    } catch (error) {
      // The network: tried again below.
    }
    say("Reconnecting.")
    await new Promise((resume) => setTimeout(resume, pause))
  }
}

main()
