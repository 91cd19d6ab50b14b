---@meta panto
-- What `require('panto')` gives, for editors (lua-language-server) and for the reference page, which is made from this
-- file. A function marked @async waits: it works only in a task (a tool handler, a command, a hook, a function given to
-- `spawn`, an extension's main chunk and what it requires, a script's main chunk). All others work anywhere and return at
-- once. Failures are raised: a table { kind, message } with a string form, or a plain message with file and line.

---The agent surface: inside panto, and in a script run by `panto lua FILE`.
---@class panto
---@field ext panto.ext Only inside panto: what needs the running session.
---@field json panto.json
---@field fs panto.fs
local panto = {}

---@class panto.AgentSpec
---@field config? string|panto.Config A label "provider:alias", a table, or what `resolve_model` gave. Default: the lane agent's.
---@field store? panto.Store Where the session lies. Default: under the primary.
---@field session_id? string Opens exactly this session, or creates it.
---@field system_messages? (string|{[1]: string, [2]: table})[] Messages 1..n, written once at creation; each may have metadata.
---@field tools? panto.Declaration[] What its model may call. Default: the lane agent's declarations.
---@field base_prompt? boolean false leaves panto's own prompt out (structured workers).

---@class panto.Config
---@field model? string "provider:alias"
---@field reasoning? string One of the model's levels.
---@field tool_choice? string "auto", "none", "required", or the name of a tool that must be called.

---@class panto.Declaration
---@field name string
---@field description string
---@field schema? table|string JSON Schema; text keeps its bytes.

---A record as in stream-json: `type`, and what belongs to it; "turn_ended" is the last.
---  turn_started; step_started { step }, step_ended { step, usage, cost }; text_delta { text }, reasoning_delta { text }
---  tool_call { id, name, arguments }, tool_result { id, name, status, text, … }, progress { call, view }
---  question { id, kind, tool, arguments, … }, approved { id }
---  message { role, text, … }, notice, retry { wait_s, … }, reset { generation }: the deltas of this step do not count
---  turn_ended { status, text, usage, cost, error? }
---@class panto.Event
---@field type string
---@field text? string
---@field agent? string

---@class panto.Usage
---@field input integer
---@field output integer
---@field cache_read integer
---@field cache_write integer
---@field reasoning integer
---@field cost? number

---@class panto.Result
---@field id string The durable input's id.
---@field status "completed"|"failed"|"cancelled"
---@field text string
---@field error? {kind: string, message: string}
---@field limited boolean A limit stopped it (then status is "failed").
---@field resumable boolean The session exists, is intact and is not owned by another process.
---@field usage panto.Usage
---@field tool_calls {id: string, name: string, input: string}[] Calls that were not run; `input` is raw JSON.

---@class panto.Run
---@field prompt string|table[] Text, or blocks { type = "text", text } and { type = "image", media_type, data }.
---@field metadata? table A JSON object on the user message; never sent to the model.
---@field dispatch_tools? boolean false ends the turn at the first reply; its calls come back unresolved.
---@field limits? {steps?: integer, tokens?: integer, cost?: number, seconds?: number}
---@field id? string A durable id: if it is known, nothing is submitted again.
---@field detached? boolean Owned by the session, not by the call that opened it.
---@field wake_fd? integer Gets one byte for each event put into the buffer, and one at the end.

---Open or create an agent: `local a <close> = panto.agent { … }` closes it where its block ends, as jobs, streams and responses.
--- It takes directory, permissions, sandbox and hooks from the lane's agent, and can only narrow them.
---@async
---@param spec? panto.AgentSpec
---@return panto.Agent
function panto.agent(spec) end

---Sessions under another; default: under the primary.
---@param spec? {under?: string}
---@return panto.Store
function panto.session_store(spec) end

---The first job or task with an unread event or an end: its index. nil when `ms` are over.
---@async
---@param list (panto.Job|panto.Task)[]
---@param ms? number
---@return integer?
function panto.wait(list, ms) end

