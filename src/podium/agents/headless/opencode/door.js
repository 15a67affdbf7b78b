// Podium's side of opencode: a plugin, written into the private home of a turn beside `door.json`.
//
// Before every use of a tool it asks Podium, by a process of its own, and throws unless the answer is yes.
// opencode goes on without a plugin that cannot be loaded. Its settings therefore deny everything, and it is
// this plugin that lifts that: no plugin, no tools.
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

const LONGEST_REASON = 4000
const LONGEST_OUTPUT = 2000
// Half a character may take six bytes on its way, and the door takes a million in all.
const LONGEST_CHANGE = 150000
const FILE_MARKS = ["*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"]
const OTHER_MARKS = ["*** Begin Patch", "*** End Patch", "*** End of File"]

const settings = JSON.parse(readFileSync(new URL("./door.json", import.meta.url), "utf8"))
// What opencode runs itself inherits its environment: keys are no business of a shell command.
for (const name of settings.hidden) delete process.env[name]

// From here on no more code comes in: plugins and tools of the workspace would act without asking.
Bun.plugin({
  name: "podium",
  setup(build) {
    build.onLoad({ filter: /.*/ }, ({ path }) => {
      tell({ kind: "kept_out", path })
      throw new Error(`podium: ${path} is not loaded`)
    })
  },
})
const openLibrary = process.dlopen
process.dlopen = (module, path, ...rest) => {
  if (!String(path).startsWith("/$bunfs/")) throw new Error(`podium: ${path} is not loaded`)
  return openLibrary.call(process, module, path, ...rest)
}

function tell(record) {
  process.stdout.write(JSON.stringify({ podium: record }) + "\n")
}

// Never between the halves of one character.
function cut(text, longest) {
  const high = text.charCodeAt(longest - 1)
  return text.slice(0, high >= 0xd800 && high < 0xdc00 ? longest - 1 : longest)
}

// What is too long to be handed on whole is told apart from all else by its digest.
function whole(text) {
  if (text.length <= LONGEST_CHANGE) return text
  const digest = createHash("sha256").update(text).digest("hex")
  return `${cut(text, LONGEST_CHANGE)}\nsha256:${digest}`
}

function ask(tool, input, ref) {
  const event = { hook_event_name: "PreToolUse", tool_name: tool, tool_input: input, tool_use_id: ref }
  return new Promise((allow, deny) => {
    const [program, ...words] = settings.command
    const asking = spawn(program, words, { env: settings.env, stdio: ["pipe", "ignore", "pipe"] })
    let reason = ""
    const late = setTimeout(() => asking.kill("SIGKILL"), settings.seconds * 1000)
    asking.stderr.setEncoding("utf8")
    asking.stderr.on("data", (piece) => (reason = cut(reason + piece, LONGEST_REASON)))
    asking.stdin.on("error", () => {})
    asking.on("error", (error) => deny(new Error(`podium: the hook did not start (${error.message}); denied`)))
    asking.on("close", (code) => {
      clearTimeout(late)
      if (code === 0) allow()
      else deny(new Error(reason.trim() || `podium: the hook ended with ${code}; denied`))
    })
    asking.stdin.end(JSON.stringify(event))
  })
}

// A patch may change many files: each is asked for by itself.
function filesOf(patch) {
  const files = []
  for (const line of String(patch).split("\n")) {
    // As opencode reads them: no regular expression, whose dot stops at line ends of other kinds.
    const mark = FILE_MARKS.find((each) => line.startsWith(each))
    if (mark) {
      const kind = mark.slice(4, -1).replace(" File", "").toLowerCase()
      files.push({ kind, path: line.slice(mark.length).trim() })
    } else if (line.trimStart().startsWith("***") && !OTHER_MARKS.includes(line.trim())) {
      throw new Error("podium: the patch has a line that begins with *** and is no mark; denied")
    }
  }
  return files
}

async function askForPatch(args, ref) {
  const files = filesOf(args.patchText)
  if (files.length === 0) throw new Error("podium: the patch names no file; denied")
  const change = whole(String(args.patchText))
  for (const [number, file] of files.entries()) {
    await ask("apply_patch", { ...file, change }, number === 0 ? ref : `${ref}#${number}`)
  }
}

function relayPart(part) {
  if (part.type === "step-finish")
    tell({ kind: "usage", part: part.id, reason: part.reason, tokens: part.tokens, cost: part.cost })
  if (part.type !== "tool") return
  const { status, output, error, metadata } = part.state
  tell({
    kind: "tool",
    status,
    call: part.callID,
    tool: part.tool,
    files: part.tool === "apply_patch" ? filesOf(part.state.input?.patchText).length : 1,
    output: typeof output === "string" ? cut(output, LONGEST_OUTPUT) : "",
    exit: typeof metadata?.exit === "number" ? metadata.exit : null,
    error: typeof error === "string" ? cut(error, LONGEST_OUTPUT) : "",
  })
}

let model = ""
function relayModel(message) {
  if (message.role !== "assistant" || !message.modelID || model) return
  model = `${message.providerID}/${message.modelID}`
  tell({ kind: "model", model })
}

function relay({ type, properties }) {
  if (type === "message.part.updated") relayPart(properties.part)
  else if (type === "message.updated") relayModel(properties.info)
  else if (type === "message.part.delta" && properties.field === "text")
    tell({ kind: "delta", text: String(properties.delta) })
  else if (type === "session.status" && properties.status.type === "retry")
    tell({ kind: "retry", ...properties.status })
}

export const PodiumDoor = async () => ({
  config: async (config) => {
    config.permission = settings.permission
    tell({ kind: "ready" })
  },
  event: async ({ event }) => relay(event),
  "tool.execute.before": async ({ tool, callID }, { args }) => {
    // Podium answers only what it was told of here: a command could find `door.json` and ask as well.
    tell({ kind: "asking", call: callID })
    try {
      if (tool === "apply_patch") await askForPatch(args, callID)
      else await ask(tool, args, callID)
    } finally {
      tell({ kind: "asked", call: callID })
    }
  },
})
