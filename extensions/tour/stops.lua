-- What the guide says and does, stop by stop. `call`: the tool it uses; then `next`, or `otherwise` where the call failed or
-- was refused. Without a call the turn ends, and the next prompt finds `next`. `alone`: the stop to make instead where
-- nobody can press a key. {file} is a file of the folder, {scratch} a folder of the tour's own.
return {
  welcome = {
    text = 'Welcome. I am the guide: no model, a script that comes with panto, so this costs nothing and needs no network. '
      .. 'The tools I use are the real ones, and where I write is a scratch folder, not your project.\n\n'
      .. 'First: what is in this folder?',
    call = 'ls', arguments = '{"path": "."}', next = 'read', otherwise = 'read',
  },
  read = {
    text = 'Each thing a model does is a card like this one; a click or **Ctrl+O** opens it. Now I read {what}.',
    call = 'read', arguments = '{"path": "{file}", "limit": 40}', next = 'write', otherwise = 'write',
  },
  write = {
    text = 'Reading needs no permission. Writing does: panto shows exactly what would be written, and waits. I would like '
      .. 'to write a small script, in `{scratch}`.\n\n'
      .. '**y** allows it once, **n** refuses and I go on without it, **Escape** stops me.',
    call = 'write', next = 'edit', otherwise = 'refused',
    arguments = [[{"path": "{scratch}/greeting.sh", "content": "name=world\necho \"hello, $name\"\n"}]],
  },
  edit = {
    text = 'An edit shows its difference, before and after. I change one line.',
    call = 'edit', next = 'run', otherwise = 'run',
    arguments = [[{"path": "{scratch}/greeting.sh", "edits": [{"old": "name=world", "new": "name=${USER:-you}"}]}]],
  },
  run = {
    text = 'And now I run it. A command is asked for too, unless a rule of yours allows it; **s** in the question allows '
      .. 'this one for the whole session.',
    call = 'bash', arguments = [[{"command": "sh '{scratch}/greeting.sh'"}]], next = 'turn', otherwise = 'turn',
  },
  refused = {
    text = 'Nothing was written then, so there is nothing to edit and run. A model is told the same, and finds another way. '
      .. '**Shift+Tab** changes what runs without a question.\n\n'
      .. 'One thing is left: **stopping**. Send me any word, and I start something that takes a minute.',
    next = 'sleep', alone = 'refused_alone',
  },
  refused_alone = {
    text = 'That was not allowed: without a screen nobody can be asked, and what needs a question is refused. '
      .. '`--mode auto` allows edits, rules in your config allow commands.\n\n'
      .. 'That is the tour as far as it goes without you. `panto` opens the screen, and `/tour` there shows the rest.',
    next = 'refused_alone',
  },
  turn = {
    text = 'That was a whole turn: prompt, calls, results, answer. Each step is written down before it happens: kill panto '
      .. 'at any moment, and `panto --continue` knows what was done, what was not, and what nobody can say.\n\n'
      .. 'One thing is left: **stopping**. Send me any word, and I start something that takes a minute; then press '
      .. '**Escape**.',
    next = 'sleep', alone = 'goodbye',
  },
  sleep = {
    text = 'This sleeps for a minute. Allow it, and press **Escape** while it runs.',
    call = 'bash', arguments = '{"command": "sleep 60"}', next = 'slept', otherwise = 'stopped',
  },
  stopped = {
    text = 'Escape ends anything within a second: what was done is kept, and the next prompt just works.\n\n'
      .. 'This was the tour. Now for real:\n\n'
      .. '- `/login` sets up a provider, `/model` picks a model; servers on this machine are found by themselves\n'
      .. '- `/help` lists keys and commands, `/resume` earlier sessions\n'
      .. '- **Shift+Tab** changes what runs without a question\n'
      .. '- `@` names a file, `!` runs a command of your own\n\n'
      .. 'The scratch folder was `{scratch}`; you may delete it.',
    next = 'over',
  },
  slept = {
    text = 'It ran to its end, since nobody pressed Escape. That was the tour.\n\n'
      .. '- `/login` sets up a provider, `/model` picks a model; servers on this machine are found by themselves\n'
      .. '- `/help` lists keys and commands, `/resume` earlier sessions',
    next = 'over',
  },
  goodbye = {
    text = 'That was a whole turn: prompt, calls, results, answer. Each step is written down before it happens: kill panto '
      .. 'at any moment, and `panto --continue` goes on.\n\n'
      .. '`panto login PROVIDER` sets up a provider, `panto models` lists what there is. The scratch folder was '
      .. '`{scratch}`; you may delete it.',
    next = 'over',
  },
  over = {
    text = 'The tour is over: I know nothing else. `/model` picks a model that does, `/login` sets up a provider, '
      .. '`/new` and then `/tour` begins again.',
    next = 'over',
  },
}