---Run a function as a task of its own. It ends with what spawned it, unless detached.
---@param fn fun(): ...
---@param options? {detached?: boolean}
---@return panto.Task
function panto.spawn(fn, options) end

---Wait. `sleep(0)` gives everybody else a turn: long work must do that before 100 ms are over.
---@async
---@param ms number
function panto.sleep(ms) end

---Run a program. `timeout` in milliseconds; it dies with panto.
---@async
---@param spec {argv: string[], cwd?: string, env?: table<string, string>, stdin?: string, timeout?: number}
---@return {code: integer, signal: integer, stdout: string, stderr: string, timed_out: boolean}
function panto.exec(spec) end

---One HTTP request. With `stream` the result is called for chunks (`for chunk in response do`). With `check` a status
---outside 200 to 299 raises { kind, message, status, retry_after }. With `endpoint` (in a protocol) give `path`, not `url`:
---address, headers and key are added out of sight; `auth` names the key's header if it is not `authorization`.
---@async
---@param spec {url?: string, endpoint?: any, path?: string, method?: string, headers?: table<string, string>, body?: string, stream?: boolean, check?: boolean, auth?: string}
---@return panto.Response
function panto.http(spec) end

---32 hex digits from the arguments: the same for the same values, in Lua and in Python.
---@param ... any
---@return string
function panto.derive_id(...) end

---A line for the log; `print` goes there too. `panto doctor` says where the log is; every line begins with the extension's name.
---@param ... any
function panto.log(...) end

---@class panto.Response
---@field status integer
---@field headers table<string, string>
---@field body? string Where `stream` is not asked for.
---@overload async fun(): string?
local Response = {}

---Give the connection back.
function Response:close() end

---@class panto.Task
local Task = {}

---Wait for its end: its results, or its error raised.
---@async
---@return ...
function Task:await() end

---nil while it runs; then true and its results, or false and its error.
---@return boolean?, ...
function Task:result() end

---Ask it to end: each of its waits raises { kind = "cancelled" }.
function Task:cancel() end

---@class panto.Agent
---@field id string The session's id.
---@field session_id string
local Agent = {}

---A turn as a stream: `for event in agent:run { prompt = "…" } do`. Leaving the loop early stops the turn. A failed turn raises.
---@async
---@param spec string|panto.Run
---@return panto.Stream
function Agent:run(spec) end

---A turn as a job that runs by itself, owned by the tool call, stream or extension that opened it.
---@async
---@param spec string|panto.Run
---@return panto.Job
function Agent:run_async(spec) end

---A durable input. `when` "steer" joins the running turn at its next step, "follow_up" waits for the turn after.
---@async
---@param spec string|{prompt: string|table[], when?: "steer"|"follow_up", id?: string, metadata?: table}
---@return string id
function Agent:submit(spec) end

---A copy of the declarations, schema as JSON text.
---@async
---@return panto.Declaration[]
function Agent:tools() end

---Exactly these from the next request on. A call to any other name is declined.
---@async
---@param list panto.Declaration[]
function Agent:set_tools(list) end

---Merge into what is in force.
---@async
---@param config string|panto.Config
function Agent:set_config(config) end

---Its conversation.
---@return panto.Conversation
function Agent:conversation() end

---Drop this handle; the last one releases the session. Outside a task it only asks for that.
---@async
function Agent:close() end

---@class panto.Stream
---@overload async fun(): panto.Event?
local Stream = {}

---The next event; nil after "turn_ended". A failed turn raises { kind, message }.
---@async
---@return panto.Event?
function Stream:next() end

---Ask the turn to stop; its last event still comes.
function Stream:cancel() end

---Stop the turn and let go of it.
---@async
function Stream:close() end

---@class panto.Job
local Job = {}

---The next unread event, or nil: `for event in job.next_event, job do … end` reads what there is. A task that polls without waiting gives the loop a turn after a few empty polls.
---@return panto.Event?
function Job:next_event() end

---The settled result, or nil while it runs.
---@return panto.Result?
function Job:result() end

