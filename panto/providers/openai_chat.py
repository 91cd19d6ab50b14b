"""Chat Completions, and the many servers that speak it: what is sent. What comes back: openai_chat_reply.py.

Switches (of the server or the model):
    system_role       "system" (default) or "developer"
    limit             "max_tokens" (default) or "max_completion_tokens"
    effort            how a reasoning level is asked for: "reasoning_effort" (default), "reasoning" (an object),
                      "thinking" (an object and the level), "template" (a chat template's switch), "none"
    levels            {level: the server's word}, where they differ; "" leaves the level out
    reasoning_field   where earlier reasoning goes back; default: the field it came in; "content": as a part of a list
                      there; "none": nowhere
    reasoning_blank   sent as reasoning of assistant messages that have none (the server insists on it)
    cache             "parts": cache_control on text parts; "key": a prompt_cache_key
    ids               "nine" for call ids of nine letters and digits
    after_tools       an assistant text put between results and a user's words, where the template insists on it
    result_name       true: results carry the tool's name
    system_inline     true: no system role; its text opens the first user message
    think             "open": the reply begins inside a <think> whose opening tag the template wrote
    members           further body members that options may name
"""

from __future__ import annotations

import re
from base64 import b64encode

import msgspec

from panto.providers.failure import Failure
from panto.providers.images import LIMITS, Gate
from panto.providers.lessons import Lessons
from panto.providers.model import ModelSpec, ProviderSettings
from panto.providers.names import Names
from panto.providers.openai_chat_reply import ChatReader
from panto.providers.schemas import for_reply, for_tool, is_strict
from panto.providers.shape import (
    Group,
    IdRule,
    Shaped,
    Shaper,
    Target,
    clean,
    images_of,
    instruct,
    result_text,
    wire_arguments,
)
from panto.providers.wire import (
    Prepared,
    Speller,
    cache_key,
    check_options,
    encode,
    forced,
    level_for,
    members,
    merged,
    place_of,
    raw,
    switches,
)
from panto.schema.messages import Image, Opaque, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec

