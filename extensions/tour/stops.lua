-- What the guide says and does, stop by stop. {file} is a file of the folder, {scratch} a folder of the tour's own.
return {
  {
    text = 'Welcome. I am a guide, not a model: a script in Lua that comes with panto, so this costs nothing '
      .. 'and needs no '
      .. 'network. What I use are the real tools. First: what is in this folder?',
    call = 'ls', arguments = '{"path": "."}',
  },
  {
    text = 'Each thing a model does is a card like this one; **Ctrl+O** opens it. Now I read {file}.',
    call = 'read', arguments = '{"path": "{file}", "limit": 40}',
  },
  {
    text = 'Reading needs no permission, writing does: you see exactly what would be written. I would like to '
      .. 'write a small '
      .. 'script, outside your project.\n\n**y** allows it once, **n** refuses and I go on without it, '
      .. '**Escape** stops me.',
    call = 'write', arguments = [[{"path": "{scratch}/greeting.sh", "content": "name=world\necho \"hello, $name\"\n"}]],
  },
  {
    text = 'An edit is shown as a diff. I change one line.',
    call = 'edit',
    arguments = [[{"path": "{scratch}/greeting.sh", "edits": [{"old": "name=world", "new": "name=${USER:-you}"}]}]],
  },
  {
    text = 'And now I run it. A command is asked for too, unless a rule of yours allows it; **s** in the '
      .. 'question allows it for '
      .. 'this session.',
    call = 'bash', arguments = [[{"command": "sh '{scratch}/greeting.sh'"}]],
  },
  {
    text = 'That was a whole turn: prompt, calls, results, answer. Each step was written down before it '
      .. 'happened: kill panto '
      .. 'at any moment, and `panto --continue` knows what was done, what was not, and what nobody can '
      .. 'say.\n\nOne thing is '
      .. 'left, **stopping**. Send me any word; I start something that takes a minute, and you press **Escape**.',
  },
  {
    text = 'This sleeps for a minute. Press **Escape** while it runs.',
    call = 'bash', arguments = '{"command": "sleep 60"}',
  },
  {
    text = 'Escape ends a command within a second, and the next prompt just works. That was the tour.\n\n'
      .. '- `/login` sets up a provider, `/model` picks a model, local servers too\n'
      .. '- `/help` lists keys and commands\n'
      .. '- **Shift+Tab** changes what runs without a question\n'
      .. '- `@` names a file, `!` runs a command of your own\n\n'
      .. 'The scratch folder was `{scratch}`; you may delete it.',
  },
}