---Wait for its end.
---@async
---@return panto.Result
function Job:await() end

---Ask it to stop; it settles within a second.
function Job:request_cancel() end

---It belongs to the session from now on.
---@async
function Job:detach() end

---End it where it runs, and free it; any other use of it is an error afterwards. Outside a task it only asks for that.
---@async
function Job:close() end

---@class panto.Message
---@field role "system"|"user"|"assistant"|"tool"
---@field text string
---@field parts table[]
---@field metadata? table

---Messages are numbered from 1, system messages included; numbers never change. `#conversation` counts them (and waits).
---@class panto.Conversation
local Conversation = {}

---Its number. It goes along with the next turn.
---@async
---@param text string
---@param metadata? table
---@return integer
function Conversation:add_system_message(text, metadata) end

---Its number. It goes along with the next turn.
---@async
---@param text string
---@param metadata? table
---@return integer
function Conversation:add_user_message(text, metadata) end

---A message's metadata, nil if it has none.
---@async
---@param i integer
---@return table?
function Conversation:message_metadata(i) end

---Set it: a JSON object, never sent to the model.
---@async
---@param i integer
---@param metadata table
function Conversation:set_message_metadata(i, metadata) end

---The full history, compacted messages included.
---@async
---@return panto.Message[]
function Conversation:messages() end

---@class panto.Store
local Store = {}

---Newest first.
---@async
---@param spec? {limit?: integer}
---@return {id: string, title: string, time: number, model: string, turns: integer, tokens: integer, cost?: number}[]
function Store:list(spec) end

---What is known of one session, nil if there is none.
---@async
---@param id string
---@return table?
function Store:metadata(id) end

---JSON: duplicate keys, NaN and trailing text are refused; a decoded object keeps the order of its keys; integers beyond 64
---bits keep their digits.
---@class panto.json
---@field null any JSON's null.
local json = {}

---@param value any Tables with positive integers are lists; `null` is null.
---@return string
function json.encode(value) end

---@param text string
---@return any
function json.decode(text) end

---Say that a table is a list (an empty one cannot tell).
---@param t? table
---@return table
function json.array(t) end

---Say that a table is an object.
---@param t? table
---@return table
function json.object(t) end

---Files; relative paths start in the agent's directory, `~` is the home. Contents are bytes. Reading what is not there gives nil.
---@class panto.fs
local fs = {}

---@async
---@param path string
---@return string?
function fs.read(path) end

---Written whole or not at all.
---@async
---@param path string
---@param text string
function fs.write(path, text) end

---@async
---@param path string
---@param text string
function fs.append(path, text) end

---Names, folders with a slash at the end.
---@async
---@param path string
---@return string[]?
function fs.list(path) end

---@async
---@param path string
---@return {kind: "file"|"directory"|"other", size: integer, mtime: number}?
function fs.stat(path) end

---With all folders above it.
---@async
---@param path string
function fs.mkdir(path) end

---A file or an empty folder; false if it was not there.
---@async
---@param path string
---@return boolean
function fs.remove(path) end

---@async
---@param path string
---@param to string
function fs.rename(path, to) end

---What needs the running session. Also here: `sleep, exec, http, fs, spawn, wait, json, derive_id, log`.
---@class panto.ext
---@field agent panto.Agent The agent of the current lane: who raised the call this task serves; in observers and protocols the primary.
---@field json panto.json
---@field fs panto.fs
---@field session panto.ext.session
---@field ui panto.ext.ui
---@field wire panto.ext.wire
local ext = {}

---@class panto.ToolSpec
---@field name string
---@field description string What the model reads.
---@field schema? table|string JSON Schema of the arguments.
---@field handler? fun(args: table, ctx: panto.Context): any A task. Returns text, any table (sent as JSON), or { content, details?, title?, fact?, is_error?, cancelled? }: `content` for the model (text, a table, or blocks), `details` a view, `title` and `fact` for the card. An error's message is what the model reads.
---@field mutates? boolean Does it change anything? Default true: after a crash nobody knows whether it happened.
---@field replay? boolean May a lost run be repeated? Default false.
---@field approval? "read"|"edit"|"command" What the permission mode sees in it. Default "read" if mutates is false, else "command".
---@field timeout? number Milliseconds.
---@field isolate? boolean Run in a worker process.
---@field external? boolean No handler: the call waits for an answer from outside.