PROTOCOL = "openai_chat"
OWNED = frozenset(("messages", "model", "tools", "stream", "n"))
KNOWN = OWNED | frozenset(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
    modalities moderation parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store
    stream_options temperature tool_choice top_logprobs top_p user verbosity web_search_options

    cache_prompt chat_template_kwargs dynatemp_range dynatemp_exponent dry_base dry_multiplier enable_thinking
    grammar id_slot ignore_eos json_schema min_p mirostat mirostat_eta mirostat_tau n_keep n_predict n_probs
    parse_tool_calls reasoning_format repeat_last_n repeat_penalty repetition_penalty samplers thinking_budget
    thinking_budget_tokens top_k top_n_sigma typical_p xtc_probability xtc_threshold

    add_generation_prompt allowed_token_ids bad_words best_of continue_final_message documents echo guided_choice
    guided_decoding_backend guided_grammar guided_json guided_regex include_reasoning include_stop_str_in_output
    length_penalty min_tokens mm_processor_kwargs priority prompt_logprobs skip_special_tokens structured_outputs
    truncate_prompt_tokens use_beam_search vllm_xargs

    keep_alive options think ttl draft_model

    include models plugins provider reasoning route session_id thinking tool_stream transforms usage verbosity zdr

    citation_options compound_custom disable_tool_validation search_parameters search_settings deferred
    prompt_mode random_seed safe_prompt prefix prompt_truncate_len context_length_exceeded_behavior""".split()
)
_IDS = IdRule(re.compile(r"[A-Za-z0-9_.:-]{1,40}"), "call_", 29)
_NINE = IdRule(re.compile(r"[A-Za-z0-9]{9}"), "", 9)
_OPTIONAL = ("stream_options", "parallel_tool_calls", "prompt_cache_key", "reasoning_effort", "store", "verbosity")


class OpenAIChat:
    """The wire of one provider that speaks Chat Completions."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._known = members(settings, KNOWN)
        self._speller = Speller()
        targets = (Target(settings.name, PROTOCOL, rule) for rule in (_IDS, _NINE))
        self._lessons = Lessons(place_of(settings, "").host)
        self._shapers = [Shaper(target, self._lessons.voided) for target in targets]
        self._limit = ""  # the limit's member, once a refusal taught it

    def key_headers(self, key: str) -> dict[str, str]:
        """See Wire."""
        return {"authorization": f"Bearer {key}"}

    def prepare(self, request: Request, spec: ModelSpec, *, stream: bool) -> Prepared:
        """See Wire."""
        on = switches(self._settings, spec)
        options = merged(self._settings.options, request.options)
        check_options(options, PROTOCOL, self._known, OWNED)
        names, tools = self._speller.tools(self._lessons.tools(request, spec), _tool)
        shaped = self._shapers[on.get("ids") == "nine"].shape(request)
        choice, instruction, note = forced(request, spec)
        if instruction:
            instruct(shaped, instruction)
            shaped.notes.append(note)
        body: dict[str, object] = {"model": request.model}
        if tools:
            body["tools"] = tools
            if choice.kind == "named":
                body["tool_choice"] = {"type": "function", "function": {"name": names.to_wire(choice.name)}}
            elif choice.kind != "auto":
                body["tool_choice"] = choice.kind
        gate = Gate(request, spec, LIMITS[PROTOCOL], self._lessons.images)
        body["messages"] = self._messages(shaped, gate, on, names)
        if limit := request.max_output or spec.max_output:
            body[self._limit or str(on.get("limit", "max_tokens"))] = limit
        body.update(_effort(request, spec, on))
        if request.schema:
            schema = for_reply(request.schema, PROTOCOL)
            shown = {"name": "reply", "schema": raw(schema), "strict": is_strict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shown}
        if on.get("cache") == "key":
            body["prompt_cache_key"] = cache_key(request, shaped.head)
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        for name in self._lessons.members - set(options):
            body.pop(name, None)
        reader = ChatReader(names, place_of(self._settings, request.model), on.get("think") == "open")
        return Prepared("/chat/completions", encode(merged(body, options)), reader, notes=shaped.notes)

    def adapt(self, failure: Failure, request: Request) -> str | None:
        """See Wire: optional members that a server does not know are left out from then on."""
        text = failure.detail
        if not self._limit and "max_tokens" in text and "max_completion_tokens" in text:
            self._limit = "max_completion_tokens"
            return ""
        return self._lessons.learn(failure, request, _OPTIONAL)

    # ------------------------------------------------------------ messages

    def _messages(self, shaped: Shaped, gate: Gate, on: dict[str, object], names: Names) -> list[object]:
        out: list[object] = []
        head = clean("\n\n".join(shaped.head))
        if head and not on.get("system_inline"):
            content: object = head
            if on.get("cache") == "parts":
                content = [{"type": "text", "text": head, "cache_control": {"type": "ephemeral"}}]
            out.append({"role": on.get("system_role", "system"), "content": content})
            head = ""
        opening = head

        def make(group: Group) -> list[dict[str, object]]:
            match group.kind:
                case "assistant":
                    return [_assistant(group, on, names)]
                case "results":
                    return _results(group, gate, on, names)
                case "user":
                    return [_user(group, gate, opening if group is shaped.groups[0] else "")]

        switched = tuple(str(on.get(name)) for name in ("reasoning_field", "reasoning_blank", "result_name"))
        spelt = self._speller.groups(shaped.groups, (gate.variant, opening, switched), make)
        before = ""
        for group, pieces in zip(shaped.groups, spelt, strict=True):
            if group.kind == "user" and before == "results" and on.get("after_tools"):
                out.append({"role": "assistant", "content": on["after_tools"]})
            out.extend(pieces)
            before = group.kind
        return out


def _tool(tool: ToolSpec, names: Names) -> dict[str, object]:
    function = {
        "name": names.to_wire(tool.name),
        "description": tool.description,
        "parameters": raw(for_tool(tool.schema, PROTOCOL)),
    }
    return {"type": "function", "function": function}


def _image(image: Image, gate: Gate) -> dict[str, object]:
    if instead := gate.stand_in(image):
        return {"type": "text", "text": instead}
    url = f"data:{image.media_type};base64,{b64encode(image.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _user(group: Group, gate: Gate, opening: str) -> dict[str, object]:
    """Text alone goes as a plain string, which every template takes."""
    content: list[dict[str, object]] = [{"type": "text", "text": opening}] if opening else []
    for message in group.messages:
        for part in message.parts:
            content.extend(_said(part, gate))
    if all(part["type"] == "text" for part in content):
        return {"role": "user", "content": "\n\n".join(str(part["text"]) for part in content)}
    return {"role": "user", "content": content}


def _said(part: Part, gate: Gate) -> list[dict[str, object]]:
    match part:
        case Text(text=text) if text.strip():
            return [{"type": "text", "text": clean(text)}]
        case Image():
            return [_image(part, gate)]
        case _:
            return []


def _assistant(group: Group, on: dict[str, object], names: Names) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant"}
    texts: list[str] = []
    calls: list[dict[str, object]] = []
    thoughts: dict[str, str] = {}
    extra: dict[str, object] = {}
    ids = iter(group.ids)
    for part in group.messages[0].parts:
        match part:
            case Text(text=text) if text.strip():
                texts.append(clean(text))
            case Reasoning(text=text) if group.keep:
                field = part.metadata.get(PROTOCOL, {}).get("field", "")
                thoughts[field] = thoughts.get(field, "") + clean(text)
            case Opaque(value=value) if group.keep:
                extra.update(_opaque(value))
            case ToolCall():
                function = {"name": names.to_wire(part.name), "arguments": wire_arguments(part)}
                calls.append({"id": next(ids), "type": "function", "function": function})
    message["content"] = "".join(texts) if texts else None
    field = str(on.get("reasoning_field", ""))
    for came_in, text in thoughts.items():
        place = field or came_in
        if place == "content" and text:
            said = [{"type": "text", "text": "".join(texts)}] if texts else []
            message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}, *said]
        elif place not in ("none", "think", "content", "") and not extra:
            message[place] = text
    if "reasoning_blank" in on and field and not str(message.get(field, "")).strip():
        message[field] = on["reasoning_blank"]
    message.update(extra)
    if calls:
        message["tool_calls"] = calls
    return message


