// Every session method of the npm SDK's `v2` group (the routes under /api), called once at least, and what the other
// generation sees of it. Prints what was answered as JSON.

import { createOpencodeClient } from "@opencode-ai/sdk/v2/client"
import { arguments_, finish, Listener, note, tell, watched } from "./calls.mjs"

const [url, directory] = arguments_
const client = createOpencodeClient({ baseUrl: url, directory })
const session = watched("session", client.v2.session)
const permission = watched("permission", client.v2.session.permission)
const question = watched("question", client.v2.session.question)
const revert = watched("revert", client.v2.session.revert)
const model = { providerID: "scripted", id: "one" }

const closing = new AbortController()
const { signal } = closing
const events = new Listener((await client.v2.event.subscribe({ signal })).stream)
await events.until((event) => event.type === "server.connected")

// Sessions themselves, with an id of the caller's.
const sessionID = "ses_0123456789abCallerChosenId"
await tell("create", session.create({ id: sessionID, model, location: { directory } }))
await tell("get", session.get({ sessionID }))
await tell("list", session.list({ directory }))
await tell("active", session.active())

// The session's own stream from its beginning: all of the past, then what happens.
const own = new Listener((await session.events({ sessionID }, { signal })).stream)

// A prompt with an id of the caller's is admitted once, however often it is sent.
const hello = { sessionID, id: "msg_0123456789abCallerChosenId", prompt: { text: "[[text Said by the script.]]" } }
await tell("prompt", session.prompt(hello))
await tell("wait", session.wait({ sessionID }))
await tell("prompt again", session.prompt(hello))
await tell("prompt with other words", session.prompt({ ...hello, prompt: { text: "Otherwise" } }))
await tell("messages", session.messages({ sessionID, order: "asc" }))
await tell("message", session.message({ sessionID, messageID: hello.id }))
await tell("context", session.context({ sessionID }))

// A tool that is asked about.
await tell("prompt a tool", session.prompt({ sessionID, prompt: { text: "[[bash echo it-ran]] [[text Allowed.]]" } }))
const { data: asked } = await events.until((event) => event.type === "permission.v2.asked")
note("asked", asked)
await tell("permission.list", permission.list({ sessionID }))
await tell("permission.get", permission.get({ sessionID, requestID: asked.id }))
await tell("permission.reply", permission.reply({ sessionID, requestID: asked.id, reply: "once" }))
await tell("wait for the tool", session.wait({ sessionID }))
await tell("messages of a page", session.messages({ sessionID, limit: 1 }))

// A turn that is stopped in the middle.
const from = events.heard.length
await tell("prompt at length", session.prompt({ sessionID, prompt: { text: "[[slow 1000 50]]" } }))
await events.until((event) => event.type === "session.next.text.delta", from)
await tell("active while busy", session.active())
await tell("interrupt", session.interrupt({ sessionID }))
await tell("wait for the interrupt", session.wait({ sessionID }))
await tell("messages after the interrupt", session.messages({ sessionID, limit: 1 }))

// Who answers from now on, and a prompt that waits.
await tell("switchAgent", session.switchAgent({ sessionID, agent: "plan" }))
await tell("switchModel", session.switchModel({ sessionID, model }))
await tell("get switched", session.get({ sessionID }))
await tell("prompt not resumed", session.prompt({ sessionID, prompt: { text: "Later" }, delivery: "queue", resume: false }))

// A summary, and all that was recorded.
await tell("compact", session.compact({ sessionID }))
await tell("context after the summary", session.context({ sessionID }))
const history = await tell("history", session.history({ sessionID, limit: 100 }))
await tell("history of a page", session.history({ sessionID, after: 2, limit: 3 }))
const last = history.data.at(-1).durable.seq
await own.until((event) => event.durable?.seq >= last)
note("own", own.heard.filter((event) => event.durable.seq <= last))

// The other generation sees the same session.
const seen = await client.session.messages({ sessionID })
note("seen by the first", { status: seen.response.status, data: seen.data })

// What does not exist, what this floor does not serve yet, and a revert.
await tell("get of nothing", session.get({ sessionID: "ses_unknown" }))
await tell("message of nothing", session.message({ sessionID, messageID: "msg_unknown" }))
await tell("permission.create", permission.create({ sessionID, action: "bash", resources: ["ls"] }))
await tell("question.list", question.list({ sessionID }))
const answers = { answers: [["Left"]] }
await tell("question.reply to nothing", question.reply({ sessionID, requestID: "que_unknown", questionV2Reply: answers }))
await tell("question.reject of nothing", question.reject({ sessionID, requestID: "que_unknown" }))
await tell("revert.stage", revert.stage({ sessionID, messageID: hello.id }))
await tell("revert.clear", revert.clear({ sessionID }))
await tell("revert.commit", revert.commit({ sessionID }))

note("deltas", events.heard.filter((event) => event.type === "session.next.text.delta").map((event) => event.data.delta))
closing.abort()
finish()
