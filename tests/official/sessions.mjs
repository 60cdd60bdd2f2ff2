// Every session method of an npm SDK client, first generation or second, called once at least against the routes both
// share. Prints what was answered as JSON.

import { createOpencodeClient as first } from "@opencode-ai/sdk/client"
import { createOpencodeClient as second } from "@opencode-ai/sdk/v2/client"
import { arguments_, finish, Listener, note, tell, watched } from "./calls.mjs"

const [url, directory, generation] = arguments_
const isFirst = generation === "first"
const client = (isFirst ? first : second)({ baseUrl: url, directory })
const model = { providerID: "scripted", modelID: "one" }
const text = (words) => [{ type: "text", text: words }]
const session = watched("session", client.session)

// One way to call both: the first takes a path, a query and a body apart, the second takes them as one.
const call = (method, { id, messageID, query, body } = {}) =>
  isFirst
    ? session[method]({ path: { id, messageID }, query, body })
    : session[method]({ sessionID: id, ...(messageID && { messageID }), ...query, ...body })

const closing = new AbortController()
const { stream } = isFirst
  ? await client.event.subscribe({ signal: closing.signal })
  : await client.event.subscribe({}, { signal: closing.signal })
const events = new Listener(stream)
await events.until((event) => event.type === "server.connected")

// Run a prompt that is not waited for, and return once its session rests.
async function rested(id, words, meanwhile = async () => {}) {
  const from = events.heard.length
  await tell("promptAsync", call("promptAsync", { id, body: { model, parts: text(words) } }))
  await meanwhile(from)
  await events.until((event) => event.type === "session.idle" && event.properties.sessionID === id, from)
}

// Allow what is asked, by the route each generation has for it.
const allow = (requestID) =>
  isFirst
    ? client.postSessionIdPermissionsPermissionId({ path: { id, permissionID: requestID }, body: { response: "once" } })
    : client.permission.reply({ requestID, reply: "once" })

// Sessions themselves.
const { id } = await tell("create", call("create", { body: { title: "Made by the SDK" } }))
const child = await tell("create a child", call("create", { body: { title: "A child", parentID: id } }))
await tell("get", call("get", { id }))
await tell("update", call("update", { id, body: { title: "Renamed by the SDK" } }))
await tell("children", call("children", { id }))
await tell("list", call("list"))
await tell("status", call("status"))

// Prompts, what they say and what they do.
const answer = await tell("prompt", call("prompt", { id, body: { model, parts: text("[[text Said by the script.]]") } }))
await rested(id, "[[todo sow;reap]] [[text Planned.]]")
await tell("todo", call("todo", { id }))
await rested(id, "[[bash echo it-ran]] [[text Allowed.]]", async (from) => {
  const { properties } = await events.until((event) => event.type === "permission.asked", from)
  note("asked", properties)
  await tell("permission", allow(properties.id))
})
await tell("messages", call("messages", { id }))
await tell("messages of a page", call("messages", { id, query: { limit: 2 } }))
await tell("message", call("message", { id, messageID: answer.info.id }))
await tell("diff", call("diff", { id, query: { messageID: answer.info.parentID } }))
await tell("shell", call("shell", { id, body: { agent: "build", command: "echo by-hand" } }))

// A turn that is stopped in the middle.
await rested(id, "[[slow 1000 50]]", async (from) => {
  await events.until((event) => event.type === "message.part.delta", from)
  note("status while busy", (await call("status")).data[id])
  await tell("abort", call("abort", { id }))
})
await tell("messages after the abort", call("messages", { id, query: { limit: 1 } }))

// Copies and summaries.
const fork = await tell("fork", call("fork", { id, body: { messageID: answer.info.id } }))
await tell("messages of the fork", call("messages", { id: fork.id }))
await tell("fork of all", call("fork", { id }))
await tell("summarize", call("summarize", { id, body: model }))
await tell("messages after the summary", call("messages", { id, query: { limit: 1 } }))

if (!isFirst) await onlySecond()

async function onlySecond() {
  const { info, parts } = answer
  const place = { sessionID: id, messageID: info.id }
  const part = watched("part", client.part)
  const said = parts.find((one) => one.type === "text")
  await tell("part.update", part.update({ ...place, partID: said.id, part: { ...said, text: "Said otherwise." } }))
  await tell("message with another text", call("message", { id, messageID: info.id }))
  await tell("part.delete", part.delete({ ...place, partID: said.id }))
  await tell("message without its text", call("message", { id, messageID: info.id }))
  await tell("deleteMessage", call("deleteMessage", { id, messageID: info.id }))
  await tell("message deleted", call("message", { id, messageID: info.id }))

  const permission = watched("permission", client.permission)
  await tell("permission.list", permission.list())
  await rested(id, "[[bash false]] [[text Not reached.]]", async (from) => {
    const { properties } = await events.until((event) => event.type === "permission.asked", from)
    await tell("permission.list while asked", permission.list())
    await tell("permission.respond", permission.respond({ sessionID: id, permissionID: properties.id, response: "reject" }))
  })
  await tell("permission.reply to nothing", permission.reply({ requestID: "per_unknown", reply: "once" }))

  const question = watched("question", client.question)
  await tell("question.list", question.list())
  await tell("question.reply to nothing", question.reply({ requestID: "que_unknown", answers: [["Left"]] }))
  await tell("question.reject of nothing", question.reject({ requestID: "que_unknown" }))
}

const init = `msg_0000000000010000000000${isFirst ? "once" : "more"}`
await tell("init", call("init", { id, body: { ...model, messageID: init } }))
await tell("messages of init", call("messages", { id, query: { limit: 2 } }))

// The end.
await tell("delete", call("delete", { id: child.id }))
await tell("get deleted", call("get", { id: child.id }))

// Sharing, commands, reverts.
await tell("share", call("share", { id }))
await tell("unshare", call("unshare", { id }))
await tell("command", call("command", { id, body: { command: "no-such-command", arguments: "" } }))
await tell("revert", call("revert", { id, body: { messageID: answer.info.id } }))
await tell("unrevert", call("unrevert", { id }))

note("events", events.heard.filter((event) => event.properties.sessionID === id))
closing.abort()
finish()