def _opaque(value: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(value.encode(), type=dict[str, msgspec.Raw])


def _result(result: ToolResult, wire: str, on: dict[str, object], names: Names) -> dict[str, object]:
    message: dict[str, object] = {"role": "tool", "tool_call_id": wire}
    if on.get("result_name"):
        message["name"] = names.to_wire(result.name)
    message["content"] = result_text(result, flagged=True)
    return message


def _results(group: Group, gate: Gate, on: dict[str, object], names: Names) -> list[dict[str, object]]:
    """One message a result; images follow in a user message, since `tool` messages cannot hold any."""
    out: list[dict[str, object]] = []
    content: list[dict[str, object]] = []
    for result, wire in group.results:
        out.append(_result(result, wire, on, names))
        for image in images_of(result):
            content.append({"type": "text", "text": f"Image from {result.name}:"})
            content.append(_image(image, gate))
    return [*out, {"role": "user", "content": content}] if content else out


def _effort(request: Request, spec: ModelSpec, on: dict[str, object]) -> dict[str, object]:
    """How this server is asked for a reasoning level; nothing for a model without levels."""
    level = level_for(request.reasoning, spec.reasoning)
    if not level:
        return {}
    off = level == "off"
    levels = on.get("levels")
    word = str(levels.get(level, level)) if isinstance(levels, dict) else level
    match on.get("effort", "reasoning_effort"):
        case "reasoning_effort":
            return {"reasoning_effort": "none" if off else word} if word else {}
        case "reasoning":
            return {"reasoning": {"enabled": False} if off else {"effort": word}}
        case "thinking":
            thinking: dict[str, object] = {"thinking": {"type": "disabled" if off else "enabled"}}
            return thinking if off or not word else {**thinking, "reasoning_effort": word}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": not off}}
        case _:
            return {}