---@class panto.Context
---@field session_id string
---@field run_id? string
---@field call_id? string
---@field effect_id string
---@field agent panto.Agent
---@field cwd string
---@field raw_arguments? string As the model wrote them.
local Context = {}

---Text or a view for the card of this call.
---@param what string|panto.View
function Context:progress(what) end

---Has the person asked to stop? A handler then has most of a second to return what it has.
---@return boolean
function Context:cancelled() end

---A live view on the card of this call.
---@param view panto.View
---@return panto.Component
function Context:set_component(view) end

---A view is data; text by itself is one too.
---  { type = "text", text, meaning? = "text" | "aside" | "accent" | "attention" | "wrong" | "added", tail? }
---  { type = "list", items }, { type = "table", columns, rows }: of texts
---  { type = "progress", label, share? }: share from 0 to 1
---  { type = "card", title, fact?, state? = "running" | "done" | "failed" | "stopped" | "waiting", children? }: views in it
---  { type = "diff", path, added, removed, hunks = { { old_start, new_start, lines = { { " " | "-" | "+", text }, … } }, … } }
---@class panto.View
---@field type "text"|"list"|"table"|"progress"|"card"|"diff"

---@class panto.Component
local Component = {}

---Show the table again after a change; it is copied at most once a frame.
function Component:invalidate() end

---Is it still shown?
---@return boolean
function Component:alive() end

---A tool the model may call.
---@param spec panto.ToolSpec
function ext.register_tool(spec) end

---A slash command. `handler` is a task and gets what was typed after the name; the text it returns is shown. `args` says in
---the menu what may follow. `complete` (a task, 1 s) gives values for the argument so far. With a component, or progress,
---it has a card; Escape asks it to end, as it does a tool's handler. One that was killed is not run again by itself: what
---it appended under `ctx.effect_id` is there, and a command of yours may go on with it.
---@param spec {name: string, description: string, args?: string, handler: (fun(args: string, ctx: panto.Context): string?), complete?: (fun(text: string): string[])}
function ext.register_command(spec) end

---What a stream's `next` gives, one a pull. A failure is raised as { kind, message, status?, retry_after? } with a kind of auth,
---permission, not_found, quota, rate_limited, overloaded, overflow, invalid_request, content_filter, server, connection,
---timeout, malformed.
---  { type = "response", id?, model?, created? }: how the server names this reply
---  { type = "text", text }, { type = "reasoning", text }: a piece
---  { type = "tool_call_start", index, name, id? }, { type = "tool_call_delta", index, text }, { type = "tool_call_end", index }
---  { type = "usage", input?, output?, cache_read?, cache_write?, reasoning? }: totals; a later one counts
---  { type = "finish", reason = "stop" | "length" | "tool_calls" | "content_filter" | "other", raw? }: the last part
---@class panto.Part
---@field type string

---What a protocol is asked. Messages are as panto keeps them: parts { type = "text" | "reasoning" | "image" | "tool_call" |
---"tool_result" | "opaque", … }; `origin` says which protocol and model wrote an assistant message.
---@class panto.Request
---@field model string The id for the wire.
---@field system? {name: string, text: string, cache?: boolean}[]
---@field messages {role: string, parts: table[], origin?: {provider: string, protocol: string, model: string}}[]
---@field tools? {name: string, description: string, schema: string}[] `schema` is JSON text.
---@field tool_choice? {kind: "auto"|"none"|"required"|"named", name?: string}
---@field reasoning? string
---@field max_output? integer
---@field schema? string JSON Schema of a structured reply.
---@field options table Members for the request body; unknown ones are to be refused.
---@field stream boolean false: whole replies are asked for.
---@field endpoint any For `http`; `endpoint.name` is the provider's name.
---@field agent string The session id of the agent that asks.
---@field session_id string The primary's.
---@field protocol string The name it is registered under.

