"""The annotations say exactly what the host has, and which of it waits; the page is what they say."""

import re
from pathlib import Path

from panto.lua import host, reference
from panto.lua.host import Host

ENTRIES = {
    entry.name: entry for group in reference.groups(reference.ANNOTATIONS.read_text()) for entry in group.entries
}

NAMES = """function(H)
  local out, panto = {}, H.panto
  local function list(prefix, t, skip)
    for name, v in pairs(t) do
      if type(v) == 'function' and not name:match('^__') and not (skip and skip[name] == v) then
        out[#out + 1] = prefix .. name
      end
    end
  end
  list('panto.', panto) list('panto.json.', panto.json) list('panto.fs.', panto.fs)
  list('panto.ext.', panto.ext, panto)
  for _, name in ipairs { 'session', 'ui', 'wire' } do list('panto.ext.' .. name .. '.', panto.ext[name]) end
  for name, class in pairs(H.classes) do list(name .. ':', class) end
  return out
end"""


def names() -> set[str]:
    made = Host(asks={"primary": lambda: "", "is_turn_event": lambda name: False})
    return set(made.lua.eval(NAMES)(made.private).values())


def test_every_name_of_the_host_is_annotated_and_no_other() -> None:
    assert set(ENTRIES) == names()


WAIT_LATER = {"job:next_event", "job:result"}
"""These give a task's loop a turn now and then; they work anywhere."""


def waiting() -> dict[str, bool]:
    """Whether the body of each function of the prelude waits."""
    found: dict[str, bool] = {}
    for name in host.PRELUDE:
        source = (Path(host.__file__).parent / "prelude" / f"{name}.lua").read_text()
        pieces = re.split(r"^(?:local )?function ([\w.:]+)\(", source, flags=re.MULTILINE)
        for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
            inner = re.split(r"^end$", body, maxsplit=1, flags=re.MULTILINE)[0]
            owner, _, last = heading.rpartition(":") if ":" in heading else heading.rpartition(".")
            prefix = reference.PREFIX.get("HookEvent" if owner == "Event" else owner.rpartition(".")[2], owner)
            found[f"{prefix}{':' if ':' in heading else '.'}{last}"] = bool(re.search(r"\bawait\(|\bext\.http ", inner))
    return found


def test_what_is_marked_await_waits_and_nothing_else_does() -> None:
    source = waiting()
    made_in_a_loop = {name for name in ENTRIES if name.startswith("panto.fs.")}
    checked = set(ENTRIES) & set(source)
    assert len(checked) > 60
    assert set(ENTRIES) - checked <= made_in_a_loop | {
        "panto.derive_id", "panto.json.array", "panto.json.object", "panto.ext.notify",
    }  # fmt: skip
    marked = {name for name in checked if ENTRIES[name].waits}
    waits = {name for name in checked if source[name]} - WAIT_LATER
    assert marked == waits
    assert all(ENTRIES[name].waits for name in made_in_a_loop)


AWAIT = (
    "panto.agent agent:run stream:next agent:run_async agent:submit panto.wait job:await job:detach job:close"
    " task:await stream:close agent:close agent:tools agent:set_tools agent:set_config conversation:add_system_message"
    " conversation:add_user_message conversation:message_metadata conversation:set_message_metadata"
    " conversation:messages store:list store:metadata panto.ext.session.append panto.ext.session.entries"
    " panto.ext.resolve_model panto.ext.models panto.ext.ui.confirm panto.ext.ui.select panto.ext.ui.input"
    " panto.sleep panto.exec panto.http panto.fs.read panto.fs.write panto.fs.list panto.fs.stat panto.fs.mkdir"
    " panto.fs.remove panto.fs.rename panto.fs.append"
).split()
NOW = (
    "job:next_event job:result job:request_cancel stream:cancel task:result task:cancel component:invalidate"
    " component:alive ctx:cancelled ctx:progress ctx:set_component event:set_component handle:wake response:close"
    " panto.ext.emit panto.ext.notify panto.ext.ui.notify panto.log panto.ext.register_tool panto.ext.register_command"
    " panto.ext.register_protocol panto.ext.register_theme panto.ext.register_shortcut panto.ext.register_status"
    " panto.ext.on panto.ext.session_info panto.ext.config panto.ext.pending panto.spawn panto.derive_id"
    " panto.json.encode panto.json.decode panto.json.array panto.json.object agent:conversation panto.session_store"
).split()


def test_the_names_that_authors_rely_on_are_there_and_wait_or_do_not() -> None:
    assert {name: ENTRIES[name].waits for name in AWAIT} == dict.fromkeys(AWAIT, True)
    assert {name: ENTRIES[name].waits for name in NOW} == dict.fromkeys(NOW, False)
    alike = ("sleep", "exec", "http", "fs", "spawn", "derive_id", "log", "json", "wait")
    made = Host(asks={"primary": lambda: "", "is_turn_event": lambda name: False})
    same = made.lua.eval("function(H, n) return H.panto[n] ~= nil and H.panto.ext[n] == H.panto[n] end")
    assert all(same(made.private, name) for name in alike)


def test_the_page_is_made_from_the_annotations() -> None:
    assert reference.PAGE.read_text() == reference.page(reference.ANNOTATIONS.read_text())


def test_every_name_says_what_it_does() -> None:
    silent = {name for name, entry in ENTRIES.items() if not entry.text}
    assert silent <= {
        "panto.json.encode", "panto.json.decode", "panto.fs.read", "panto.fs.append", "panto.fs.stat",
        "panto.fs.rename", "panto.ext.register_theme", "panto.ext.session.append", "panto.ext.ui.notify",
        "panto.ext.ui.confirm", "panto.ext.ui.select", "panto.ext.ui.input",
    }  # fmt: skip