---A wire protocol. `open` returns a stream { next, cancel_turn?, close? }; `next` gives a part, nil at the end, or `pending()`.
---`models` makes a provider of that name without any config.
---@param spec {name: string, open: (fun(request: panto.Request, handle: panto.Handle): table), cancel_turn?: fun(), close?: fun(), models?: table}
function ext.register_protocol(spec) end

---A theme. Colours are "#rrggbb": ground, text, aside, accent, attention, wrong, added; keyword, string, number, comment, name in
---code; band and code are grounds. What is missing comes from the dark or the light theme.
---@param spec {name: string, dark?: boolean, colors: table<string, string>}
function ext.register_theme(spec) end

---A key that runs a slash command or a function: "f6", "ctrl+g", "alt+n". A key that panto uses is not taken from it; the person
---is told.
---@param spec {key: string, description: string, command?: string, handler?: fun()}
function ext.register_shortcut(spec) end

---An item of the status line; the result changes its text (nil or "" hides it). Where the line is narrow, a higher priority
---stays longer.
---@param spec {key: string, text?: string, priority?: integer}
---@return fun(text?: string)
function ext.register_status(spec) end

---A hook or an observer. Hooks are tasks (5 s, dialogs not counted), of every agent, in the order of loading; their answers:
---  tool_call { call_id, name, arguments }: { block = true, reason } or { arguments }; the first block wins, a failure blocks
---  tool_result { call_id, name, content, is_error }: text, or { content?, is_error?, details? }
---  input { text, metadata }: text, { text }, { block = true, reason } or { handled = true, reason }
---  context {}: text, or a list of texts, added to what the model is sent and kept there
---  before_compact { instructions }: { summary } instead of one that a model writes
---  Observers may not wait, hear of the primary, and change nothing: session_start, session_end { cwd }, turn_start { turn },
---    turn_interrupt, turn_end { turn, reason = completed | failed | interrupted | refused | limited | ownership_lost | shutdown },
---    step_start { step }, step_end { step, usage, cost }, model_change { model | reasoning }, and names of your own (`emit`)
---@param event string
---@param fn fun(event: panto.HookEvent): any
function ext.on(event, fn) end

---@class panto.HookEvent
---@field name string The tool's in tool_call and tool_result, else the event's.
---@field agent? panto.Agent
---@field call_id? string
---@field arguments? table tool_call
---@field content? string tool_result
---@field is_error? boolean tool_result
---@field text? string input
---@field metadata? table input
local HookEvent = {}

---A live view on the card of the call this event is about.
---@param view panto.View
---@return panto.Component
function HookEvent:set_component(view) end

---Tell observers of a name of your own.
---@param name string
---@param payload? table
function ext.emit(name, payload) end

---The extension's own table of the configuration, `[extension.NAME]`.
---@return table
function ext.config() end

---The primary: id, root of the store, scope, cwd, model, reasoning; `attended`: somebody is there to be asked; `config_dir` and,
---where it is trusted, `project`: folders that may hold files for extensions.
---@return {id: string, root: string, scope: string, cwd: string, model: string, reasoning: string, attended: boolean, config_dir?: string, project?: string}
function ext.session_info() end

---An opaque configuration for `panto.agent` and `set_config`; fails before any request. Only model, reasoning, style and
---wire_model can be read.
---@async
---@param spec panto.Config
---@return panto.Config
function ext.resolve_model(spec) end

---The models that are known, at most `limit`.
---@async
---@param spec? {query?: string, limit?: integer}
---@return {label: string, context: integer, price_input?: number, price_output?: number, reasoning: string[], images: boolean, usable: boolean}[]
function ext.models(spec) end

---Something a person should know.
---@param spec string|{text: string, level?: "info"|"attention"|"wrong", hint?: string, key?: string}
---@param level? string
function ext.notify(spec, level) end

---In a protocol's `next`: nothing is ready; pull again after `ms`, or when woken.
---@param ms? number
function ext.pending(ms) end

---Durable facts of the extension's own in the session of the lane's agent: kept on fork, never sent to the model.
---@class panto.ext.session
local session = {}

---Written down when it returns; `value` is any JSON.
---@async
---@param kind string
---@param value any
function session.append(kind, value) end

---The values appended under this kind, oldest first.
---@async
---@param kind string
---@return any[]
function session.entries(kind) end

---Dialogs. Where nobody can answer, the default.
---@class panto.ext.ui
local ui = {}

---@param spec string|table As ext.notify.
---@param level? string
function ui.notify(spec, level) end

---Yes or no.
---@async
---@param title string
---@param spec? {reason?: string, default?: boolean}
---@return boolean
function ui.confirm(title, spec) end

---One of the choices.
---@async
---@param title string
---@param choices string[]
---@param spec? {reason?: string, default?: string}
---@return string?
function ui.select(title, choices, spec) end

---A line of text.
---@async
---@param title string
---@param spec? {reason?: string, default?: string}
---@return string?
function ui.input(title, spec) end

---What most protocols need, so that one fits on a page: `extensions/chat-protocol` is a whole one in fifty lines.
---@class panto.ext.wire
local wire = {}

---A stream that a task feeds: `fn(put)` may wait; what it puts is given in order, its error becomes the stream's. `put` takes
---the parts above, and makes protocols short: a part without content (nil, null, no text) is left out; of `response` the
---first counts; { type = "tool_call", index, id?, name?, text? } begins a call and adds to its arguments, whichever is there;
---the finish is given last, whenever it was put. Without one the stream fails as cut off.
---@param handle panto.Handle
---@param fn fun(put: fun(part?: table))
---@return table
function wire.stream(handle, fn) end

---A request in the form that most wires are near to. `messages` are { role, content, calls, reasoning?, id? }: `content` a list
---of { text } and { url, media_type, data } (an image, as a data URL too), `calls` a list of { id, name, arguments }; each
---result of a tool is a message of its own with the role "tool" and the call's `id`, its images follow as the user's.
---Reasoning is there where it is this protocol's own. `tools` are { name, description, parameters }; names are as a wire takes
---them, and `long` gives them back. `choice` is "auto", "none" or "required"; `forced` names a tool that must be called.
---@param request panto.Request
---@return {system?: string, messages: table[], tools?: table[], choice?: string, forced?: string, reasoning?: string, long: fun(name?: string): string?}
function wire.plain(request) end

---The options that the config sets for the body, as a new table; one that is not in `known` is refused.
---@param request panto.Request
---@param known table<string, any>
---@return table
function wire.options(request, known) end

---Ask an endpoint: an iterator of the answer's objects, one for each server-sent event, or one in all where `body.stream` is
---false. Statuses and errors inside the stream become failures of their kind (rate_limited, overflow, auth, …); `[DONE]` ends
---it. The iterator waits.
---@async
---@param spec {endpoint: any, path: string, body: table, headers?: table<string, string>, auth?: string, stream?: boolean}
---@return async fun(): table?
function wire.post(spec) end

---The usage part from a wire's own table; `paths` says where each number is: { input = "prompt_tokens", cache_read =
---"prompt_tokens_details.cached_tokens" }. nil where there is no table.
---@param from? table
---@param paths table<string, string>
---@return table?
function wire.usage(from, paths) end

---The `data` of server-sent events, decoded where it is a JSON object: `for data in wire.events(response) do`. The iterator waits.
---@param response panto.Response
---@return async fun(): any
function wire.events(response) end

---Two functions: a tool's name as a wire takes it that allows letters, digits, _ and -, and back.
---@return (fun(name: string): string), (fun(short: string): string)
function wire.names() end

---@class panto.Handle
local Handle = {}

---There is something: pull again.
function Handle:wake() end

return panto
